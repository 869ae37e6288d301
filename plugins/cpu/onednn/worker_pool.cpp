#include "onednn/worker_pool.hpp"

#include <kiln/clock.hpp>

#include <system_error>

namespace kiln::cpu {
namespace {

// About what waking a thread costs.
constexpr std::uint64_t look_ns = 50'000;

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <class Done>
bool look_for(const Done& done) {
  const std::uint64_t end = now_ns() + look_ns;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      relax();
    }
  } while (now_ns() < end);
  return false;
}

}  // namespace

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true);
  }
  opened_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::start() {
  try {
    workers_.reserve(static_cast<std::size_t>(threads_ - 1));
    while (static_cast<int>(workers_.size()) < threads_ - 1) {
      workers_.emplace_back([this, thread = workers_.size() + 1] { serve(thread); });
    }
  } catch (const std::system_error&) {
    // Those that did start serve, and the caller.
  }
}

bool WorkerPool::enter() {
  std::uint64_t gate = gate_.load(std::memory_order_acquire);
  while ((gate & open) != 0) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void WorkerPool::leave() {
  const std::uint64_t before = gate_.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & open) != 0 || (before & (open - 1)) != 1) return;
  const std::lock_guard lock(mutex_);  // the caller does not miss it between its look and its sleep
  left_.notify_one();
}

void WorkerPool::serve(std::size_t thread) {
  const OmpAlone alone;
  std::uint64_t seen = 0;  // the round that this thread was in last
  const auto news = [&] {
    const std::uint64_t gate = gate_.load(std::memory_order_acquire);
    return stopping_.load(std::memory_order_relaxed) || ((gate & open) != 0 && gate / next_round != seen);
  };
  for (;;) {
    if (!look_for(news)) {
      std::unique_lock lock(mutex_);
      opened_.wait(lock, news);
    }
    if (stopping_.load()) return;
    if (!enter()) continue;
    seen = gate_.load(std::memory_order_relaxed) / next_round;
    work(thread);
    leave();
  }
}

void WorkerPool::work(std::size_t thread) {
  try {
    for (std::size_t task = next_.fetch_add(1); task < tasks_ && !failed_.load(std::memory_order_relaxed);
         task = next_.fetch_add(1)) {
      (*task_)(task, thread);
    }
  } catch (...) {
    if (!failed_.exchange(true)) failure_ = std::current_exception();
  }
}

void WorkerPool::run(std::size_t tasks, const Task& task) {
  task_ = &task;
  tasks_ = tasks;
  next_.store(0, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  failure_ = nullptr;
  if (tasks > 1 && threads_ > 1 && workers_.empty()) start();
  const bool shared = tasks > 1 && !workers_.empty();
  if (shared) {
    {
      const std::lock_guard lock(mutex_);
      gate_.fetch_add(next_round | open, std::memory_order_acq_rel);
    }
    opened_.notify_all();
  }
  work(0);
  if (shared) {
    gate_.fetch_sub(open, std::memory_order_acq_rel);  // who comes too late stays outside
    const auto empty = [&] { return (gate_.load(std::memory_order_acquire) & (open - 1)) == 0; };
    if (!look_for(empty)) {
      std::unique_lock lock(mutex_);
      left_.wait(lock, empty);
    }
  }
  if (failed_) std::rethrow_exception(failure_);
}

}  // namespace kiln::cpu
