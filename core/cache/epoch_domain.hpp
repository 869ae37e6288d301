// EpochDomain: keeps what was evicted alive until every Guard that may still point at it has left.
//
// Guards count themselves in one of two phases, that of the epoch in which they entered. The epoch advances only when
// the phase it would take over is empty; what was retired in epoch e is therefore unreachable, and freed, in epoch e
// + 2. Thread-safety: every method from any thread; enter() and leave() take no lock unless something waits to be
// freed. Ownership: shares what was retired. REQUIRES: outlives every Guard it gave out.
#pragma once

#include <kiln/program.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace kiln {

class EpochDomain final : public ReclaimDomain {
 public:
  Guard enter() noexcept;
  void leave(std::uint64_t ticket) noexcept override;

  // REQUIRES: a guard that enters after this call can no longer find the program.
  void retire(std::shared_ptr<const Program> program) noexcept;
  // Programs that wait for a guard.
  std::size_t waiting() const noexcept { return waiting_.load(); }

 private:
  struct Retired {
    std::uint64_t epoch;
    std::shared_ptr<const Program> program;
  };

  void reclaim() noexcept;

  std::atomic<std::uint64_t> epoch_{0};
  std::array<std::atomic<std::uint64_t>, 2> active_{};
  std::atomic<std::size_t> waiting_{0};
  std::mutex mutex_;
  std::deque<Retired> retired_;  // oldest first
};

}  // namespace kiln
