// WorkerThreads: runs the requests of kiln_cache_start(). Its threads start with the first request.
//
// Thread-safety: start() from any thread. Ownership: joins its threads; work that has not begun by then is dropped,
// which the destructor of the work tells its owner.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::c_interface {

class WorkerThreads {
 public:
  WorkerThreads() = default;
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;
  ~WorkerThreads();

  // Throws std::bad_alloc or std::system_error.
  void start(std::function<void()> work);

 private:
  void run();

  std::mutex mutex_;  // guards everything below
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace kiln::c_interface
