#include "dynamic_shaders/tuner/rounds.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <kiln/tuning.hpp>

namespace kiln::dynamic_shaders {

void rank(std::vector<Entrant*>& meeting) {
  std::erase_if(meeting, [](const Entrant* entrant) { return !entrant->runs || entrant->rounds_ns.empty(); });
  if (meeting.empty()) return;
  std::size_t rounds = meeting.front()->rounds_ns.size();
  for (const Entrant* entrant : meeting) rounds = std::min(rounds, entrant->rounds_ns.size());
  std::vector<std::vector<std::uint64_t>> shares(meeting.size());  // in millionths of the round's median
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<std::uint64_t> times;
    for (const Entrant* entrant : meeting) times.push_back(entrant->rounds_ns[round]);
    const auto middle = static_cast<double>(std::max<std::uint64_t>(interval_of(times).median, 1));
    for (std::size_t i = 0; i < times.size(); ++i)
      shares[i].push_back(static_cast<std::uint64_t>(1e6 * static_cast<double>(times[i]) / middle));
  }
  std::vector<std::pair<std::uint64_t, Entrant*>> ranked;
  for (std::size_t i = 0; i < meeting.size(); ++i) ranked.emplace_back(interval_of(shares[i]).median, meeting[i]);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < meeting.size(); ++i) meeting[i] = ranked[i].second;
}

void leave(std::vector<Entrant*>& meeting, std::size_t places, const std::string& incumbent) {
  std::size_t place = 0;
  std::erase_if(meeting,
                [&](const Entrant* entrant) { return place++ >= places && entrant->record.variant != incumbent; });
}

namespace {

constexpr double least_gain = 1.02;
constexpr double least_gain_on_a_busy_machine = 1.5;

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::uint64_t best_run(const Entrant& entrant) { return *std::ranges::min_element(entrant.record.wall_ns); }

}  // namespace

RoundsChoice choice_of_rounds(const std::vector<Entrant*>& ranked, const std::string& incumbent, bool won) {
  RoundsChoice choice;
  std::vector<double> contention;
  const Entrant* old = nullptr;
  const Entrant* other = nullptr;
  for (const Entrant* entrant : ranked) {
    contention.insert(contention.end(), entrant->contention.begin(), entrant->contention.end());
    const Entrant*& its = entrant->record.variant == incumbent ? old : other;
    if (its == nullptr) its = entrant;
  }
  choice.contention = median_of(std::move(contention));
  choice.busy = choice.contention >= most_contention;
  if (old == nullptr || other == nullptr) {
    choice.best = old != nullptr ? old : other;
    choice.decision = old != nullptr ? TuneDecision::kept : TuneDecision::faster;
    return choice;
  }
  const std::size_t rounds = std::min(old->rounds_ns.size(), other->rounds_ns.size());
  const std::vector<std::uint64_t> ratios =
      ratios_of(std::span(old->rounds_ns).first(rounds), std::span(other->rounds_ns).first(rounds));
  const Interval gain = interval_of(ratios);
  choice.spread = spread_of(ratios);
  choice.busy = choice.busy || choice.spread >= most_spread;
  const auto above = [](std::uint64_t ratio, double least) {
    return static_cast<double>(ratio) > least * one_in_millionths;
  };
  bool faster = above(gain.lower, 1) && above(gain.median, least_gain) && best_run(*other) < best_run(*old);
  if (choice.busy) faster = faster && !won && above(gain.lower, least_gain_on_a_busy_machine);
  choice.best = faster ? other : old;
  choice.decision = faster ? TuneDecision::faster : choice.busy ? TuneDecision::busy : TuneDecision::kept;
  return choice;
}

Interval interval_of(std::span<const std::uint64_t> samples) {
  std::vector<std::uint64_t> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t count = sorted.size();
  const std::uint64_t median =
      count % 2 == 1 ? sorted[count / 2] : sorted[count / 2 - 1] + (sorted[count / 2] - sorted[count / 2 - 1]) / 2;
  // Samples left out at either end: the most for which P(no more than that many are below the median) <= 2.5 %.
  std::size_t out = 0;
  double term = std::pow(0.5, static_cast<double>(count)), below = term;
  while (2 * (out + 1) < count) {
    term *= static_cast<double>(count - out) / static_cast<double>(out + 1);
    below += term;
    if (below > 0.025) break;
    ++out;
  }
  return {sorted[out], median, sorted[count - 1 - out]};
}

std::vector<std::uint64_t> ratios_of(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  std::vector<std::uint64_t> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double ratio = static_cast<double>(a[i]) / static_cast<double>(b[i]);
    ratios.push_back(static_cast<std::uint64_t>(one_in_millionths * ratio));
  }
  return ratios;
}

double spread_of(std::span<const std::uint64_t> samples) {
  std::vector<std::uint64_t> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t quarter = sorted.size() / 4;
  const double width = static_cast<double>(sorted[sorted.size() - 1 - quarter]) - static_cast<double>(sorted[quarter]);
  const auto median = static_cast<double>(interval_of(samples).median);
  return sorted.size() < 4 || median == 0 ? 0 : width / median;
}

bool slower(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  return static_cast<double>(interval_of(ratios_of(a, b)).lower) > one_in_millionths;
}

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
    std::string text = "the outputs of the variants differ, and no group is the largest:";
    for (std::size_t i = 0; i < std::min(first.size(), most_names); ++i) {
      const std::vector<std::string>& variants = groups[first[i]];
      text += (i == 0 ? " " : "; ") + std::to_string(variants.size()) + of_all + " (" + names_of(variants) + ")";
    }
    if (first.size() > most_names) text += "; and " + std::to_string(first.size() - most_names) + " more groups";
    return unavailable(text + ". No winner is stored; set expect to decide");
  }
  Agreement agreement{first.front(), {}};
  for (const Vote& vote : votes) {
    if (vote.group == agreement.group) continue;
    agreement.outvoted.push_back({vote.variant, std::to_string(largest) + of_all +
                                                    " agree with one another and differ from " + vote.variant +
                                                    "; set expect to decide"});
  }
  return agreement;
}

}  // namespace kiln::dynamic_shaders
