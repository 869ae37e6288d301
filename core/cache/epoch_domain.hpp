// ReaderSlots: a line of memory for each thread that reads from one cache: found without a lock, kept until the thread
// ends, then given to another.
//
// Thread-safety: every method from any thread. Ownership: shared by the cache and by the threads that read from it, so
// neither needs to outlive the other.
#pragma once

#include <kiln/program.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace kiln {

class ReaderSlots {
 public:
  ReaderSlots() = default;
  ReaderSlots(const ReaderSlots&) = delete;
  ReaderSlots& operator=(const ReaderSlots&) = delete;
  ~ReaderSlots();

  // The calling thread's slot.
  static ReaderSlot& mine(const std::shared_ptr<ReaderSlots>& slots) {
    if (last_.slots == slots.get()) [[likely]]
      return *last_.slot;
    return look_for_mine(slots);
  }

  // Every slot there ever was. What a thread counted stays in its slot after it.
  template <class Visit>
  void each(const Visit& visit) const {
    for (const Block* block = &first_; block != nullptr; block = block->next.load(std::memory_order_acquire)) {
      for (const Owned& owned : block->slots) visit(owned.slot);
    }
  }

 private:
  friend class SlotsOfThread;

  struct Owned {
    ReaderSlot slot;
    std::atomic<bool> taken{false};
  };
  struct Block {
    std::array<Owned, 16> slots;
    std::atomic<Block*> next{nullptr};
  };

  // The slot that the calling thread asked for last. Constant-initialised and of the initial-exec model: one load, no
  // call.
  struct Last {
    const ReaderSlots* slots;
    ReaderSlot* slot;
  };
  [[gnu::tls_model("initial-exec")]] static thread_local constinit Last last_;

  static ReaderSlot& look_for_mine(const std::shared_ptr<ReaderSlots>& slots);
  Owned& take();

  Block first_;
};

// EpochDomain: keeps what was taken out of a table alive until every Guard that may still point at it has left.
//
// A guard tells in its thread's slot the epoch in which it entered. What is retired is tagged with a new epoch, and is
// freed once no slot tells an older one. The order between a reader's telling and its reading is kept by a fence in
// enter(); or, once prefer_cheap_guards() has had its effect, by the reclaimer, which interrupts all threads of the
// process (membarrier(2)), so that a guard costs two plain stores. Thread-safety: every method from any thread; enter()
// and leaving take no lock. Ownership: shares what was retired; it is freed by a later retire() or reclaim(), or by the
// destructor. REQUIRES: outlives every Guard it gave out.

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
