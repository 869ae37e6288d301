// WorkerPool: threads that stay, for work that comes in bursts: between bursts they spin briefly, then sleep.
//
// Thread-safety: run() from one thread at a time. Ownership: owns its threads, and joins them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace kiln::simulator {

class WorkerPool {
 public:
  explicit WorkerPool(unsigned threads);  // the caller's own included
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  unsigned threads() const noexcept { return static_cast<unsigned>(workers_.size()) + 1; }

  // work(0) on the caller's thread and work(1) … work(threads - 1) on others; returns when all have. REQUIRES: threads is
  // no more than threads(); work does not throw.
  void run(unsigned threads, const std::function<void(unsigned)>& work);

 private:
  void serve(unsigned number);

  std::vector<std::thread> workers_;
  std::atomic<std::uint32_t> burst_{0};  // changes when there is work, or an end
  std::atomic<std::uint32_t> busy_{0};
  std::atomic<bool> ending_{false};
  const std::function<void(unsigned)>* work_ = nullptr;
  unsigned wanted_ = 0;
};

}  // namespace kiln::simulator
