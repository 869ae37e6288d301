#include <kiln/kernel_parameters.hpp>

#include <charconv>
#include <limits>
#include <string>

namespace kiln {
namespace {

constexpr int most_nested = 64;

bool is_space(char c) noexcept { return c == ' ' || c == '\t'; }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Reader {
 public:
  Reader(std::string_view text, std::span<const Define> names) : text_(text), names_(names) {}

  Result<std::int64_t> whole() {
    auto value = sum();
    if (value && !at_end()) return not_understood();
    return value;
  }

 private:
  using Value = Result<std::int64_t>;

  bool at_end() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ == text_.size();
  }
  char peek() { return at_end() ? '\0' : text_[at_]; }

  Status not_understood() {
    if (at_end()) return invalid_argument("ends where a number or a name is expected");
    return invalid_argument("character " + std::to_string(at_ + 1) + " ('" + text_[at_] + "') is not understood");
  }

  // Left to right: operands come from `read`, joined by one of two or three operators.
  Value joined(std::string_view operators, Value (Reader::*read)()) {
    Value left = (this->*read)();
    while (left) {
      const char sign = peek();
      if (at_end() || operators.find(sign) == std::string_view::npos) break;
      ++at_;
      const Value right = (this->*read)();
      left = right ? applied(sign, *left, *right) : right;
    }
    return left;
  }

  Value sum() { return joined("+-", &Reader::product); }
  Value product() { return joined("*/%", &Reader::operand); }

  Value operand() {
    const char first = peek();
    if (first == '(') return in_parentheses();
    std::size_t end = at_;
    while (end < text_.size() && (is_digit(text_[end]) || is_letter(text_[end]))) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    if (word.empty()) return not_understood();
    if (is_digit(first)) {
      const Value value = number(word, "'" + std::string(word) + "'");
      if (value) at_ = end;
      return value;
    }
    at_ = end;
    for (const Define& name : names_) {
      if (name.name == word) return number(name.text, name.name + " = " + name.text);
    }
    return invalid_argument("there is no constant or parameter '" + std::string(word) + "'");
  }

  Value in_parentheses() {
    if (++nested_ > most_nested) return invalid_argument("has more than 64 parentheses in one another");
    ++at_;
    Value value = sum();
    if (!value) return value;
    if (at_end()) return invalid_argument("lacks a ')'");
    if (peek() != ')') return not_understood();
    ++at_;
    --nested_;
    return value;
  }

  static Value number(std::string_view text, const std::string& what) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) return invalid_argument(what + " is beyond 64 bits");
    if (error != std::errc() || end != text.data() + text.size()) return invalid_argument(what + " is no integer");
    return value;
  }

  static Value applied(char sign, std::int64_t left, std::int64_t right) {
    std::int64_t value = 0;
    bool beyond = false;
    if (sign == '+') beyond = __builtin_add_overflow(left, right, &value);
    if (sign == '-') beyond = __builtin_sub_overflow(left, right, &value);
    if (sign == '*') beyond = __builtin_mul_overflow(left, right, &value);
    if (sign == '/' || sign == '%') {
      if (right == 0) return invalid_argument("divides by zero");
      beyond = right == -1 && left == std::numeric_limits<std::int64_t>::min();
      if (!beyond) value = sign == '/' ? left / right : left % right;
    }
    if (beyond) return invalid_argument("comes to a number beyond 64 bits");
    return value;
  }

  std::string_view text_;
  std::span<const Define> names_;
  std::size_t at_ = 0;
  int nested_ = 0;
};

}  // namespace

Result<std::int64_t> value_of(std::string_view expression, std::span<const Define> names) {
  return Reader(expression, names).whole();
}

}  // namespace kiln
