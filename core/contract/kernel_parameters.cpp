#include <kiln/kernel_parameters.hpp>

#include <algorithm>
#include <array>
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
    return invalid_argument("character " + std::to_string(at_ + 1) + " ('" + text_[at_] + "') is not allowed here");
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
    if (++nested_ > most_nested) return invalid_argument("has more than 64 nested parentheses");
    ++at_;
    Value value = sum();
    if (!value) return value;
    if (at_end()) return invalid_argument("a ')' is missing");
    if (peek() != ')') return not_understood();
    ++at_;
    --nested_;
    return value;
  }

  static Value number(std::string_view text, const std::string& what) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) return invalid_argument(what + " does not fit in 64 bits");
    if (error != std::errc() || end != text.data() + text.size()) return invalid_argument(what + " is not an integer");
    return value;
  }

  static Value applied(char sign, std::int64_t left, std::int64_t right) {
    std::int64_t value = 0;
    bool beyond = false;
    if (sign == '+') beyond = __builtin_add_overflow(left, right, &value);
    if (sign == '-') beyond = __builtin_sub_overflow(left, right, &value);
    if (sign == '*') beyond = __builtin_mul_overflow(left, right, &value);
    if (sign == '/' || sign == '%') {
      if (right == 0) return invalid_argument("division by zero");
      beyond = right == -1 && left == std::numeric_limits<std::int64_t>::min();
      if (!beyond) value = sign == '/' ? left / right : left % right;
    }
    if (beyond) return invalid_argument("the result does not fit in 64 bits");
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

namespace {

constexpr std::string_view plain_variant = "user";

// How many there are; more than most_kernel_variants is as good as any such number.
std::size_t count_of(const UserKernelSpec& kernel) {
  std::size_t count = 1;
  for (const auto& parameter : kernel.parameters) {
    count *= parameter.texts.size();
    if (count > most_kernel_variants) break;
  }
  return count;
}

// What variant `index` gives the parameters, in their order.
std::vector<Define> values_of(const UserKernelSpec& kernel, std::size_t index) {
  std::vector<Define> values(kernel.parameters.size());
  for (std::size_t i = values.size(); i-- > 0;) {
    const auto& parameter = kernel.parameters[i];
    values[i] = {parameter.name, parameter.texts[index % parameter.texts.size()]};
    index /= parameter.texts.size();
  }
  return values;
}

std::string name_of(const std::vector<Define>& values) {
  std::string name(plain_variant);
  for (const Define& value : values) {
    name += name.size() == plain_variant.size() ? ":" : ",";
    name += value.name + "=" + value.text;
  }
  return name;
}

// Tabs and the like would tear a record of it.
bool is_printable(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

Status check_parameter(const UserKernelSpec& kernel, std::size_t at) {
  const UserKernelSpec::Parameter& parameter = kernel.parameters[at];
  const std::string who = "parameter " + parameter.name;
  if (!is_define_name(parameter.name)) {
    return invalid_argument("parameter '" + parameter.name +
                            "': expected letters, digits and '_', not beginning with a digit");
  }
  const auto same = [&](const auto& other) { return other.name == parameter.name; };
  if (std::any_of(kernel.constants.begin(), kernel.constants.end(), same)) {
    return invalid_argument(who + ": a constant has the same name");
  }
  const auto self = kernel.parameters.begin() + static_cast<std::ptrdiff_t>(at);
  if (std::any_of(kernel.parameters.begin(), self, same)) return invalid_argument(who + ": is declared twice");
  if (parameter.texts.empty()) return invalid_argument(who + ": has no values, expected at least one");
  for (auto text = parameter.texts.begin(); text != parameter.texts.end(); ++text) {
    if (!is_define_text(*text) || !is_printable(*text)) {
      return invalid_argument(who + ": expected values of one printable line without a backslash");
    }
    if (std::find(parameter.texts.begin(), text, *text) != text) {
      return invalid_argument(who + ": has value '" + *text + "' twice");
    }
  }
  return {};
}

using Grid = std::array<std::uint32_t, 3>;

bool has_expressions(const UserKernelSpec& kernel) {
  return std::any_of(kernel.grid_expressions.begin(), kernel.grid_expressions.end(),
                     [](const std::string& expression) { return !expression.empty(); });
}

// Copies no source: it is asked once a variant.
Result<Grid> grid_of(const UserKernelSpec& kernel, const std::vector<Define>& values) {
  Grid grid = kernel.grid;
  std::vector<Define> names = kernel.constants;
  names.insert(names.end(), values.begin(), values.end());
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    const std::string& expression = kernel.grid_expressions[axis];
    if (expression.empty()) continue;
    const std::string who = "grid[" + std::to_string(axis) + "] = \"" + expression + "\"";
    const auto groups = value_of(expression, names);
    if (!groups) return invalid_argument(who + ": " + groups.error().message);
    if (*groups < 1 || *groups > std::numeric_limits<std::uint32_t>::max()) {
      const std::string where = values.empty() ? "" : " in variant " + name_of(values);
      return invalid_argument(who + ": is " + std::to_string(*groups) + where +
                              ", expected 1 to 4294967295 workgroups");
    }
    grid[axis] = static_cast<std::uint32_t>(*groups);
  }
  return grid;
}

}  // namespace

std::vector<std::string> variants_of(const UserKernelSpec& kernel) {
  std::vector<std::string> names(count_of(kernel));
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = name_of(values_of(kernel, i));
  return names;
}

Result<UserKernelSpec> settled(const UserKernelSpec& kernel, std::string_view variant) {
  // Found by its name as a whole: a text may hold what parts the others.
  const std::size_t count = count_of(kernel);
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<Define> values = values_of(kernel, i);
    if (name_of(values) != variant) continue;
    auto grid = grid_of(kernel, values);
    if (!grid) return std::move(grid).error();
    UserKernelSpec one = kernel;
    one.constants.insert(one.constants.end(), values.begin(), values.end());
    one.parameters.clear();
    one.grid = *grid;
    one.grid_expressions = {};
    return one;
  }
  return not_found("kernel " + kernel.path + ": there is no variant '" + std::string(variant) + "'");
}

Status check_parameters(const UserKernelSpec& kernel) {
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (Status status = check_parameter(kernel, i); !status.ok()) return status;
  }
  const std::size_t count = count_of(kernel);
  if (count > most_kernel_variants) {
    return invalid_argument("the parameters have more than " + std::to_string(most_kernel_variants) + " combinations");
  }
  if (!has_expressions(kernel)) return {};
  for (std::size_t i = 0; i < count; ++i) {
    if (auto grid = grid_of(kernel, values_of(kernel, i)); !grid) return std::move(grid).error();
  }
  return {};
}

std::string short_reason(std::string_view variant, const Status& failure) {
  constexpr std::size_t most = 300;
  std::string_view message = failure.message;
  // The code stands in front already, and so does the variant where this is listed.
  const std::string label = std::string(variant) + ": ";
  if (const std::size_t at = message.find(label); at != std::string_view::npos)
    message.remove_prefix(at + label.size());
  std::string_view line = message.substr(0, message.find('\n'));
  for (std::string_view rest = message; !rest.empty() && line.find("error") == std::string_view::npos;) {
    const std::string_view next = rest.substr(0, rest.find('\n'));
    if (next.find("error") != std::string_view::npos) line = next;
    rest.remove_prefix(std::min(next.size() + 1, rest.size()));
  }
  std::string reason = std::string(to_string(failure.code)) + ": " + std::string(line.substr(0, most));
  if (line.size() > most) reason += "...";
  return reason;
}

void FailedVariants::add(std::string_view variant, const Status& failure) {
  add(variant, short_reason(variant, failure));
}

void FailedVariants::add(std::string_view variant, std::string reason) {
  if (!contains(variant)) failed_.push_back({std::string(variant), std::move(reason)});
}

bool FailedVariants::contains(std::string_view variant) const noexcept {
  return std::ranges::find(failed_, variant, &Failed::variant) != failed_.end();
}

std::string FailedVariants::text() const {
  constexpr std::size_t most_names = 16;
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> reasons;
  for (const Failed& failed : failed_) {
    const auto same = [&](const auto& entry) { return entry.first == failed.reason; };
    auto at = std::ranges::find_if(reasons, same);
    if (at == reasons.end()) at = reasons.insert(at, {failed.reason, {}});
    at->second.push_back(failed.variant);
  }
  std::string text;
  for (const auto& [reason, variants] : reasons) {
    if (!text.empty()) text += "; ";
    for (std::size_t i = 0; i < std::min(variants.size(), most_names); ++i) {
      if (i != 0) text += ", ";
      text += variants[i];
    }
    if (variants.size() > most_names) text += " and " + std::to_string(variants.size() - most_names) + " more";
    text += ": " + std::string(reason);
  }
  return text;
}

std::vector<std::string> FailedVariants::lines() const {
  std::vector<std::string> lines;
  for (const Failed& failed : failed_) lines.push_back(failed.variant + ": " + failed.reason);
  return lines;
}

}  // namespace kiln
