#include "cache/memory/reader_slots.hpp"

#include <vector>

namespace kiln {

// What one thread holds in all caches that it reads from.
class SlotsOfThread {
 public:
  ~SlotsOfThread();
  ReaderSlot& in(const std::shared_ptr<ReaderSlots>& slots);

 private:
  struct Held {
    std::shared_ptr<ReaderSlots> slots;
    ReaderSlots::Owned* owned;
  };
  std::vector<Held> held_;
};

namespace {

thread_local SlotsOfThread of_this_thread;

}  // namespace

[[gnu::tls_model("initial-exec")]] thread_local constinit ReaderSlots::Last ReaderSlots::last_{nullptr, nullptr};

SlotsOfThread::~SlotsOfThread() {
  ReaderSlots::last_ = {nullptr, nullptr};
  for (const Held& held : held_) held.owned->taken.store(false, std::memory_order_release);
}

ReaderSlot& SlotsOfThread::in(const std::shared_ptr<ReaderSlots>& slots) {
  for (const Held& held : held_) {
    if (held.slots == slots) return held.owned->slot;
  }
  // Of caches that are gone only this thread still knows.
  std::erase_if(held_, [](const Held& held) { return held.slots.use_count() == 1; });
  held_.reserve(held_.size() + 1);
  ReaderSlots::Owned& owned = slots->take();
  held_.push_back({slots, &owned});
  return owned.slot;
}

ReaderSlots::~ReaderSlots() {
  for (const Block* block = first_.next.load(); block != nullptr;) {
    const Block* next = block->next.load();
    delete block;
    block = next;
  }
}

ReaderSlot& ReaderSlots::look_for_mine(const std::shared_ptr<ReaderSlots>& slots) {
  ReaderSlot& slot = of_this_thread.in(slots);
  last_ = {slots.get(), &slot};
  return slot;
}

ReaderSlots::Owned& ReaderSlots::take() {
  for (Block* block = &first_;;) {
    for (Owned& owned : block->slots) {
      if (!owned.taken.load(std::memory_order_relaxed) && !owned.taken.exchange(true, std::memory_order_acquire)) {
        return owned;
      }
    }
    Block* next = block->next.load(std::memory_order_acquire);
    if (next == nullptr) {
      auto fresh = std::make_unique<Block>();
      if (block->next.compare_exchange_strong(next, fresh.get(), std::memory_order_acq_rel)) next = fresh.release();
    }
    block = next;
  }
}

}  // namespace kiln
