// BackgroundWork: a few threads that run queued tasks, started when they are needed.
//
// Thread-safety: every method from any thread. Ownership: owns the queue together with its threads. A thread that
// blocks in the operating system, for example on a dead network file system, is left behind at the end; so a task must
// share ownership of all that it uses.
#pragma once

#include <kiln/clock.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

namespace kiln {

class BackgroundWork {
 public:
  explicit BackgroundWork(std::size_t most_threads);
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;
  // As finish() without time.
  ~BackgroundWork();

  // False: no thread could be started, and the task was not queued.
  bool add(std::function<void()> task);
  // True when finish() wants the tasks to end. Outlives this object as long as a task holds it.
  std::shared_ptr<const std::atomic<bool>> stop() const noexcept { return stop_; }
  // Waits for the queued tasks until the deadline, then stops the running ones and drops the others. Waits a second
  // for the threads.
  void finish(Deadline deadline) noexcept;

 private:
  struct Shared;

  std::shared_ptr<std::atomic<bool>> stop_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace kiln
