#include <kiln/process_limits.hpp>

#include <kiln/stop_scope.hpp>

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

namespace kiln {
namespace {

// The smallest limit on what may be mapped; RLIM_INFINITY: none.
rlim_t memory_limit() {
  rlimit address_space{RLIM_INFINITY, RLIM_INFINITY};
  rlimit data{RLIM_INFINITY, RLIM_INFINITY};
  (void)getrlimit(RLIMIT_AS, &address_space);
  (void)getrlimit(RLIMIT_DATA, &data);
  return std::min(address_space.rlim_cur, data.rlim_cur);
}

}  // namespace

Status check_memory_left(std::uint64_t bytes) {
  const rlim_t limit = memory_limit();
  if (limit == RLIM_INFINITY) return {};
  // What is asked for counts against both limits while it is mapped, and takes no memory.
  void* const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place != MAP_FAILED) {
    munmap(place, bytes);
    return {};
  }
  constexpr std::uint64_t mib = 1U << 20U;
  return unavailable("the limit of this process on memory (" + std::to_string(limit / mib) + " MiB) leaves less than " +
                     std::to_string(bytes / mib) + " MiB. Raise it (ulimit -v, ulimit -d)");
}

Status check_threads_left(unsigned count) {
  std::atomic<bool> all_started{false};
  std::vector<std::thread> threads;
  Status failure;
  try {
    threads.reserve(count);
    while (failure.ok() && threads.size() < count) {
      auto started = start_thread([&all_started] { all_started.wait(false); });
      if (started) {
        threads.push_back(std::move(*started));
      } else {
        failure = unavailable("the limits of this process leave " + std::to_string(threads.size()) +
                              " threads, needed " + std::to_string(count) + ". Raise them (ulimit -u, pids.max)");
      }
    }
  } catch (...) {
    failure = caught();
  }
  all_started = true;
  all_started.notify_all();
  for (std::thread& thread : threads) thread.join();
  return failure;
}

unsigned threads_of_host_driver() noexcept { return std::clamp(std::thread::hardware_concurrency(), 1U, 16U) + 6; }

namespace {

thread_local const std::atomic<bool>* stop_of_thread = nullptr;

}  // namespace

StopScope::StopScope(const std::atomic<bool>* stop) noexcept : before_(stop_of_thread) { stop_of_thread = stop; }
StopScope::~StopScope() { stop_of_thread = before_; }

const std::atomic<bool>* current_stop() noexcept { return stop_of_thread; }

}  // namespace kiln
