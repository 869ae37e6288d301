// Rendezvous: a number of threads meet, or the last of them says that they did not. It proves that they run at one
// time.
//
// Thread-safety: meet() from any thread. The wait has an end, so that a failing test fails instead of hanging.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace kiln::test {

class Rendezvous {
 public:
  explicit Rendezvous(int expected) : expected_(expected) {}

  // true once all have come.
  bool meet() {
    std::unique_lock lock(mutex_);
    ++here_;
    all_here_.notify_all();
    return all_here_.wait_for(lock, std::chrono::seconds(60), [&] { return here_ >= expected_; });
  }

 private:
  const int expected_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  int here_ = 0;
};

}  // namespace kiln::test
