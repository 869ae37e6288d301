// What all handles of the C interface share: the process that opened them, the calls in progress, their worker threads.
//
// A forked child has the memory of its parent and none of its threads: handles of the parent would wait there for ever.
//
// Thread-safety: every function from any thread. Ownership: a value.
#pragma once

#include <kiln/status.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::c_interface {

// The process that opened a handle.
class OpeningProcess {
 public:
  OpeningProcess() noexcept;

  bool is_this() const noexcept { return forks_ == forks.load(std::memory_order_relaxed); }
  // unavailable in a forked child: "kiln_job_run: the runtime was opened before fork() ...".
  Status check(const char* function, const char* handle) const;

 private:
  static std::atomic<std::uint32_t> forks;  // how many led from the process that loaded the library to this one

  const std::uint32_t forks_ = forks;
};

// RunningCalls: how many calls use a handle, so that closing it can wait for them.
//
// Threads count in lines of memory of their own: a call costs two atomic additions that no other core delays.
// Thread-safety: every method from any thread. Ownership: the handle's.

class RunningCalls {
 public:
  class Scope {
   public:
    explicit Scope(RunningCalls& calls) noexcept : count_(calls.of_this_thread()) { count_.fetch_add(1); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { count_.fetch_sub(1); }

   private:
    std::atomic<std::int32_t>& count_;
  };

  void wait_until_none() const {
    for (const Line& line : lines_) {
      while (line.count.load() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  struct alignas(64) Line {
    std::atomic<std::int32_t> count{0};
  };

  std::atomic<std::int32_t>& of_this_thread() noexcept {
    // Has another address in each thread; initial-exec: found without a call.
    [[gnu::tls_model("initial-exec")]] static thread_local constinit char here = 0;
    return lines_[(reinterpret_cast<std::uintptr_t>(&here) >> 12U) % lines_.size()].count;
  }

  std::array<Line, 16> lines_;
};

// WorkerThreads: runs the requests of kiln_cache_start() and the jobs of kiln_job_start(). Its threads start with the
// first one.
//
// Thread-safety: start() from any thread. Ownership: joins its threads; work that has not begun by then is dropped,
// which the destructor of the work tells its owner.

class WorkerThreads {
 public:
  WorkerThreads() = default;
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;
  ~WorkerThreads();

  // A callback on a worker thread, of these or of others, may wait for the work: where no thread would take it at once,
  // it is done here. Throws std::bad_alloc or std::system_error.
  void start(std::function<void()> work);

 private:
  // false: it is left to the caller.
  bool hand_over(std::function<void()>& work);
  void run();

  std::mutex mutex_;  // guards everything below
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace kiln::c_interface
