#include "report/human.hpp"

#include "report/text_table.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace kiln::host {

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

}  // namespace kiln::host
