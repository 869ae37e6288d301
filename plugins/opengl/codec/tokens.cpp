#include "codec/tokens.hpp"

#include <algorithm>
#include <array>

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
