#include "reference/parallel_for.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
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
    std::vector<std::jthread> others;
    const std::int64_t wanted = std::min<std::int64_t>(threads, count) - 1;
    try {
      for (std::int64_t i = 0; i < wanted; ++i) others.emplace_back(work);
    } catch (const std::system_error&) {
      // No more threads to be had: fewer do the same work.
    }
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace kiln::reference
