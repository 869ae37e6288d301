#include "codec/preprocessor.hpp"

#include <algorithm>
#include <bitset>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace kiln::opengl::glsl {
namespace {

// Bounds for macros that double or nest without end; tokens beyond them stay unexpanded.
constexpr std::size_t most_tokens = 200'000;
constexpr std::size_t most_pasted = 1024;  // characters of a token
constexpr int most_expansion_depth = 200;  // of macros in macros, and of calls in arguments of calls

struct Macro {
  bool takes_arguments = false;
  std::vector<std::string_view> parameters;
  std::vector<Token> body;
};

bool ends_line(const Token& token) { return token.text.size() == 1 && token.text[0] == '\n'; }

class Preprocessor {
 public:
  void define(std::string_view name, std::vector<Token> body) { define(name, Macro{false, {}, std::move(body)}); }

  Preprocessed run(std::vector<Token> raw_tokens) {
    const std::span<Token> raw = raw_tokens;
    Preprocessed out;
    std::vector<Token> pending;  // between two directives: arguments of a macro may span lines
    pending.reserve(raw.size());
    for (std::size_t at = 0; at < raw.size();) {
      const auto end = static_cast<std::size_t>(
          std::ranges::find_if(raw.begin() + static_cast<std::ptrdiff_t>(at), raw.end(), ends_line) - raw.begin());
      const std::span<Token> line = raw.subspan(at, end - at);
      at = end + 1;
      if (line_shift_ != 0 || source_ != 0) {
        for (Token& token : line) {
          token.line += line_shift_;
          token.source = source_;
        }
      }
      if (!line.empty() && line[0].text == "#") {
        append_expanded(pending, out.tokens);
        directive(line.subspan(1), out);
      } else if (active()) {
        pending.insert(pending.end(), line.begin(), line.end());
      }
    }
    append_expanded(pending, out.tokens);
    out.pasted = std::move(pasted_);
    return out;
  }

 private:
  void define(std::string_view name, Macro macro) {
    if (!name.empty()) first_letters_.set(static_cast<unsigned char>(name.front()));
    macros_[name] = std::move(macro);
  }

  struct Condition {
    bool active = false;
    bool may_still_be = false;  // by a later #elif or #else
  };

  bool active() const { return std::ranges::all_of(conditions_, &Condition::active); }

  void append_expanded(std::vector<Token>& pending, std::vector<Token>& out) {
    if (std::ranges::any_of(pending, [&](const Token& token) { return may_be_macro(token.text); })) {
      pending = expand(pending);
    }
    if (out.empty()) {
      out.swap(pending);
    } else {
      out.insert(out.end(), pending.begin(), pending.end());
    }
    pending.clear();
  }

  void directive(Tokens words, Preprocessed& out) {
    if (words.empty()) return;
    const std::string_view what = words[0].text;
    const Tokens rest = words.subspan(1);
    if (what == "if" || what == "ifdef" || what == "ifndef") {
      const bool reached = active();
      const bool holds = reached && (what == "if" ? is_true(rest) : is_defined(rest) == (what == "ifdef"));
      conditions_.push_back({holds, reached && !holds});
    } else if (what == "elif" && !conditions_.empty()) {
      Condition& condition = conditions_.back();
      condition.active = condition.may_still_be && is_true(rest);
      condition.may_still_be = condition.may_still_be && !condition.active;
    } else if (what == "else" && !conditions_.empty()) {
      conditions_.back() = {conditions_.back().may_still_be, false};
    } else if (what == "endif" && !conditions_.empty()) {
      conditions_.pop_back();
    } else if (active() && what == "extension") {
      out.extensions.emplace_back(rest.begin(), rest.end());
    } else if (active() && what == "line") {
      change_line(words.back().line, expand(rest));
    } else if (active()) {
      change_macros(what, rest);
    }
  }

  // #line LINE [SOURCE]: what the line after `here` is called. The shift wraps around where it is negative.
  void change_line(std::uint32_t here, Tokens operands) {
    std::uint32_t numbers[2]{0, source_};
    for (std::size_t i = 0; i < std::min<std::size_t>(operands.size(), 2); ++i) {
      const std::string_view text = operands[i].text;
      if (std::from_chars(text.data(), text.data() + text.size(), numbers[i]).ec != std::errc()) return;
    }
    if (operands.empty()) return;
    line_shift_ += numbers[0] - (here + 1);
    source_ = numbers[1];
  }

  void change_macros(std::string_view what, Tokens rest) {
    if (rest.empty()) return;
    const std::string_view name = rest[0].text;
    if (what == "version") {
      define("__VERSION__", {rest[0]});
      if (rest.size() == 1 || rest[1].text == "core") define("GL_core_profile", {Token{"1"}});
    }
    if (what == "undef") macros_.erase(name);
    if (what != "define") return;
    Macro macro;
    std::size_t body = 1;
    // A bracket that touches the name begins the parameters.
    if (rest.size() > 1 && rest[1].text == "(" && rest[1].text.data() == name.data() + name.size()) {
      macro.takes_arguments = true;
      for (body = 2; body < rest.size() && rest[body].text != ")"; ++body) {
        if (rest[body].text != ",") macro.parameters.push_back(rest[body].text);
      }
      body = std::min(body + 1, rest.size());
    }
    const Tokens text = rest.subspan(body);
    macro.body.assign(text.begin(), text.end());
    define(name, std::move(macro));
  }

  bool is_defined(Tokens words) const { return !words.empty() && macros_.contains(words[0].text); }

  bool is_true(Tokens words) {
    std::vector<Token> plain;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].text != "defined") {
        plain.push_back(words[i]);
        continue;
      }
      const bool bracket = i + 1 < words.size() && words[i + 1].text == "(";
      i += bracket ? 2 : 1;
      plain.push_back({i < words.size() && is_defined(words.subspan(i)) ? "1" : "0", words[0].line});
      if (bracket) ++i;
    }
    return value_of_condition(expand(plain)) != 0;
  }

  bool may_be_macro(std::string_view token) const {
    return !token.empty() && first_letters_.test(static_cast<unsigned char>(token.front()));
  }

  // The macro to expand at `at`; null: none.
  const Macro* macro_at(Tokens tokens, std::size_t at) const {
    const std::string_view name = tokens[at].text;
    if (!may_be_macro(name)) return nullptr;
    if (depth_ > most_expansion_depth || made_ >= most_tokens) return nullptr;
    const auto found = macros_.find(name);
    if (found == macros_.end() || std::ranges::find(expanding_, name) != expanding_.end()) return nullptr;
    const bool is_call = at + 1 < tokens.size() && tokens[at + 1].text == "(";
    return found->second.takes_arguments && !is_call ? nullptr : &found->second;
  }

  std::vector<Token> expand(Tokens tokens) {
    ++depth_;
    std::vector<Token> out;
    out.reserve(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const Macro* const macro = macro_at(tokens, i);
      if (macro == nullptr) {
        out.push_back(tokens[i]);
        continue;
      }
      const std::size_t first = i;
      std::vector<Token> text = macro->takes_arguments ? with_arguments(*macro, tokens, ++i) : macro->body;
      made_ += text.size() + 1;  // an empty macro costs time too
      if (made_ > most_tokens) {
        const Tokens as_it_is = tokens.subspan(first, std::min(i + 1, tokens.size()) - first);
        out.insert(out.end(), as_it_is.begin(), as_it_is.end());
        continue;
      }
      paste(text);
      for (Token& each : text) {
        each.line = tokens[first].line;
        each.source = tokens[first].source;
      }
      expanding_.push_back(tokens[first].text);
      const std::vector<Token> expanded = expand(text);
      expanding_.pop_back();
      out.insert(out.end(), expanded.begin(), expanded.end());
    }
    --depth_;
    return out;
  }

  // `at`: the opening bracket; afterwards the closing one. The result is cut at most_tokens.
  std::vector<Token> with_arguments(const Macro& macro, Tokens tokens, std::size_t& at) {
    // Expanded once each, however often the body uses them: else the work doubles with each level of nesting.
    std::vector<std::vector<Token>> arguments;
    std::vector<std::vector<Token>> as_written;  // beside ##; an empty one is a token without text
    for (const Tokens argument : arguments_at(tokens, at)) {
      if (arguments.size() == macro.parameters.size()) continue;
      arguments.push_back(expand(argument));
      as_written.emplace_back(argument.begin(), argument.end());
      if (argument.empty()) as_written.back().push_back(Token{""});
    }
    std::vector<Token> text;
    for (std::size_t i = 0; i < macro.body.size(); ++i) {
      if (made_ + text.size() > most_tokens) break;
      const Token& token = macro.body[i];
      const auto parameter = std::ranges::find(macro.parameters, token.text);
      const auto which = static_cast<std::size_t>(parameter - macro.parameters.begin());
      if (which >= arguments.size()) {
        text.push_back(token);
        continue;
      }
      const bool beside =
          (i > 0 && macro.body[i - 1].text == "##") || (i + 1 < macro.body.size() && macro.body[i + 1].text == "##");
      const std::vector<Token>& argument = beside ? as_written[which] : arguments[which];
      text.insert(text.end(), argument.begin(), argument.end());
    }
    return text;
  }

  // Joins the tokens on both sides of each ##.
  void paste(std::vector<Token>& text) {
    if (std::ranges::find(text, "##", &Token::text) == text.end()) return;
    std::vector<Token> out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i].text != "##" || out.empty() || i + 1 == text.size()) {
        out.push_back(text[i]);
        continue;
      }
      ++i;
      if (out.back().text.size() + text[i].text.size() > most_pasted) continue;
      pasted_.push_back(std::string(out.back().text) + std::string(text[i].text));
      out.back().text = pasted_.back();
    }
    std::erase_if(out, [](const Token& token) { return token.text.empty(); });
    text = std::move(out);
  }

  static std::vector<Tokens> arguments_at(Tokens tokens, std::size_t& at) {
    std::vector<Tokens> arguments;
    std::size_t begin = at + 1;
    int depth = 0;
    for (; at < tokens.size(); ++at) {
      const std::string_view text = tokens[at].text;
      if (text == "(") ++depth;
      if (text == ")" && --depth == 0) break;
      if (text != "," || depth != 1) continue;
      arguments.push_back(tokens.subspan(begin, at - begin));
      begin = at + 1;
    }
    arguments.push_back(tokens.subspan(begin, at - begin));
    return arguments;
  }

  std::unordered_map<std::string_view, Macro> macros_;
  std::bitset<256> first_letters_;  // of all that were ever defined: most names of a text need no lookup
  std::vector<Condition> conditions_;
  std::vector<std::string_view> expanding_;  // a macro is not expanded within itself
  std::deque<std::string> pasted_;
  std::size_t made_ = 0;          // tokens, by all macros together
  int depth_ = 0;                 // of expand()
  std::uint32_t line_shift_ = 0;  // what #line adds to the numbers of the text
  std::uint32_t source_ = 0;
};

}  // namespace

Preprocessed preprocessed(std::string_view text, std::span<const Define> constants) {
  Preprocessor preprocessor;
  for (const Define& constant : constants) preprocessor.define(constant.name, tokens_of(constant.text));
  return preprocessor.run(tokens_of(text));
}

namespace {

constexpr int most_depth = 200;  // of brackets and signs; bounds the stack

// 0: no operator between two operands.
int rank_of(std::string_view sign) {
  if (sign == "||") return 1;
  if (sign == "&&") return 2;
  if (sign == "|") return 3;
  if (sign == "^") return 4;
  if (sign == "&") return 5;
  if (sign == "==" || sign == "!=") return 6;
  if (sign == "<" || sign == ">" || sign == "<=" || sign == ">=") return 7;
  if (sign == "<<" || sign == ">>") return 8;
  if (sign == "+" || sign == "-") return 9;
  if (sign == "*" || sign == "/" || sign == "%") return 10;
  return 0;
}

// In 64 bits that wrap around. nullopt: division by zero, or a shift that is undefined.
std::optional<std::int64_t> applied(std::string_view sign, std::int64_t left, std::int64_t right) {
  const auto a = static_cast<std::uint64_t>(left);
  const auto b = static_cast<std::uint64_t>(right);
  if (sign == "||") return left != 0 || right != 0;
  if (sign == "&&") return left != 0 && right != 0;
  if (sign == "|") return left | right;
  if (sign == "^") return left ^ right;
  if (sign == "&") return left & right;
  if (sign == "==") return left == right;
  if (sign == "!=") return left != right;
  if (sign == "<") return left < right;
  if (sign == ">") return left > right;
  if (sign == "<=") return left <= right;
  if (sign == ">=") return left >= right;
  if (sign == "+") return static_cast<std::int64_t>(a + b);
  if (sign == "-") return static_cast<std::int64_t>(a - b);
  if (sign == "*") return static_cast<std::int64_t>(a * b);
  if (sign == "<<" || sign == ">>") {
    if (right < 0 || right > 63) return std::nullopt;
    return sign == "<<" ? static_cast<std::int64_t>(a << b) : left >> right;
  }
  if (right == 0) return std::nullopt;
  if (right == -1) return sign == "/" ? static_cast<std::int64_t>(0 - a) : 0;
  return sign == "/" ? left / right : left % right;
}

std::optional<std::int64_t> number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const int base = hexadecimal ? 16 : text.size() > 1 && text[0] == '0' ? 8 : 10;
  const char* const end = text.data() + text.size();
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data() + (hexadecimal ? 2 : 0), end, value, base);
  const std::string_view suffix(read.ptr, static_cast<std::size_t>(end - read.ptr));
  if (read.ec != std::errc() || (!suffix.empty() && suffix != "u" && suffix != "U")) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

class Expression {
 public:
  explicit Expression(Tokens tokens) : tokens_(tokens) {}

  std::int64_t value() {
    const std::int64_t value = binary(1);
    return valid_ && at_ == tokens_.size() ? value : 0;
  }

 private:
  std::string_view next() const { return at_ < tokens_.size() ? tokens_[at_].text : std::string_view(); }
  bool take(std::string_view text) {
    if (next() != text) return false;
    ++at_;
    return true;
  }
  std::int64_t known(std::optional<std::int64_t> value) {
    valid_ = valid_ && value.has_value();
    return value.value_or(0);
  }

  std::int64_t binary(int least) {
    std::int64_t left = unary();
    for (int rank = rank_of(next()); valid_ && rank >= least && rank != 0; rank = rank_of(next())) {
      const std::string_view sign = next();
      ++at_;
      const std::int64_t right = binary(rank + 1);
      left = known(applied(sign, left, right));
    }
    return left;
  }

  std::int64_t unary() {
    if (++depth_ > most_depth) return known(std::nullopt);
    std::int64_t value = 0;
    if (take("-")) {
      value = known(applied("-", 0, unary()));
    } else if (take("+")) {
      value = unary();
    } else if (take("!")) {
      value = unary() == 0;
    } else if (take("~")) {
      value = ~unary();
    } else {
      value = primary();
    }
    --depth_;
    return value;
  }

  std::int64_t primary() {
    if (take("(")) {
      const std::int64_t value = binary(1);
      if (!take(")")) return known(std::nullopt);
      return value;
    }
    const std::string_view text = next();
    if (text.empty()) return known(std::nullopt);
    ++at_;
    return is_name(text) ? 0 : known(number(text));
  }

  Tokens tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool valid_ = true;
};

}  // namespace

std::int64_t value_of_condition(Tokens expression) { return Expression(expression).value(); }

}  // namespace kiln::opengl::glsl
