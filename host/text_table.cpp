#include "text_table.hpp"

#include "console.hpp"

#include <kiln/visible_text.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace kiln::host {
namespace {

// Columns on a screen.
std::size_t width_of(const std::string& text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues_a_character));
}

}  // namespace

void TextTable::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = visible(cell);
  rows_.push_back(std::move(row));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = width_of(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, width_of(row[c]));
    widths.push_back(width);
  }
  std::string text;
  const auto line = [&](const auto& cell_of) {
    std::string row;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string& cell = cell_of(c);
      const std::string space(widths[c] - width_of(cell), ' ');
      if (c != 0) row += "  ";
      row += columns_[c].align == Align::right ? space + cell : cell + space;
    }
    text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  };
  line([&](std::size_t c) -> const std::string& { return columns_[c].title; });
  for (const auto& row : rows_) line([&](std::size_t c) -> const std::string& { return row[c]; });
  return text;
}

std::string short_number(double value) {
  char text[32];
  const int decimals = value >= 100 ? 0 : value >= 10 ? 1 : value >= 0.1 ? 2 : 3;
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string human_size(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

std::string human_age(std::int64_t then, std::int64_t now) {
  if (then == 0) return "–";
  const std::int64_t seconds = now - then;
  if (seconds < 60) return "just now";
  if (seconds < 60 * 60) return std::to_string(seconds / 60) + " min ago";
  if (seconds < 48 * 60 * 60) return std::to_string(seconds / (60 * 60)) + " h ago";
  return std::to_string(seconds / (24 * 60 * 60)) + " d ago";
}

std::string human_date(std::int64_t seconds_since_1970) {
  const auto time = static_cast<std::time_t>(seconds_since_1970);
  std::tm parts{};
  char text[32] = "";
  if (localtime_r(&time, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

std::string human_ms(double ms) {
  const double size = std::abs(ms);
  if (size < 1e4) return short_number(ms) + " ms";
  if (size < 6e5) return short_number(ms / 1e3) + " s";
  if (size < 3.6e7) return short_number(ms / 6e4) + " min";
  return short_number(ms / 3.6e6) + " h";
}

std::string counted(std::uint64_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

Json config_problems_json(std::span<const ConfigProblem> problems) {
  Json json = Json::array();
  for (const auto& [place, message] : problems) {
    json.push_back({{"file", place.file.empty() ? Json(nullptr) : Json(place.file)},
                    {"line", place.line == 0 ? Json(nullptr) : Json(place.line)},
                    {"column", place.line == 0 ? Json(nullptr) : Json(place.column)},
                    {"message", message}});
  }
  return json;
}

bool report_reading(const ConfigReading& reading) {
  ConsoleLog console;
  const Log log{&console, reading.config.log_level};
  for (const ConfigProblem& warning : reading.warnings) log.write(LogLevel::warning, "config", warning.text());
  for (const ConfigProblem& problem : reading.problems) complain(problem.text());
  return reading.problems.empty();
}

}  // namespace kiln::host
