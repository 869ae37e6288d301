#include "simulator/compute/worker_pool.hpp"

#include <immintrin.h>

#include <system_error>

namespace kiln::simulator {
namespace {

constexpr unsigned spins = 2'000;  // some tens of microseconds

// Waits until `value` is no longer `old`.
std::uint32_t changed(std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (unsigned i = 0; i < spins; ++i) {
    const std::uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    _mm_pause();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

WorkerPool::WorkerPool(unsigned threads) {
  workers_.reserve(threads);
  try {
    for (unsigned i = 1; i < threads; ++i) workers_.emplace_back([this, i] { serve(i); });
  } catch (const std::system_error&) {  // those that did start serve, and the caller
  }
}

WorkerPool::~WorkerPool() {
  ending_.store(true, std::memory_order_relaxed);
  burst_.fetch_add(1, std::memory_order_release);
  burst_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::run(unsigned threads, const std::function<void(unsigned)>& work) {
  if (threads > 1) {
    work_ = &work;
    wanted_ = threads;
    busy_.store(static_cast<std::uint32_t>(workers_.size()), std::memory_order_relaxed);
    burst_.fetch_add(1, std::memory_order_release);
    burst_.notify_all();
  }
  work(0);
  if (threads > 1) {
    for (std::uint32_t left = busy_.load(std::memory_order_acquire); left != 0;) left = changed(busy_, left);
  }
}

void WorkerPool::serve(unsigned number) {
  for (std::uint32_t seen = 0;;) {
    seen = changed(burst_, seen);
    if (ending_.load(std::memory_order_relaxed)) return;
    if (number < wanted_) (*work_)(number);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_all();
  }
}

}  // namespace kiln::simulator
