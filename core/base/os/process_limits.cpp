#include <kiln/process_limits.hpp>

#include "base/os/control_group.hpp"
#include "base/os/thread_limits.hpp"

#include <kiln/stop_scope.hpp>

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>
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

bool limits_leave_threads(unsigned count, const ThreadLimitSources& sources) {
  if (memory_limit() != RLIM_INFINITY) return false;
  constexpr std::uint64_t spare = 256;  // for what others start meanwhile
  const std::uint64_t needed = count + spare;
  const auto leaves = [&](std::uint64_t used, std::uint64_t most) { return used < most && most - used >= needed; };
  // Of all users: no fewer than those of this one.
  const std::string load = text_of_kernel_file(sources.tasks);
  const std::size_t slash = load.find('/');
  if (slash == std::string::npos) return false;
  const auto tasks = number_in<std::uint64_t>(std::string_view(load).substr(slash + 1));
  const auto most_tasks = number_in<std::uint64_t>(text_of_kernel_file(sources.most_tasks));
  rlimit of_user{};
  if (!tasks || !most_tasks || !leaves(*tasks, *most_tasks)) return false;
  if (getrlimit(RLIMIT_NPROC, &of_user) != 0) return false;
  if (of_user.rlim_cur != RLIM_INFINITY && !leaves(*tasks, of_user.rlim_cur)) return false;
  const std::string membership = text_of_kernel_file(sources.membership);
  const auto version_1 = group_path_in(membership, "pids");
  const auto path = version_1 ? version_1 : group_path_in(membership, "");
  const std::filesystem::path mount = version_1 ? sources.groups / "pids" : sources.groups;
  std::error_code error;
  if (!path || !std::filesystem::exists(mount / "cgroup.procs", error)) return false;  // not what is mounted there
  bool looked = false, enough = true;
  for_each_group(mount, *path, [&](const std::filesystem::path& group) {
    looked = true;
    const std::string limit = text_of_kernel_file(group / "pids.max");
    if (limit.empty() || limit.starts_with("max")) return;  // the root has none
    const auto most = number_in<std::uint64_t>(limit);
    const auto used = number_in<std::uint64_t>(text_of_kernel_file(group / "pids.current"));
    enough = enough && most && used && leaves(*used, *most);
  });
  return looked && enough;
}

// Threads that are started and joined take a time slice of the scheduler where the cores are busy: 4 ms.
Status check_threads_left(unsigned count) {
  if (limits_leave_threads(count)) return {};
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
