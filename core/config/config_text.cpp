#include <kiln/config_text.hpp>

#include <kiln/visible_text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

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
