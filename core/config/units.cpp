#include "config/units.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/config_text.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <optional>
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
    return invalid_argument(found + ": it is no whole number of " + std::string(units.front().word) + "; nearest: " +
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
