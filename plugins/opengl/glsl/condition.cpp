#include "glsl/condition.hpp"

#include <charconv>
#include <optional>

namespace kiln::opengl::glsl {
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
