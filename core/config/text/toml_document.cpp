#include "config/text/toml_document.hpp"

#include "config/text/toml_guard.hpp"
#include "config/text/toml_text.hpp"

// The library asserts of foreign text what only its next lines check ("[.a]"), and without assertions lets the compiler
// rely on it. As nothing at all it is harmless: the checks answer an error.
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 1
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace kiln::config {
namespace {

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
  if (std::optional<TomlFailure> unsafe = unsafe_toml(text)) return *std::move(unsafe);
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return TomlFailure{position(error.source().begin), one_line(error.description())};
  }
  return convert(parsed.table());
}

}  // namespace kiln::config
