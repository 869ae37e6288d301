#include "c_interface/worker_threads.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace kiln::c_interface {
namespace {

std::size_t most_threads() noexcept { return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 2, 16); }

}  // namespace

WorkerThreads::~WorkerThreads() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    dropped.swap(waiting_);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerThreads::start(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(work));
  if (idle_ >= waiting_.size() || threads_.size() == most_threads()) return wake_.notify_one();
  try {
    threads_.reserve(threads_.size() + 1);
    threads_.emplace_back([this] { run(); });
  } catch (...) {
    if (!threads_.empty()) return;  // those there take it
    waiting_.pop_back();
    throw;
  }
}

void WorkerThreads::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace kiln::c_interface
