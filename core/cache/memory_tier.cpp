#include "cache/memory_tier.hpp"

namespace kiln {
namespace {

constexpr std::size_t most_use_counts = 65536;  // of evicted programs, until somebody takes them

}  // namespace

std::optional<HeldProgram> MemoryTier::get(const Digest& digest, const Device& device) {
  const std::lock_guard lock(mutex_);
  const auto found = table_.find(digest);
  if (found == table_.end() || found->second->device != &device) return std::nullopt;
  touch(found->second);
  return HeldProgram{found->second->program, found->second->build_ns};
}

GuardedProgram MemoryTier::find(const Digest& digest, const Guard& /*keeps the answer alive*/) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = table_.find(digest);
  if (found == table_.end()) return {};
  touch(found->second);
  return {found->second->program.get(), found->second->build_ns};
}

bool MemoryTier::insert(const Digest& digest, const Device& device, HeldProgram held) {
  const std::uint64_t charge = held.program->charge();
  Programs evicted;
  bool taken = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = table_.find(digest);
    if (found != table_.end() && found->second->device == &device) return true;
    if (found != table_.end()) unlink(found->second, evicted);
    if (const auto victims = victims_for(charge)) {
      for (const Place victim : *victims) unlink(victim, evicted);
      by_use_.push_front({digest, &device, std::move(held.program), charge, held.build_ns, 1});
      table_.emplace(digest, by_use_.begin());
      bytes_ += charge;
      taken = true;
    }
  }
  for (auto& program : evicted) domain_.retire(std::move(program));
  return taken;
}

std::optional<std::vector<MemoryTier::Place>> MemoryTier::victims_for(std::uint64_t charge) {
  if (bounds_.programs == 0 || charge > bounds_.bytes) return std::nullopt;
  std::vector<Place> victims;
  std::uint64_t programs = table_.size();
  std::uint64_t bytes = bytes_;
  const auto fits = [&] { return programs < bounds_.programs && bytes <= bounds_.bytes - charge; };
  for (Place at = by_use_.end(); !fits() && at != by_use_.begin();) {
    --at;
    // Under the lock nobody can gain a reference where the table's is the only one.
    if (at->program.use_count() > 1) continue;
    victims.push_back(at);
    --programs;
    bytes -= at->charge;
  }
  if (!fits()) return std::nullopt;
  return victims;
}

void MemoryTier::touch(Place at) noexcept {
  by_use_.splice(by_use_.begin(), by_use_, at);
  ++at->uses;
}

void MemoryTier::unlink(Place at, Programs& evicted) {
  if (at->uses != 0 && uses_of_evicted_.size() < most_use_counts) uses_of_evicted_.emplace_back(at->digest, at->uses);
  evicted.push_back(std::move(at->program));
  bytes_ -= at->charge;
  ++evictions_;
  table_.erase(at->digest);
  by_use_.erase(at);
}

MemoryFigures MemoryTier::figures() const noexcept {
  const std::lock_guard lock(mutex_);
  return {table_.size(), bytes_, evictions_};
}

UseCounts MemoryTier::take_uses() {
  const std::lock_guard lock(mutex_);
  UseCounts uses = std::move(uses_of_evicted_);
  uses_of_evicted_.clear();
  for (Entry& entry : by_use_) {
    if (entry.uses != 0) uses.emplace_back(entry.digest, std::exchange(entry.uses, 0));
  }
  return uses;
}

}  // namespace kiln
