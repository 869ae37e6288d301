#include "dynamic_shaders/tuner/rounds.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "dynamic_shaders/tuner/samples.hpp"

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

}  // namespace kiln::dynamic_shaders
