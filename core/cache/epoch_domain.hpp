// Epoch-based reclamation: ReaderSlots has a slot for each reader thread, EpochDomain delays freeing until all readers
// have left.
//
// Thread-safety: every method from any thread. Ownership: see each class.
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

// One cache line for each thread that reads from a cache. Lookup takes no lock. A slot belongs to a thread until the
// thread ends, then it is reused.
// Ownership: shared by the cache and its reader threads; neither needs to outlive the other.
class ReaderSlots {
 public:
  ReaderSlots() = default;
  ReaderSlots(const ReaderSlots&) = delete;
  ReaderSlots& operator=(const ReaderSlots&) = delete;
  ~ReaderSlots();

  // Returns the slot of the calling thread; `none_` if there is no memory for it.
  static ReaderSlot& mine(const std::shared_ptr<ReaderSlots>& slots) noexcept {
    if (last_.slots == slots.get()) [[likely]]
      return *last_.slot;
    return look_for_mine(slots);
  }
  // Whether reclaim() does not see the slot: nothing may be looked up under it.
  static bool is_none(const ReaderSlot& slot) noexcept { return &slot == &none_; }

  // Visits all slots ever created. The counts of an ended thread remain in its slot.
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

  // The most recent slot of the calling thread. Constant-initialized with the initial-exec model, so that access is one
  // load without a call.
  struct Last {
    const ReaderSlots* slots;
    ReaderSlot* slot;
  };
  [[gnu::tls_model("initial-exec")]] static thread_local constinit Last last_;

  // Of a thread that there was no memory for.
  [[gnu::tls_model("initial-exec")]] static thread_local constinit ReaderSlot none_;

  static ReaderSlot& look_for_mine(const std::shared_ptr<ReaderSlots>& slots) noexcept;
  Owned& take();

  Block first_;
};

// Keeps retired objects alive until every Guard that may still refer to them is destroyed.
//
// A guard stores the current epoch in the slot of its thread. retire() tags an object with a new epoch; it is freed
// when no slot holds an older epoch. A fence in enter() orders the store before later reads. After
// prefer_cheap_guards() takes effect, the reclaimer calls membarrier(2) instead, and a guard costs two plain stores.
// Thread-safety: every method from any thread; guards take no lock. Ownership: shares retired objects; retire(),
// reclaim() or the destructor frees them. REQUIRES: outlives its guards.
class EpochDomain {
 public:
  EpochDomain();
  ~EpochDomain();

  // Out of memory: a guard whose slot is_none().
  Guard enter() noexcept;
  // Registers the process for membarrier(2), on a separate thread because the kernel takes milliseconds in a
  // multithreaded process. Does nothing if already called, not supported, or no thread can be started.
  void prefer_cheap_guards();

  // REQUIRES: guards created after this call cannot reach the object. Out of memory: it is never freed.
  void retire(std::shared_ptr<const void> object) noexcept;
  // Frees the objects that no guard can refer to.
  void reclaim() noexcept;
  // Number of retired objects not yet freed.
  std::size_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }

  const ReaderSlots& slots() const noexcept { return *slots_; }

 private:
  struct Retired {
    std::uint64_t epoch;
    std::shared_ptr<const void> object;
  };

  void register_with_kernel() noexcept;

  const std::shared_ptr<ReaderSlots> slots_ = std::make_shared<ReaderSlots>();
  std::atomic<bool> interrupts_{false};  // true: the reclaimer uses membarrier; false: each reader uses a fence
  std::once_flag asked_;
  std::thread asking_;
  alignas(64) std::atomic<std::uint64_t> epoch_{1};
  alignas(64) std::atomic<std::size_t> waiting_{0};
  std::mutex mutex_;
  std::deque<Retired> retired_;  // oldest first
};

}  // namespace kiln
