#include "reference/parallel_for.hpp"

#include <kiln/process_limits.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::reference {

void parallel_for(std::int64_t count, unsigned threads, const std::function<void(std::int64_t)>& task) {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) task(i);
    } catch (...) {
      next.store(count);
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    const std::int64_t wanted = std::min<std::int64_t>(threads, count) - 1;
    std::vector<std::thread> others;
    if (wanted > 0) others.reserve(static_cast<std::size_t>(wanted));
    while (static_cast<std::int64_t>(others.size()) < wanted) {
      auto other = start_thread(work);
      if (!other) break;  // fewer do the same work
      others.push_back(std::move(*other));
    }
    work();
    for (std::thread& other : others) other.join();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace kiln::reference
