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
#include <memory>

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

}  // namespace kiln
