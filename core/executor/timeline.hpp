// CompletionBell: wakes threads that wait for any of several fences of one or more queues.
//
// ring() is one load while no thread listens.
// Thread-safety: every method from any thread. Ownership: shared by an executor's queues.
#pragma once

#include <kiln/clock.hpp>
#include <kiln/measurement.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace kiln::executor {

class CompletionBell {
 public:
  // Call it after a result became available.
  void ring() {
    if (listeners_.load(std::memory_order_seq_cst) == 0) return;
    {
      const std::lock_guard lock(mutex_);
      ++rings_;
    }
    rang_.notify_all();
  }

  // Calls `look` at once and after each ring(), until it returns true or the deadline has passed.
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

// spin_until: waits a few microseconds without a system call, which is cheaper than a sleep with its wake-up.
//
// Thread-safety: as the condition.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Returns whether done() became true in time.
template <class Done>
bool spin_until(std::chrono::nanoseconds patience, Done done) {
  if (done()) return true;
  if (patience <= std::chrono::nanoseconds::zero()) return false;
  const Clock::time_point end = Clock::now() + patience;
  do {
    for (int turn = 0; turn < 16; ++turn) {
      relax();
      if (done()) return true;
    }
  } while (Clock::now() < end);
  return false;
}

// SchedulingHooks: lets a test schedule the threads of a queue: one thread runs at a time, from one step to the next.
// Without hooks the system schedules.
//
// Thread-safety: called by the scheduled threads. Ownership: outlives the queue.
class SchedulingHooks {
 public:
  SchedulingHooks() = default;
  SchedulingHooks(const SchedulingHooks&) = delete;
  SchedulingHooks& operator=(const SchedulingHooks&) = delete;
  virtual ~SchedulingHooks() = default;

  // Called before a thread is started; the thread calls begin() first and end() last.
  virtual void start() noexcept = 0;
  virtual void begin() noexcept = 0;
  virtual void end() noexcept = 0;

  // Another thread may run before the caller continues. REQUIRES: no lock is held.
  virtual void step() noexcept = 0;
  // Waits until it is woken at the same place; unlocks `lock` meanwhile.
  virtual void sleep(const void* place, std::unique_lock<std::mutex>& lock) noexcept = 0;
  enum class Whom : std::uint8_t { invalid = 0, one, all };
  virtual void wake(const void* place, Whom whom) noexcept = 0;
};

// Timeline: the fences of one queue, with values from 1. Each result is stored until it is taken once.
//
// Results that are not taken remain until the timeline is destroyed. Entries are reused, so a steady stream of jobs
// allocates nothing.
// Thread-safety: every method from any thread. Ownership: owns the results.

class Timeline {
 public:
  explicit Timeline(std::string name) : name_(std::move(name)) {}

  // Returns the next value. deadline: of the job.
  std::uint64_t open(Deadline deadline);
  // Once per value, in any order; announce() follows, once for several values if possible, and without a lock.
  void finish(std::uint64_t value, Result<Measurement> outcome);
  void announce() noexcept { finished_.notify_all(); }

  // Spins for at most `spin`, then sleeps. timeout: the earlier of `deadline` and the job's deadline has passed; after
  // the job's deadline was reported once, later calls use `deadline` only. not_found: never opened, or already taken.
  Result<Measurement> wait(std::uint64_t value, Deadline deadline, std::chrono::nanoseconds spin);

  enum class State : std::uint8_t { invalid = 0, pending, finished, gone };
  State state(std::uint64_t value) const;
  Status gone(std::uint64_t value) const;  // the not_found of wait()

 private:
  struct Entry {
    Deadline deadline;
    bool late = false;  // the job's deadline was reported
    std::optional<Result<Measurement>> outcome;
  };
  using Entries = std::unordered_map<std::uint64_t, Entry>;

  void advance();  // finished_through_. REQUIRES: mutex_ is held
  Status gone_locked(std::uint64_t value) const;

  const std::string name_;
  std::atomic<std::uint64_t> finished_through_{0};  // all values up to this one are finished
  mutable std::mutex mutex_;
  std::condition_variable finished_;
  std::uint64_t last_ = 0;
  Entries entries_;
  std::vector<Entries::node_type> spare_;
};

}  // namespace kiln::executor
