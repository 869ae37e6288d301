#include "cache/epoch_domain.hpp"

#include <vector>

namespace kiln {

Guard EpochDomain::enter() noexcept {
  for (;;) {
    const std::uint64_t epoch = epoch_.load();
    const std::uint64_t phase = epoch & 1;
    active_[phase].fetch_add(1);
    // Counted while the epoch was still this one, so it cannot advance twice before this guard leaves.
    if (epoch_.load() == epoch) return Guard(*this, phase);
    active_[phase].fetch_sub(1);
  }
}

void EpochDomain::leave(std::uint64_t ticket) noexcept {
  // Sequentially consistent on both sides: either this sees what waits, or retire() sees that this guard is gone.
  if (active_[ticket].fetch_sub(1) == 1 && waiting_.load() != 0) reclaim();
}

void EpochDomain::retire(std::shared_ptr<const Program> program) noexcept {
  {
    const std::lock_guard lock(mutex_);
    retired_.push_back({epoch_.load(), std::move(program)});
    waiting_.store(retired_.size());
  }
  reclaim();
}

void EpochDomain::reclaim() noexcept {
  std::vector<std::shared_ptr<const Program>> dead;  // destroyed after the lock is gone
  const std::lock_guard lock(mutex_);
  while (!retired_.empty()) {
    const std::uint64_t epoch = epoch_.load();
    while (!retired_.empty() && retired_.front().epoch + 2 <= epoch) {
      dead.push_back(std::move(retired_.front().program));
      retired_.pop_front();
    }
    waiting_.store(retired_.size());
    if (retired_.empty() || active_[(epoch + 1) & 1].load() != 0) break;
    epoch_.store(epoch + 1);
  }
}

}  // namespace kiln
