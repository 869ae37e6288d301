#include "cache/background_work.hpp"

#include <kiln/process_limits.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace kiln {

struct BackgroundWork::Shared {
  std::mutex mutex;
  std::condition_variable added, ended;
  std::deque<std::function<void()>> tasks;
  std::size_t most_threads = 0, threads = 0, idle = 0;
  bool finished = false;

  void serve() {
    std::unique_lock lock(mutex);
    while (!finished) {
      if (tasks.empty()) {
        ++idle;
        ended.notify_all();
        added.wait(lock, [&] { return finished || !tasks.empty(); });
        --idle;
        continue;
      }
      {
        std::function<void()> task = std::move(tasks.front());
        tasks.pop_front();
        lock.unlock();
        try {
          task();
        } catch (...) {  // out of memory: the task is lost
        }
        task = nullptr;  // what it owns is destroyed without the lock
      }
      lock.lock();
    }
    --threads;
    ended.notify_all();
  }
};

BackgroundWork::BackgroundWork(std::size_t most_threads)
    : stop_(std::make_shared<std::atomic<bool>>(false)), shared_(std::make_shared<Shared>()) {
  shared_->most_threads = most_threads;
}

BackgroundWork::~BackgroundWork() { finish(Deadline::after(std::chrono::nanoseconds(0))); }

bool BackgroundWork::add(std::function<void()> task) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->finished) return false;
  if (shared_->idle <= shared_->tasks.size() && shared_->threads < shared_->most_threads) {
    auto thread = start_thread([shared = shared_] { shared->serve(); });
    if (thread) {
      ++shared_->threads;
      thread->detach();
    }
  }
  if (shared_->threads == 0) return false;
  shared_->tasks.push_back(std::move(task));
  shared_->added.notify_one();
  return true;
}

void BackgroundWork::finish(Deadline deadline) noexcept {
  std::deque<std::function<void()>> dropped;
  std::unique_lock lock(shared_->mutex);
  if (shared_->finished) return;
  if (deadline.left().count() > 0) {
    shared_->ended.wait_until(lock, deadline.at,
                              [&] { return shared_->tasks.empty() && shared_->idle == shared_->threads; });
  }
  stop_->store(true);
  shared_->finished = true;
  dropped.swap(shared_->tasks);
  shared_->added.notify_all();
  shared_->ended.wait_for(lock, std::chrono::seconds(1), [&] { return shared_->threads == 0; });
}

}  // namespace kiln
