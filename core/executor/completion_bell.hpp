// CompletionBell: wakes those who wait for any of several fences, of one queue or of several.
//
// Thread-safety: every method from any thread. Ownership: shared by an executor's queues. Costs who rings it one load
// while nobody listens.
#pragma once

#include <kiln/clock.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace kiln::executor {

class CompletionBell {
 public:
  // After a result can be taken.
  void ring() {
    if (listeners_.load(std::memory_order_seq_cst) == 0) return;
    {
      const std::lock_guard lock(mutex_);
      ++rings_;
    }
    rang_.notify_all();
  }

  // Calls `look` until it answers true or the deadline has passed: at once, and after each ring from then on.
  template <class Look>
  bool listen(Deadline deadline, Look look) {
    listeners_.fetch_add(1, std::memory_order_seq_cst);
    bool found = false;
    std::unique_lock lock(mutex_);
    for (;;) {
      const std::uint64_t heard = rings_;
      lock.unlock();
      found = look();
      lock.lock();
      if (found) break;
      const auto again = [&] { return rings_ != heard; };
      if (deadline.at == Deadline::never().at) {
        rang_.wait(lock, again);
      } else if (!rang_.wait_until(lock, deadline.at, again)) {
        break;
      }
    }
    lock.unlock();
    listeners_.fetch_sub(1, std::memory_order_seq_cst);
    return found;
  }

 private:
  std::atomic<std::uint32_t> listeners_{0};
  std::mutex mutex_;
  std::condition_variable rang_;
  std::uint64_t rings_ = 0;
};

}  // namespace kiln::executor
