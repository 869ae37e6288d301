#include "objects/source_text.hpp"

#include <algorithm>
#include <string_view>

namespace kiln::opengl {
namespace {

bool is_identifier(std::string_view name) noexcept {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
}

// Where the first token stands: after blanks and comments.
std::size_t first_token(std::string_view text) noexcept {
  std::size_t at = 0;
  for (;;) {
    at = text.find_first_not_of(" \t\r\n\v\f", at);
    if (at == std::string_view::npos) return text.size();
    const std::string_view rest = text.substr(at);
    std::size_t end;
    if (rest.starts_with("//")) {
      end = text.find('\n', at);
    } else if (rest.starts_with("/*")) {
      end = text.find("*/", at + 2);
      if (end != std::string_view::npos) end += 2;
    } else {
      return at;
    }
    if (end == std::string_view::npos) return text.size();
    at = end;
  }
}

// The length of the text up to and including its #version line; 0 where it declares none.
std::size_t version_end(std::string_view text) noexcept {
  const std::size_t at = first_token(text);
  if (at == text.size() || text[at] != '#') return 0;
  const std::size_t word = text.find_first_not_of(" \t", at + 1);
  if (word == std::string_view::npos || !text.substr(word).starts_with("version")) return 0;
  const std::size_t end = text.find('\n', word);
  return end == std::string_view::npos ? text.size() : end + 1;
}

}  // namespace

Result<std::string> assemble(const KernelSource& source) {
  if (source.dialect != Dialect::glsl) {
    return unsupported("dialect " + std::string(to_string(source.dialect)) + ", expected glsl");
  }
  if (source.entry != "main") return invalid_argument("entry '" + source.entry + "': GLSL starts at 'main'");
  const std::string_view text = source.text;
  const std::size_t head = version_end(text);
  std::string whole = head == 0 ? "#version 430 core\n" : std::string(text.substr(0, head));
  if (whole.back() != '\n') whole += '\n';
  for (const Define& define : source.constants) {
    if (!is_identifier(define.name)) return invalid_argument("constant '" + define.name + "': not an identifier");
    if (define.text.find_first_of("\n\r\\") != std::string::npos) {
      return invalid_argument("constant '" + define.name + "': its text has a line break or a backslash");
    }
    whole += "#define " + define.name + " " + define.text + "\n";
  }
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(head), '\n');
  whole += "#line " + std::to_string(line) + "\n";
  whole += text.substr(head);
  return whole;
}

}  // namespace kiln::opengl
