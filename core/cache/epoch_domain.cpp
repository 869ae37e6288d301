#include "cache/epoch_domain.hpp"

#include <linux/membarrier.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <kiln/process_limits.hpp>

#include <cstddef>
#include <limits>
#include <new>
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

[[gnu::tls_model("initial-exec")]] thread_local constinit ReaderSlot ReaderSlots::none_;

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

ReaderSlot& ReaderSlots::look_for_mine(const std::shared_ptr<ReaderSlots>& slots) noexcept try {
  ReaderSlot& slot = of_this_thread.in(slots);
  last_ = {slots.get(), &slot};
  return slot;
} catch (const std::bad_alloc&) {
  return none_;
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

namespace {

// The thread sanitizer knows no fences: there a reader's telling is an exchange, which is one.
#if defined(__SANITIZE_THREAD__)
constexpr bool exchange_orders = true;
#else
constexpr bool exchange_orders = false;
#endif

}  // namespace

EpochDomain::EpochDomain() {
  if (__libc_single_threaded != 0) prefer_cheap_guards();  // alone, it is granted at once
}

EpochDomain::~EpochDomain() {
  if (asking_.joinable()) asking_.join();
}

void EpochDomain::register_with_kernel() noexcept {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0) interrupts_ = true;
}

void EpochDomain::prefer_cheap_guards() {
  if (exchange_orders) return;
  std::call_once(asked_, [this] {
    if (__libc_single_threaded != 0) return register_with_kernel();
    auto asking = start_thread([this] { register_with_kernel(); });
    if (asking) asking_ = std::move(*asking);  // else guards stay as they are
  });
}

Guard EpochDomain::enter() noexcept {
  ReaderSlot& slot = ReaderSlots::mine(slots_);
  if (slot.guards++ == 0) {
    // Acquired: who reads an epoch sees everything that was taken out before it began.
    const std::uint64_t epoch = epoch_.load(std::memory_order_acquire);
    if (interrupts_.load(std::memory_order_seq_cst)) {
      slot.epoch.store(epoch, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler's part; the reclaimer does the processor's
    } else {
      slot.epoch.exchange(epoch, std::memory_order_seq_cst);
    }
  }
  return Guard(slot);
}

void EpochDomain::retire(std::shared_ptr<const void> object) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    Retired& retired = retired_.emplace_back();
    retired = {epoch_.fetch_add(1, std::memory_order_seq_cst) + 1, std::move(object)};
    waiting_.store(retired_.size(), std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    // A guard may hold it, and nothing can remember it: a reference that is never given back.
    alignas(std::shared_ptr<const void>) std::byte kept[sizeof object];
    new (kept) std::shared_ptr<const void>(std::move(object));
    return;
  }
  reclaim();
}

void EpochDomain::reclaim() noexcept {
  if (waiting() == 0) return;
  std::vector<std::shared_ptr<const void>> dead;  // destroyed after the lock is gone
  const std::lock_guard lock(mutex_);
  // Whoever tells by a plain store has seen that this is so, and this is looked at later than what was retired.
  if (interrupts_.load(std::memory_order_seq_cst)) {
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  }
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  slots_->each([&](const ReaderSlot& slot) {
    const std::uint64_t epoch = slot.epoch.load(std::memory_order_seq_cst);
    if (epoch != 0 && epoch < oldest) oldest = epoch;
  });
  try {
    while (!retired_.empty() && retired_.front().epoch <= oldest) {
      dead.emplace_back();
      dead.back() = std::move(retired_.front().object);
      retired_.pop_front();
    }
  } catch (const std::bad_alloc&) {  // the others later
  }
  waiting_.store(retired_.size(), std::memory_order_relaxed);
}

}  // namespace kiln
