#include "codec/source_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace kiln::opengl::glsl {

std::size_t line_end(std::string_view text) noexcept {
  if (text.empty() || (text.front() != '\n' && text.front() != '\r')) return 0;
  return text.starts_with("\r\n") ? 2 : 1;
}

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }

constexpr std::array<bool, 256> of_names = [] {
  std::array<bool, 256> table{};
  for (unsigned c = '0'; c <= '9'; ++c) table[c] = true;
  for (unsigned c = 'A'; c <= 'Z'; ++c) table[c] = table[c - 'A' + 'a'] = true;
  table['_'] = true;
  return table;
}();
bool is_of_name(char c) { return of_names[static_cast<unsigned char>(c)]; }

// Whether a sign of several characters may have `c` as its second one.
bool continues_sign(char c) {
  switch (c) {
    case '<':
    case '>':
    case '=':
    case '+':
    case '-':
    case '&':
    case '|':
    case '^':
    case '#':
      return true;
    default:
      return false;
  }
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> all() {
    std::vector<Token> tokens;
    tokens.reserve(text_.size() / 3);
    while (skip_blanks()) {
      if (const std::size_t length = line_end(rest()); length != 0) {
        tokens.push_back({"\n", line_});
        move(length);
        continue;
      }
      const std::size_t begin = at_;
      const std::uint32_t line = line_;
      step();
      tokens.push_back({text_.substr(begin, at_ - begin), line});
    }
    return tokens;
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }

  // Over characters of which none ends a line.
  void skip(std::size_t count) { at_ += count; }

  void move(std::size_t count) {
    for (const std::size_t end = std::min(at_ + count, text_.size()); at_ < end;) {
      const std::size_t length = line_end(rest());
      if (length != 0) ++line_;
      at_ += std::max<std::size_t>(length, 1);
    }
  }

  // A backslash continues the comment on the next line.
  void skip_line_comment() {
    while (at_ < text_.size() && line_end(rest()) == 0) {
      const std::size_t continued = rest().front() == '\\' ? line_end(rest().substr(1)) : 0;
      move(1 + continued);
    }
  }

  // To the next token; false: the text ends.
  bool skip_blanks() {
    for (;;) {
      const std::string_view ahead = rest();
      if (ahead.empty()) return false;
      if (static_cast<unsigned char>(ahead.front()) > ' ' && ahead.front() != '/' && ahead.front() != '\\') return true;
      if (ahead.starts_with("//")) {
        skip_line_comment();
      } else if (ahead.starts_with("/*")) {
        const std::size_t end = ahead.find("*/", 2);
        move(end == std::string_view::npos ? ahead.size() : end + 2);
      } else if (ahead.front() == '\\' && line_end(ahead.substr(1)) != 0) {
        move(1 + line_end(ahead.substr(1)));
      } else if (is_blank(ahead.front())) {
        skip(1);
      } else {
        return true;
      }
    }
  }

  void step() {
    const std::string_view ahead = rest();
    const char first = ahead.front();
    if (is_letter(first)) {
      std::size_t size = 1;
      while (size < ahead.size() && is_of_name(ahead[size])) ++size;
      return skip(size);
    }
    if (is_digit(first) || (first == '.' && ahead.size() > 1 && is_digit(ahead[1]))) return skip(number(ahead));
    if (first == '"') {
      const std::size_t end = ahead.find_first_of("\"\r\n", 1);
      return move(end == std::string_view::npos ? ahead.size() : end + (ahead[end] == '"' ? 1 : 0));
    }
    if (ahead.size() < 2 || !continues_sign(ahead[1])) return skip(1);
    for (const std::string_view sign : {"<<=", ">>=", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=",
                                        "^=",  "<<",  ">>", "<=", ">=", "==", "!=", "&&", "||", "^^", "##"}) {
      if (ahead.starts_with(sign)) return skip(sign.size());
    }
    skip(1);
  }

  static std::size_t number(std::string_view ahead) {
    const bool hexadecimal = ahead.starts_with("0x") || ahead.starts_with("0X");
    std::size_t size = 1;
    for (; size < ahead.size(); ++size) {
      const char c = ahead[size];
      const char before = ahead[size - 1];
      const bool signs_exponent = (c == '+' || c == '-') && !hexadecimal && (before == 'e' || before == 'E');
      if (!is_of_name(c) && c != '.' && !signs_exponent) break;
    }
    return size;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace

bool is_name(std::string_view token) noexcept { return !token.empty() && is_letter(token.front()); }
bool is_opening(std::string_view token) noexcept {
  return token.size() == 1 && (token[0] == '(' || token[0] == '[' || token[0] == '{');
}
bool is_closing(std::string_view token) noexcept {
  return token.size() == 1 && (token[0] == ')' || token[0] == ']' || token[0] == '}');
}

std::vector<Token> tokens_of(std::string_view text) { return Lexer(text).all(); }

std::size_t past_brackets(Tokens tokens, std::size_t at) {
  int depth = 0;
  do {
    depth += is_opening(tokens[at].text) ? 1 : is_closing(tokens[at].text) ? -1 : 0;
    ++at;
  } while (depth > 0 && at < tokens.size());
  return at;
}

Tokens in_brackets(Tokens tokens, std::size_t at) {
  const std::size_t begin = at + 1;
  const std::size_t past = past_brackets(tokens, at);
  return tokens.subspan(begin, std::max(past, begin + 1) - 1 - begin);
}

std::vector<Tokens> split(Tokens tokens, std::string_view separator) {
  std::vector<Tokens> pieces;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    depth += is_opening(tokens[i].text) ? 1 : is_closing(tokens[i].text) ? -1 : 0;
    if (depth != 0 || tokens[i].text != separator) continue;
    pieces.push_back(tokens.subspan(begin, i - begin));
    begin = i + 1;
  }
  pieces.push_back(tokens.subspan(begin));
  return pieces;
}

}  // namespace kiln::opengl::glsl

namespace kiln::opengl {
namespace {

using glsl::line_end;
using glsl::Token;

constexpr std::string_view barrier_name = "barrier()";

// Behind blanks, comments and continued line ends from `at` on; also behind line ends where `lines` allows it.
enum class Over : std::uint8_t { blanks, lines };
std::size_t skip(std::string_view text, std::size_t at, Over over) noexcept {
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("//")) {
      while (at < text.size() && line_end(text.substr(at)) == 0) {
        at += text[at] == '\\' ? 1 + line_end(text.substr(at + 1)) : 1;
      }
    } else if (rest.starts_with("/*")) {
      const std::size_t end = rest.find("*/", 2);
      at = end == std::string_view::npos ? text.size() : at + end + 2;
    } else if (rest[0] == '\\' && line_end(rest.substr(1)) != 0) {
      at += 1 + line_end(rest.substr(1));
    } else if (std::string_view(" \t\v\f").find(rest[0]) != std::string_view::npos) {
      ++at;
    } else if (over == Over::lines && line_end(rest) != 0) {
      at += line_end(rest);
    } else {
      break;
    }
  }
  return at;
}

// The length of the text up to and including its #version line; 0: it declares none.
std::size_t version_end(std::string_view text) noexcept {
  std::size_t at = skip(text, 0, Over::lines);
  if (at == text.size() || text[at] != '#') return 0;
  at = skip(text, at + 1, Over::blanks);
  if (!text.substr(at).starts_with("version")) return 0;
  while (at < text.size() && line_end(text.substr(at)) == 0) at = std::max(skip(text, at, Over::blanks), at + 1);
  return std::min(at + line_end(text.substr(std::min(at, text.size()))), text.size());
}

std::size_t line_count(std::string_view text) noexcept {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = line_end(text.substr(at));
    count += length != 0 ? 1 : 0;
    at += std::max<std::size_t>(length, 1);
  }
  return count;
}

std::string define_line(std::string_view name, std::string_view text) {
  return "#define " + std::string(name) + " " + std::string(text) + "\n";
}

// Edits a text for which barrier() is a macro already. Its own macro of this name takes the place of that one:
// "#define barrier" removes the other first, "#undef barrier" brings it back, and conditions ask for the own one.
class OwnBarrier {
 public:
  OwnBarrier(std::string_view text, std::string_view barrier)
      : text_(text), barrier_(barrier), tokens_(glsl::tokens_of(text)) {}

  Result<std::string> edited() {
    for (std::size_t at = 0; at < tokens_.size();) {
      std::size_t end = at;
      while (end < tokens_.size() && tokens_[end].text != "\n") ++end;
      const glsl::Tokens line = glsl::Tokens(tokens_).subspan(at, end - at);
      if (line.size() > 1 && line[0].text == "#") {
        directive(line, end < tokens_.size() ? tokens_[end].line : line.back().line);
      } else if (Status status = check_calls(at, end); !status.ok()) {
        return status;
      }
      at = end + 1;
    }
    out_ += text_.substr(taken_);
    return std::move(out_);
  }

 private:
  // `last`: the last line of the directive, which may be continued.
  void directive(glsl::Tokens line, std::uint32_t last) {
    const std::string_view word = line[1].text;
    if (word == "line") return change_line(line.subspan(2), last);
    const bool names_it = line.size() > 2 && line[2].text == "barrier";
    if (word == "define" && names_it) {
      copy_to(line[0]);
      out_ += "#undef barrier\n#define kiln_own_barrier\n";
      out_ += define_line("kiln_barrier()", barrier_) + line_directive(line[0].line);
      for (const Token& token : line.subspan(3)) {
        if (token.text == "barrier") replace(token, "kiln_barrier");
      }
    } else if (word == "undef" && names_it) {
      copy_to(line[0]);
      out_ += "#undef kiln_own_barrier\n" + line_directive(line[0].line);
      copy_through(line.back());
      out_ += "\n" + define_line(barrier_name, barrier_) + line_directive(last);
    } else if (word == "ifdef" || word == "ifndef" || word == "if" || word == "elif") {
      for (const Token& token : line.subspan(2)) {
        if (token.text == "barrier") replace(token, "kiln_own_barrier");
      }
    }
  }

  void change_line(glsl::Tokens operands, std::uint32_t last) {
    std::uint32_t number = 0;
    if (operands.empty()) return;
    const std::string_view text = operands[0].text;
    if (std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc()) shift_ = number - (last + 1);
  }

  std::string line_directive(std::uint32_t line) const { return "#line " + std::to_string(line + shift_) + "\n"; }

  Status check_calls(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (tokens_[i].text != "barrier") continue;
      std::size_t open = i + 1;
      while (open < tokens_.size() && tokens_[open].text == "\n") ++open;
      if (open >= tokens_.size() || tokens_[open].text != "(") continue;
      std::size_t close = open + 1;
      while (close < tokens_.size() && tokens_[close].text == "\n") ++close;
      const bool is_call = close < tokens_.size() && tokens_[close].text == ")";
      const std::string_view before = i == 0 ? std::string_view() : tokens_[i - 1].text;
      const bool is_declared = glsl::is_name(before) && before != "else" && before != "do" && before != "return";
      if (is_call && !is_declared) continue;
      return invalid_argument(
          "line " + std::to_string(tokens_[i].line + shift_) +
          ": function 'barrier' replaces the built-in barrier(), in front of which this driver needs "
          "memoryBarrierShared(). Rename the function, or set [plugin.opengl] barrier_fix = \"off\"");
    }
    return {};
  }

  std::size_t place_of(const Token& token) const { return static_cast<std::size_t>(token.text.data() - text_.data()); }
  void copy(std::size_t end) {
    out_ += text_.substr(taken_, end - taken_);
    taken_ = end;
  }
  void copy_to(const Token& token) { copy(place_of(token)); }
  void copy_through(const Token& token) { copy(place_of(token) + token.text.size()); }
  void replace(const Token& token, std::string_view by) {
    copy_to(token);
    out_ += by;
    taken_ += token.text.size();
  }

  std::string_view text_;
  std::string_view barrier_;  // what takes the place of barrier()
  std::vector<Token> tokens_;
  std::string out_;
  std::size_t taken_ = 0;    // of text_
  std::uint32_t shift_ = 0;  // what #line adds to the numbers of lines; wraps around
};

}  // namespace

std::optional<KernelSource> with_barrier(const KernelSource& source, std::string_view text) {
  const auto has = [](std::string_view where) { return where.find("barrier") != std::string_view::npos; };
  if (!has(source.text) && std::ranges::none_of(source.constants, has, &Define::text)) return std::nullopt;
  KernelSource with = source;
  with.constants.push_back({std::string(barrier_name), std::string(text)});
  return with;
}

Result<std::string> assemble(const KernelSource& source) {
  if (source.dialect != Dialect::glsl) {
    return unsupported("dialect " + std::string(to_string(source.dialect)) + ", expected glsl");
  }
  if (source.entry != "main") return invalid_argument("entry '" + source.entry + "', expected 'main' for GLSL");
  std::string_view text = source.text;
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return invalid_argument("line " + std::to_string(1 + line_count(text.substr(0, nul))) +
                            " has a NUL byte, expected text in UTF-8");
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::size_t head = version_end(text);
  std::string whole = head == 0 ? "#version 430 core\n" : std::string(text.substr(0, head));
  if (line_end(whole.substr(whole.size() - 1)) == 0) whole += '\n';
  const Define* barrier = nullptr;
  for (const Define& define : source.constants) {
    if (define.name == barrier_name) barrier = &define;
    if (&define != barrier && !is_define_name(define.name)) {
      return invalid_argument("constant '" + define.name + "': not an identifier");
    }
    if (!is_define_text(define.text)) {
      return invalid_argument("constant '" + define.name + "': its text has a line break or a backslash");
    }
    whole += define_line(define.name, define.text);
  }
  const std::size_t line = 1 + line_count(text.substr(0, head));
  whole += "#line " + std::to_string(line) + "\n";
  if (barrier == nullptr) return whole.append(text.substr(head));
  // With the lines of the head, so that lines are counted from 1.
  auto edited = OwnBarrier(text, barrier->text).edited();
  if (!edited) return edited.error();
  return whole.append(*edited, head);
}

}  // namespace kiln::opengl
