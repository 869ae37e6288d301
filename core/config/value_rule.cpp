#include "config/value_rule.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/config_text.hpp>

#include "config/config_text.hpp"

#include <cmath>
#include <utility>

namespace kiln::config {
namespace {

constexpr std::size_t most_shown = 60;  // bytes of a text in a message

std::string range_text(const ValueRule& rule, std::string (*number)(double)) {
  const bool least = std::isfinite(rule.least), most = std::isfinite(rule.most);
  if (least && most) return " from " + number(rule.least) + " to " + number(rule.most);
  if (least) return " of at least " + number(rule.least);
  if (most) return " of at most " + number(rule.most);
  return "";
}

std::string integer_text(double value) { return std::to_string(static_cast<std::int64_t>(value)); }
std::string size_text(double value) { return print_size(static_cast<std::int64_t>(value)); }
std::string duration_text(double value) { return print_duration(static_cast<std::int64_t>(value)); }

std::string cut(std::string_view text) {
  if (text.size() <= most_shown) return toml_text(text);
  std::size_t end = most_shown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;  // not inside a UTF-8 sequence
  return toml_text(text.substr(0, end)) + "…";
}

std::string describe(const ConfigValue& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "the boolean true" : "the boolean false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return "the integer " + std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return "the number " + print_number(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return "the text " + cut(*text);
  return "an array of texts";
}

Status mismatch(const std::string& found, const ValueRule& rule) {
  return invalid_argument("found " + found + ", expected " + expected_text(rule));
}

bool in_range(double value, const ValueRule& rule) { return value >= rule.least && value <= rule.most; }

Result<ConfigValue> checked_text(const std::string& text, const ValueRule& rule) {
  // Past a NUL the operating system would not look: another file than the one that is shown.
  if (text.find('\0') != std::string::npos) {
    return mismatch("the text " + cut(text) + ", which contains a NUL character", rule);
  }
  if (rule.allowed.empty()) {
    if (text.empty() && !rule.may_be_empty) return mismatch("an empty text", rule);
    return ConfigValue(text);
  }
  for (const std::string_view word : rule.allowed) {
    if (word == text) return ConfigValue(text);
  }
  return invalid_argument("found " + cut(text) + ", expected " + expected_text(rule) +
                          "; nearest: " + std::string(nearest_word(text, rule.allowed)));
}

Result<ConfigValue> checked_quantity(const ConfigValue& value, const ValueRule& rule) {
  std::int64_t quantity = 0;
  const auto* text = std::get_if<std::string>(&value);
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (text != nullptr && rule.kind == ValueKind::size) {
    const Result<std::uint64_t> bytes = parse_size(*text);
    if (!bytes) return bytes.error();
    quantity = static_cast<std::int64_t>(*bytes);
  } else if (text != nullptr) {
    const Result<std::chrono::nanoseconds> duration = parse_duration(*text);
    if (!duration) return duration.error();
    quantity = duration->count();
  } else if (integer != nullptr && rule.kind == ValueKind::size) {
    quantity = *integer;
  } else {
    return mismatch(describe(value), rule);
  }
  if (!in_range(static_cast<double>(quantity), rule)) {
    return mismatch(text != nullptr ? cut(*text) : std::to_string(quantity), rule);
  }
  return ConfigValue(quantity);
}

}  // namespace

ValueRule rule_of(const ConfigKey& key, std::span<const std::string_view> allowed) noexcept {
  ValueRule rule;
  switch (key.type) {
    case ConfigType::boolean:
      rule.kind = ValueKind::boolean;
      break;
    case ConfigType::integer:
      rule.kind = ValueKind::integer;
      break;
    case ConfigType::number:
      rule.kind = ValueKind::number;
      break;
    case ConfigType::text:
      rule.kind = ValueKind::text;
      break;
    case ConfigType::text_list:
      rule.kind = ValueKind::text_list;
      break;
    case ConfigType::invalid:
      break;
  }
  rule.may_be_empty = true;
  if (key.least) rule.least = *key.least;
  if (key.most) rule.most = *key.most;
  rule.allowed = allowed;
  return rule;
}

std::string expected_text(const ValueRule& rule) {
  switch (rule.kind) {
    case ValueKind::boolean:
      return "true or false";
    case ValueKind::integer:
      return "an integer" + range_text(rule, integer_text);
    case ValueKind::number:
      return "a number" + range_text(rule, print_number);
    case ValueKind::text_list:
      return "an array of texts";
    case ValueKind::size:
      return "a size such as \"50 MiB\"," + range_text(rule, size_text);
    case ValueKind::duration:
      return "a duration such as \"10 s\"," + range_text(rule, duration_text);
    case ValueKind::path:
      return "a path";
    case ValueKind::path_list:
      return "an array of paths";
    case ValueKind::text:
      break;
    case ValueKind::invalid:
      return "nothing";
  }
  if (rule.allowed.empty()) return rule.may_be_empty ? "a text" : "a text that is not empty";
  std::string text = "one of ";
  for (std::size_t i = 0; i < rule.allowed.size(); ++i) text += (i == 0 ? "" : ", ") + std::string(rule.allowed[i]);
  return text;
}

Result<ConfigValue> checked(ConfigValue value, const ValueRule& rule) {
  switch (rule.kind) {
    case ValueKind::boolean:
      if (std::holds_alternative<bool>(value)) return value;
      break;
    case ValueKind::integer:
      if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        if (in_range(static_cast<double>(*integer), rule)) return value;
        return mismatch(std::to_string(*integer), rule);
      }
      break;
    case ValueKind::number: {
      const auto* integer = std::get_if<std::int64_t>(&value);
      const auto* number = std::get_if<double>(&value);
      if (integer == nullptr && number == nullptr) break;
      const double held = integer != nullptr ? static_cast<double>(*integer) : *number;
      if (in_range(held, rule) && std::isfinite(held)) return ConfigValue(held);
      return mismatch(print(value), rule);
    }
    case ValueKind::text:
    case ValueKind::path:
      if (const auto* text = std::get_if<std::string>(&value)) return checked_text(*text, rule);
      break;
    case ValueKind::text_list:
    case ValueKind::path_list:
      if (std::holds_alternative<std::vector<std::string>>(value)) return value;
      break;
    case ValueKind::size:
    case ValueKind::duration:
      return checked_quantity(value, rule);
    case ValueKind::invalid:
      break;
  }
  return mismatch(describe(value), rule);
}

std::optional<ConfigValue> plain_value(const TomlNode& node) {
  switch (node.kind) {
    case TomlKind::boolean:
      return ConfigValue(node.boolean);
    case TomlKind::integer:
      return ConfigValue(node.integer);
    case TomlKind::number:
      return ConfigValue(node.number);
    case TomlKind::text:
      return ConfigValue(node.text);
    case TomlKind::array: {
      std::vector<std::string> texts;
      for (const TomlNode& item : node.items) {
        if (item.kind != TomlKind::text) return std::nullopt;
        texts.push_back(item.text);
      }
      return ConfigValue(std::move(texts));
    }
    case TomlKind::moment:
    case TomlKind::table:
    case TomlKind::invalid:
      break;
  }
  return std::nullopt;
}

Result<ConfigValue> checked(const TomlNode& node, const ValueRule& rule) {
  std::optional<ConfigValue> value = plain_value(node);
  if (!value) return mismatch(describe(node), rule);
  return checked(std::move(*value), rule);
}

std::string describe(const TomlNode& node) {
  if (node.kind == TomlKind::table) return "a table";
  if (node.kind == TomlKind::moment) return "the date or time " + node.text;
  if (node.kind == TomlKind::array && node.items.empty()) return "an empty array";
  if (const std::optional<ConfigValue> value = plain_value(node)) return describe(*value);
  return "an array";
}

std::string print(const ConfigValue& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return print_number(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return toml_text(*text);
  std::string list = "[";
  for (const std::string& item : std::get<std::vector<std::string>>(value)) {
    list += (list.size() == 1 ? "" : ", ") + toml_text(item);
  }
  return list + "]";
}

std::string print(const ConfigValue& value, const ValueRule& rule) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    if (rule.kind == ValueKind::size) return toml_text(print_size(*integer));
    if (rule.kind == ValueKind::duration) return toml_text(print_duration(*integer));
  }
  return print(value);
}

}  // namespace kiln::config
