#include "dynamic_shaders/tuner/rounds.hpp"

#include <algorithm>
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

}  // namespace kiln::dynamic_shaders
