#include "config/text/nearest_word.hpp"

#include <algorithm>
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

}  // namespace kiln::config
