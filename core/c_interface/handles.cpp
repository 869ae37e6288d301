#include "c_interface/handles.hpp"

#include <kiln/host_processor.hpp>

#include <pthread.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

namespace kiln::c_interface {

constinit std::atomic<std::uint32_t> OpeningProcess::forks{0};

OpeningProcess::OpeningProcess() noexcept {
  static const int counted = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(counted);
}

Status OpeningProcess::check(const char* function, const char* handle) const {
  if (is_this()) return {};
  return unavailable(std::string(function) + ": the " + handle +
                     " was opened before fork(), and its threads exist only in the parent process. Open another " +
                     handle + " in the child process");
}

namespace {

std::size_t most_threads() noexcept { return std::clamp<std::size_t>(host_cores(), 2, 16); }

thread_local constinit bool is_worker = false;  // this thread, of any WorkerThreads

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
  if (!hand_over(work)) work();
}

bool WorkerThreads::hand_over(std::function<void()>& work) {
  const std::lock_guard lock(mutex_);
  const bool is_full = threads_.size() >= most_threads();
  if (is_worker && is_full && idle_ <= waiting_.size()) return false;
  waiting_.push_back(std::move(work));
  if (idle_ >= waiting_.size() || is_full) {
    wake_.notify_one();
    return true;
  }
  try {
    threads_.reserve(threads_.size() + 1);
    threads_.emplace_back([this] { run(); });
  } catch (...) {
    if (!is_worker && !threads_.empty()) return true;  // those there take it
    work = std::move(waiting_.back());
    waiting_.pop_back();
    if (!is_worker) throw;
    return false;
  }
  return true;
}

void WorkerThreads::run() {
  is_worker = true;
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
