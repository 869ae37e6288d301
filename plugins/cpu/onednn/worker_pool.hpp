// Threads that compute: the plugin's own pool, and OpenMP kept to one thread.
#pragma once

#include <omp.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::cpu {

// WorkerPool: threads that share out the tiles of one run after the other, and the thread that calls is one of them.
//
// Between runs and at the end of one a thread looks for a moment and then sleeps: where another process takes a core,
// spinning threads take away from each other what is left, which costs OpenMP's barriers 10 to 60 times the time.
// Thread-safety: one run at a time. Ownership: owns its threads, which start with the first run that has something for
// them.
class WorkerPool {
 public:
  // thread: from 0, the caller's, to threads - 1.
  using Task = std::function<void(std::size_t task, std::size_t thread)>;

  explicit WorkerPool(int threads) : threads_(threads) {}
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  int threads() const noexcept { return threads_; }
  // Runs task 0 to tasks - 1, each once, on whichever thread is free, and returns when all have run. What a task throws
  // is thrown here, once all have ended; tasks that had not begun by then do not run. Where no thread can be started
  // the caller does everything.
  void run(std::size_t tasks, const Task& task);

 private:
  void start();
  void serve(std::size_t thread);
  void work(std::size_t thread);
  bool enter();  // the round that is open, if one is
  void leave();

  static constexpr std::uint64_t open = std::uint64_t{1} << 32;  // with the number of threads inside below it
  static constexpr std::uint64_t next_round = open << 1;

  const int threads_;
  std::vector<std::thread> workers_;
  std::atomic<std::uint64_t> gate_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;  // of those who sleep
  std::condition_variable opened_, left_;

  // Of the round: written before its gate opens.
  const Task* task_ = nullptr;
  std::size_t tasks_ = 0;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

// OmpAlone: for its lifetime, parallel regions that the calling thread opens run on that thread alone.
//
// Thread-safety: the setting belongs to the calling thread; other threads' regions are untouched. oneDNN asks OpenMP
// how many threads there are both where a primitive is made and where it runs, so both happen under one of these: then
// no team is ever formed, and no barrier of OpenMP's can hold up the pool on a core that another process has taken.
class OmpAlone {
 public:
  OmpAlone() noexcept : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  OmpAlone(const OmpAlone&) = delete;
  OmpAlone& operator=(const OmpAlone&) = delete;
  ~OmpAlone() { omp_set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace kiln::cpu
