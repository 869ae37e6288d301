#include "dynamic_shaders/tuner/agreement.hpp"

#include <kiln/tuning.hpp>

#include <algorithm>
#include <map>

namespace kiln::dynamic_shaders {
namespace {

constexpr std::size_t most_names = 8;

std::string names_of(const std::vector<std::string>& variants) {
  std::string text;
  for (std::size_t i = 0; i < std::min(variants.size(), most_names); ++i) text += (i == 0 ? "" : ", ") + variants[i];
  if (variants.size() > most_names) text += " and " + std::to_string(variants.size() - most_names) + " more";
  return text;
}

}  // namespace

Result<Agreement> agreement_of(std::span<const Vote> votes) {
  std::map<std::uint32_t, std::vector<std::string>> groups;
  for (const Vote& vote : votes) groups[vote.group].push_back(vote.variant);
  std::size_t largest = 0;
  for (const auto& [group, variants] : groups) largest = std::max(largest, variants.size());
  std::vector<std::uint32_t> first;
  for (const auto& [group, variants] : groups) {
    if (variants.size() == largest) first.push_back(group);
  }
  const std::string of_all = " of " + std::to_string(votes.size()) + " variants";
  if (first.size() > 1 || first.front() == agrees_with_none) {
    std::string text = "the variants differ, and no largest group of them agrees:";
    for (std::size_t i = 0; i < std::min(first.size(), most_names); ++i) {
      const std::vector<std::string>& variants = groups[first[i]];
      text += (i == 0 ? " " : "; ") + std::to_string(variants.size()) + of_all + " (" + names_of(variants) + ")";
    }
    if (first.size() > most_names) text += "; and " + std::to_string(first.size() - most_names) + " more groups";
    return unavailable(text + ". No winner is stored; give expect to decide");
  }
  Agreement agreement{first.front(), {}};
  for (const Vote& vote : votes) {
    if (vote.group == agreement.group) continue;
    agreement.outvoted.push_back({vote.variant, std::to_string(largest) + of_all +
                                                    " agree with one another and differ from " + vote.variant +
                                                    "; give expect to decide"});
  }
  return agreement;
}

}  // namespace kiln::dynamic_shaders
