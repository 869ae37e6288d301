#include "config/text/toml_document.hpp"

#include "config/text/toml_text.hpp"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 1
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <sstream>

namespace kiln::config {
namespace {

constexpr std::uint32_t most_key_parts = 16;

// Where a key of too many parts ends being acceptable. Such a key builds a chain of tables whose depth nothing else
// bounds. Strings and comments are stepped over; what is not valid TOML is left for the parser to judge.
std::optional<TextPosition> overlong_key(std::string_view text) {
  TextPosition at{1, 1};
  std::uint32_t dots = 0;
  std::string_view quote;  // what ends the string that we are in
  bool comment = false;
  for (std::size_t i = 0; i < text.size(); ++i, ++at.column) {
    const char c = text[i];
    if (c == '\n') {
      at = {at.line + 1, 0};
      dots = 0;
      comment = false;
      if (quote.size() == 1) quote = {};
    } else if (comment) {
      continue;
    } else if (!quote.empty()) {
      if (c == '\\' && quote[0] == '"' && i + 1 < text.size() && text[i + 1] != '\n') {
        ++i, ++at.column;
      } else if (text.substr(i).starts_with(quote)) {
        i += quote.size() - 1, at.column += static_cast<std::uint32_t>(quote.size() - 1);
        quote = {};
      }
    } else if (c == '"' || c == '\'') {
      const std::string_view triple = c == '"' ? "\"\"\"" : "'''";
      quote = text.substr(i).starts_with(triple) ? triple : triple.substr(0, 1);
      i += quote.size() - 1, at.column += static_cast<std::uint32_t>(quote.size() - 1);
    } else if (c == '#') {
      comment = true;
    } else if (c == '.') {
      if (++dots >= most_key_parts) return at;
    } else if (c == '=' || c == ',' || c == '[' || c == ']' || c == '{' || c == '}') {
      dots = 0;
    }
  }
  return std::nullopt;
}

TextPosition position(const toml::source_position& from) { return {from.line, from.column}; }

template <class Moment>
std::string moment_text(const Moment& moment) {
  std::ostringstream out;
  out << moment;
  return out.str();
}

TomlNode convert(const toml::node& node) {
  TomlNode out;
  out.at = position(node.source().begin);
  if (const auto* boolean = node.as_boolean()) {
    out.kind = TomlKind::boolean, out.boolean = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    out.kind = TomlKind::integer, out.integer = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    out.kind = TomlKind::number, out.number = number->get();
  } else if (const auto* text = node.as_string()) {
    out.kind = TomlKind::text, out.text = text->get();
  } else if (const auto* date = node.as_date()) {
    out.kind = TomlKind::moment, out.text = moment_text(date->get());
  } else if (const auto* time = node.as_time()) {
    out.kind = TomlKind::moment, out.text = moment_text(time->get());
  } else if (const auto* both = node.as_date_time()) {
    out.kind = TomlKind::moment, out.text = moment_text(both->get());
  } else if (const auto* array = node.as_array()) {
    out.kind = TomlKind::array;
    for (const toml::node& item : *array) out.items.push_back(convert(item));
  } else if (const auto* table = node.as_table()) {
    out.kind = TomlKind::table;
    for (const auto& [key, value] : *table) {
      out.members.push_back({std::string(key.str()), position(key.source().begin), convert(value)});
    }
    std::stable_sort(out.members.begin(), out.members.end(),
                     [](const TomlMember& a, const TomlMember& b) { return a.at < b.at; });
  }
  return out;
}

}  // namespace

std::variant<TomlNode, TomlFailure> parse_toml(std::string_view text) {
  if (const auto at = overlong_key(text)) {
    return TomlFailure{*at, "a key of more than " + std::to_string(most_key_parts) + " parts"};
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return TomlFailure{position(error.source().begin), one_line(error.description())};
  }
  return convert(parsed.table());
}

}  // namespace kiln::config
