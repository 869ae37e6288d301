#include "cache_policies/simulated_tier.hpp"

#include "cache/cost_policy.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace kiln::bench {
namespace {

class Tier {
 public:
  Tier(const Trace& trace, std::uint64_t capacity, EvictionPolicy& policy, Uses uses)
      : trace_(trace), capacity_(capacity), policy_(policy), uses_(uses), slot_of_(trace.programs.size(), no_entry) {}

  void request(std::uint32_t program) {
    if (const EntryId id = slot_of_[program]; id != no_entry) {
      ++outcome_.hits;
      outcome_.saved_ns += trace_.programs[program].build_ns;
      hit(id);
    } else {
      ++misses_;
      miss(program);
    }
  }

  Outcome outcome() const {
    Outcome outcome = outcome_;
    outcome.policy_ns_per_miss =
        static_cast<double>(policy_ns_) / static_cast<double>(std::max<std::uint64_t>(misses_, 1));
    return outcome;
  }

 private:
  struct Slot {
    std::uint32_t program = 0;
    std::uint64_t stamp = 0;
    std::uint32_t epochs = 0;  // in which it was used, and not told yet
  };

  void hit(EntryId id) {
    if (uses_ == Uses::exact) return policy_.used(id, 1);
    Slot& slot = slots_[id];
    if (slot.stamp == epoch_) return;
    slot.stamp = epoch_;
    ++slot.epochs;
  }

  void miss(std::uint32_t program) {
    const TracedProgram& built = trace_.programs[program];
    const auto start = std::chrono::steady_clock::now();
    ++epoch_;
    if (built.bytes <= capacity_) take_in(program, built);
    policy_ns_ += static_cast<std::uint64_t>((std::chrono::steady_clock::now() - start).count());
  }

  void take_in(std::uint32_t program, const TracedProgram& built) {
    const bool full = bytes_ + built.bytes > capacity_;
    if (full && uses_ == Uses::stamped) tell_stamped();
    const EntryId id = free_.empty() ? static_cast<EntryId>(slots_.size()) : free_.back();
    if (free_.empty()) {
      slots_.emplace_back();
    } else {
      free_.pop_back();
    }
    slots_[id] = {program, epoch_, 0};
    slot_of_[program] = id;
    bytes_ += built.bytes;
    policy_.inserted(id, {mix(program + 1), built.bytes, built.build_ns});
    if (!full) return;
    policy_.choose(
        {0, bytes_ - capacity_, id}, [](EntryId) { return true; }, victims_);
    for (const EntryId victim : victims_) {
      ++(victim == id ? outcome_.refused : outcome_.evictions);
      policy_.erased(victim);
      bytes_ -= trace_.programs[slots_[victim].program].bytes;
      slot_of_[slots_[victim].program] = no_entry;
      free_.push_back(victim);
    }
  }

  void tell_stamped() {
    stamped_.clear();
    for (EntryId id = 0; id < slots_.size(); ++id) {
      if (slots_[id].epochs != 0 && slot_of_[slots_[id].program] == id) stamped_.emplace_back(slots_[id].stamp, id);
    }
    std::sort(stamped_.begin(), stamped_.end());
    for (const auto& [stamp, id] : stamped_) policy_.used(id, std::exchange(slots_[id].epochs, 0));
  }

  const Trace& trace_;
  const std::uint64_t capacity_;
  EvictionPolicy& policy_;
  const Uses uses_;
  std::vector<EntryId> slot_of_;  // by program
  std::vector<Slot> slots_;
  std::vector<EntryId> free_, victims_;
  std::vector<std::pair<std::uint64_t, EntryId>> stamped_;
  std::uint64_t bytes_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t misses_ = 0;
  std::uint64_t policy_ns_ = 0;
  Outcome outcome_;
};

}  // namespace

Outcome simulate(const Trace& trace, std::uint64_t capacity_bytes, EvictionPolicy& policy, Uses uses) {
  Tier tier(trace, capacity_bytes, policy, uses);
  for (const std::uint32_t program : trace.requests) tier.request(program);
  return tier.outcome();
}

}  // namespace kiln::bench
