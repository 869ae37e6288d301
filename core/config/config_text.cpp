#include "config/config_text.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/config_text.hpp>
#include <kiln/visible_text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln::config {
namespace {

constexpr Unit sizes[] = {{"B", 1},
                          {"KiB", std::int64_t{1} << 10},
                          {"MiB", std::int64_t{1} << 20},
                          {"GiB", std::int64_t{1} << 30},
                          {"TiB", std::int64_t{1} << 40}};

constexpr Unit durations[] = {{"ns", 1},
                              {"us", 1'000},
                              {"ms", 1'000'000},
                              {"s", 1'000'000'000},
                              {"min", 60'000'000'000},
                              {"h", 3'600'000'000'000},
                              {"d", 86'400'000'000'000}};

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// "a, b, c"
std::string words(std::span<const Unit> units) {
  std::string out;
  for (const Unit& unit : units) out += (out.empty() ? "" : ", ") + std::string(unit.word);
  return out;
}

std::string print(std::int64_t value, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.worth == 0) best = &unit;
  }
  return std::to_string(value / best->worth) + " " + std::string(best->word);
}

constexpr std::size_t most_decimals = 18;  // what 64 bits hold

// What ".5" of a unit comes to. nullopt: no whole number of the least unit.
std::optional<std::int64_t> part_of(std::string_view decimals, std::int64_t worth) {
  while (decimals.ends_with('0')) decimals.remove_suffix(1);
  if (decimals.size() > most_decimals) return std::nullopt;
  std::int64_t digits = 0, scale = 1;
  for (const char digit : decimals) digits = digits * 10 + (digit - '0'), scale *= 10;
  const std::int64_t shared = std::gcd(worth, scale);
  if (digits % (scale / shared) != 0) return std::nullopt;
  return digits / (scale / shared) * (worth / shared);
}

std::string_view take_digits(std::string_view& text) {
  const std::string_view digits = text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
  text.remove_prefix(digits.size());
  return digits;
}

// fallback_unit: the worth of a number that stands alone; 0: a unit is demanded.
Result<std::int64_t> parse(std::string_view text, std::span<const Unit> units, std::int64_t fallback_unit,
                           std::string_view expected) {
  const std::string found = "found " + toml_text(text) + ", expected " + std::string(expected);
  std::string_view rest = trim(text);
  const std::string_view digits = take_digits(rest);
  std::int64_t count = 0;
  const auto error = std::from_chars(digits.data(), digits.data() + digits.size(), count).ec;
  if (error == std::errc::result_out_of_range) return invalid_argument(found + ": the number is too large");
  if (error != std::errc()) return invalid_argument(found);
  std::string_view decimals;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    decimals = take_digits(rest);
    if (decimals.empty()) return invalid_argument(found);
  }
  const std::string_view word = trim(rest);
  std::int64_t worth = word.empty() ? fallback_unit : 0;
  std::vector<std::string_view> known;
  for (const Unit& unit : units) {
    if (unit.word == word) worth = unit.worth;
    known.push_back(unit.word);
  }
  if (worth == 0) {
    std::string message = found + " (units: " + words(units) + ")";
    if (!word.empty()) message += "; nearest unit: " + std::string(nearest_word(word, known));
    return invalid_argument(std::move(message));
  }
  std::int64_t total = 0;
  if (__builtin_mul_overflow(count, worth, &total)) return invalid_argument(found + ": the number is too large");
  const std::optional<std::int64_t> part = part_of(decimals, worth);
  if (!part) {
    const double near = std::strtod((std::string(digits) + "." + std::string(decimals)).c_str(), nullptr);
    return invalid_argument(found + ": not a whole number of " + std::string(units.front().word) + "; nearest: " +
                            toml_text(print(static_cast<std::int64_t>(near * static_cast<double>(worth)), units)));
  }
  if (__builtin_add_overflow(total, *part, &total)) return invalid_argument(found + ": the number is too large");
  return total;
}

}  // namespace

std::span<const Unit> size_units() noexcept { return sizes; }
std::span<const Unit> duration_units() noexcept { return durations; }

std::string print_size(std::int64_t bytes) { return print(bytes, sizes); }
std::string print_duration(std::int64_t nanoseconds) { return print(nanoseconds, durations); }

}  // namespace kiln::config

namespace kiln {

Result<std::uint64_t> parse_size(std::string_view text) {
  const Result<std::int64_t> bytes = config::parse(text, config::sizes, 1, "a size such as \"50 MiB\"");
  if (!bytes) return bytes.error();
  return static_cast<std::uint64_t>(*bytes);
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const Result<std::int64_t> parsed = config::parse(text, config::durations, 0, "a duration such as \"10 s\"");
  if (!parsed) return parsed.error();
  return std::chrono::nanoseconds(*parsed);
}

}  // namespace kiln

namespace kiln::config {
namespace {

constexpr std::size_t most_compared = 128;

}  // namespace

std::size_t edit_distance(std::string_view from, std::string_view to) {
  from = from.substr(0, most_compared);
  to = to.substr(0, most_compared);
  // Three rows of the usual table: a swap of neighbours looks two rows up.
  std::vector<std::size_t> above_that(to.size() + 1), above(to.size() + 1), row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::swap(above_that, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const bool same = from[i - 1] == to[j - 1];
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0u : 1u)});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        row[j] = std::min(row[j], above_that[j - 2] + 1);
      }
    }
  }
  return row[to.size()];
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::pair<std::size_t, std::size_t> least;  // distance, then letters that do not agree from the start
  for (const std::string_view candidate : candidates) {
    const auto agree = std::mismatch(word.begin(), word.end(), candidate.begin(), candidate.end()).first;
    const auto apart = std::pair(edit_distance(word, candidate), static_cast<std::size_t>(word.end() - agree));
    if (best.empty() || apart < least) best = candidate, least = apart;
  }
  return best;
}

std::optional<std::string_view> close_word(std::string_view word, std::span<const std::string_view> candidates) {
  const auto lower = [](std::string_view text) {
    std::string lowered(text);
    for (char& c : lowered) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return lowered;
  };
  const std::string typed = lower(word);
  std::optional<std::string_view> best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(typed, lower(candidate));
    if (distance < least) best = candidate, least = distance;
  }
  return best;
}

namespace {

void append_control(std::string& out, unsigned char byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  if (byte == '\n') {
    out += "\\n";
  } else if (byte == '\t') {
    out += "\\t";
  } else if (byte == '\r') {
    out += "\\r";
  } else {
    out += "\\u00";
    out += digits[byte >> 4u];
    out += digits[byte & 15u];
  }
}

bool is_control(unsigned char byte) { return byte < 0x20 || byte == 0x7F; }

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

}  // namespace

std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    is_control(byte) ? append_control(out, byte) : out.push_back(c);
  }
  return visible(out) + '"';  // what TOML allows and a terminal would obey
}

std::string toml_key(std::string_view key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), is_bare);
  return bare ? std::string(key) : toml_text(key);
}

std::string print_number(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::array<char, 32> digits{};  // the shortest form of a double has at most 24 characters
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  std::string text(digits.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace kiln::config
