#include "config/text/toml_guard.hpp"

#include <cstddef>
#include <string>

namespace kiln::config {
namespace {

bool inside_character(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);  // a byte order mark
  }

  std::optional<TomlFailure> run() {
    while (!done() && !failure_) {
      const char c = text_[next_];
      if (c == '"' || c == '\'') {
        read_text(c);
      } else if (c == '#') {
        while (!done() && text_[next_] != '\n') step();
      } else if (c == '.') {
        if (++dots_ >= most_key_parts) fail("a key of more than " + std::to_string(most_key_parts) + " parts");
        step();
      } else {
        constexpr std::string_view ends_of_keys = "=,[]{}\n";
        if (ends_of_keys.find(c) != std::string_view::npos) dots_ = 0;
        step();
      }
    }
    return failure_;
  }

 private:
  bool done() const { return next_ >= text_.size(); }
  bool at(std::string_view what) const { return text_.substr(next_).starts_with(what); }
  void fail(std::string message) { failure_ = TomlFailure{at_, std::move(message)}; }

  void step(std::size_t bytes = 1) {
    for (; bytes != 0 && !done(); --bytes, ++next_) {
      if (text_[next_] == '\n') {
        at_ = {at_.line + 1, 1};
      } else if (next_ + 1 >= text_.size() || !inside_character(text_[next_ + 1])) {
        ++at_.column;
      }
    }
  }

  // From the opening quote to behind the closing one, or to where a text of one line breaks off.
  void read_text(char quote) {
    const std::string triple(3, quote);
    const bool many_lines = at(triple);
    step(many_lines ? 3 : 1);
    while (!done() && !failure_) {
      const char c = text_[next_];
      if (c == '\\' && quote == '"') {
        step();
        if (!done() && (many_lines || text_[next_] != '\n')) step();
      } else if (many_lines && at(triple)) {
        step(3);
        for (int more = 0; more < 2 && at({&quote, 1}); ++more) step();  // """"" ends with two quotes of its own
        return;
      } else if (!many_lines && (c == quote || c == '\n')) {
        if (c == quote) step();
        return;
      } else {
        step();
      }
    }
  }

  std::string_view text_;
  std::size_t next_ = 0;
  TextPosition at_{1, 1};
  std::uint32_t dots_ = 0;
  std::optional<TomlFailure> failure_;
};

}  // namespace

std::optional<TomlFailure> unsafe_toml(std::string_view text) { return Scan(text).run(); }

}  // namespace kiln::config
