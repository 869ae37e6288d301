// TextTable: formats rows as aligned columns, numbers right-aligned; and texts for people: sizes, times, problems.
//
// Thread-safety: none. Ownership: values.
#pragma once

#include <kiln/config_reader.hpp>
#include <kiln/visible_text.hpp>

#include <kiln_json.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::host {

enum class Align { invalid = 0, left, right };

class TextTable {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // Cells pass through visible(), so a row is one line. REQUIRES: one cell per column.
  void add(std::vector<std::string> row);
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Whether the byte continues a character of UTF-8: it takes no column of its own.
inline bool continues_a_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// "12.3": about three significant digits.
std::string short_number(double value);

// Sizes and times for people. Foreign text must pass through visible() (kiln/visible_text.hpp).
//
// Thread-safety: pure. Ownership: values.

std::string human_size(std::uint64_t bytes);  // "812 B", "4.2 KiB", "1.3 GiB"
// "3 h ago"; "–" for 0 (unknown).
std::string human_age(std::int64_t seconds_since_1970, std::int64_t now);
std::string human_date(std::int64_t seconds_since_1970);  // "2026-03-01 12:30", local time
constexpr double to_ms(double ns) { return ns / 1e6; }
constexpr double to_ms(std::uint64_t ns) { return to_ms(static_cast<double>(ns)); }
std::string human_ms(double ms);  // "12.3 ms", "4.5 s", "3.2 h"

// "1 program", "2 programs".
std::string counted(std::uint64_t count, std::string_view what);

// A value of JSON; null where it is unknown, which is 0 or "" here (docs/json.md).
template <class Number>
Json known(Number value) {
  return value == 0 ? Json(nullptr) : Json(value);
}
inline Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// The problems and warnings of a configuration, for people and for machines.
//
// Thread-safety: any thread.

// [{"file", "line", "column", "message"}]. For a problem outside a file, line and column are null, and `file` names the
// source or is null.
Json config_problems_json(std::span<const ConfigProblem> problems);

// Prints the problems, and the warnings if the configured log level includes them, to standard error. Returns whether
// the configuration is valid.
bool report_reading(const ConfigReading& reading);

}  // namespace kiln::host
