// EpochDomain: keeps what was taken out of a table alive until every Guard that may still point at it has left.
//
// A guard tells in its thread's slot the epoch in which it entered. What is retired is tagged with a new epoch, and is
// freed once no slot tells an older one. The order between a reader's telling and its reading is kept by a fence in
// enter(); or, once prefer_cheap_guards() has had its effect, by the reclaimer, which interrupts all threads of the
// process (membarrier(2)), so that a guard costs two plain stores. Thread-safety: every method from any thread; enter()
// and leaving take no lock. Ownership: shares what was retired; it is freed by a later retire() or reclaim(), or by the
// destructor. REQUIRES: outlives every Guard it gave out.
#pragma once

#include "cache/memory/reader_slots.hpp"

#include <kiln/program.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace kiln {

class EpochDomain {
 public:
  EpochDomain();
  ~EpochDomain();

  Guard enter() noexcept;
  // Asks the kernel for membarrier. In a process of several threads it takes milliseconds to grant that: they pass on a
  // thread made for it. Nothing happens where it was asked before, where the kernel has none, or where no thread is to
  // be had.
  void prefer_cheap_guards();

  // REQUIRES: a guard that enters after this call can no longer find it.
  void retire(std::shared_ptr<const void> object) noexcept;
  // Frees what nobody can be looking at any more.
  void reclaim() noexcept;
  // Objects that wait for a guard.
  std::size_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }

  const ReaderSlots& slots() const noexcept { return *slots_; }

 private:
  struct Retired {
    std::uint64_t epoch;
    std::shared_ptr<const void> object;
  };

  void register_with_kernel() noexcept;

  const std::shared_ptr<ReaderSlots> slots_ = std::make_shared<ReaderSlots>();
  std::atomic<bool> interrupts_{false};  // the reclaimer orders the readers; else each orders itself
  std::once_flag asked_;
  std::thread asking_;
  alignas(64) std::atomic<std::uint64_t> epoch_{1};
  alignas(64) std::atomic<std::size_t> waiting_{0};
  std::mutex mutex_;
  std::deque<Retired> retired_;  // oldest first
};

}  // namespace kiln
