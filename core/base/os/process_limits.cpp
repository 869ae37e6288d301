#include "base/os/process_limits.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <kiln/buffer.hpp>
#include <kiln/host_processor.hpp>
#include <kiln/process_limits.hpp>
#include <kiln/stop_scope.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kiln {

std::string text_of_kernel_file(const std::filesystem::path& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 16384> text;
  const ssize_t got = file ? read(file.get(), text.data(), text.size()) : -1;
  return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : std::string();
}

std::optional<std::string> group_path_in(const std::string& membership, std::string_view controller) {
  const auto names = [&](std::string_view controllers) {
    for (;;) {
      const std::size_t comma = controllers.find(',');
      if (controllers.substr(0, comma) == controller) return true;
      if (comma == std::string_view::npos) return false;
      controllers.remove_prefix(comma + 1);
    }
  };
  for (std::size_t begin = 0; begin < membership.size();) {
    const std::size_t end = std::min(membership.find('\n', begin), membership.size());
    const std::string_view line = std::string_view(membership).substr(begin, end - begin);
    begin = end + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    if (names(line.substr(first + 1, second - first - 1))) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

void for_each_group(const std::filesystem::path& mount, const std::string& path,
                    const std::function<void(const std::filesystem::path&)>& at) {
  constexpr int most_levels = 64;
  std::filesystem::path inner = std::filesystem::path(path).relative_path().lexically_normal();
  if (inner.string().starts_with("..")) return;
  for (int level = 0; level < most_levels; ++level) {
    at(mount / inner);
    if (inner.empty() || inner == ".") return;
    inner = inner.parent_path();
  }
}

// The kernel's own word, the same by which secure_getenv() and the dynamic linker go.
bool has_borrowed_rights() noexcept { return getauxval(AT_SECURE) != 0; }

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
  return unavailable("the memory limit of this process (" + std::to_string(limit / mib) + " MiB) leaves less than " +
                     std::to_string(bytes / mib) + " MiB. Raise the limit (ulimit -v, ulimit -d)");
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
        failure = unavailable("the limits of this process allow only " + std::to_string(threads.size()) +
                              " more threads, expected at least " + std::to_string(count) +
                              ". Raise the limits (ulimit -u, pids.max)");
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

namespace {

std::atomic<bool> heaps_are_roomy{false};

}  // namespace

void prefer_roomy_heaps() noexcept {
#if defined(__GLIBC__)
  constexpr int mib = 1 << 20;
  // As much as fits into a thread's heap, of which glibc reserves 64 MiB: it gets this at its making.
  mallopt(M_TOP_PAD, 48 * mib);
  mallopt(M_MMAP_THRESHOLD, 32 * mib);
  heaps_are_roomy = true;
#endif
}

void prefer_huge_pages() noexcept {
  constexpr std::uint64_t most_ns = 1'000'000;  // clearing one takes about 0.2 ms; small pages in its place, about 0.5 ms
  prefer_huge_pages(most_ns);
}

void prefer_huge_pages(std::uint64_t most_ns) noexcept {
#if defined(__GLIBC__)
  static std::atomic<bool> are_slow{false};
  if (!heaps_are_roomy || are_slow) return;
  // glibc places a thread's heap at a multiple of what it reserves, and finds a block's heap by that.
  constexpr std::uintptr_t heap_bytes = 64 << 20, huge_page = 2 << 20;
  constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, since Linux 5.14
  void* const block = std::malloc(1);
  const std::uintptr_t heap = reinterpret_cast<std::uintptr_t>(block) & ~(heap_bytes - 1);
  std::free(block);
  const auto advise = [heap](std::uintptr_t from, std::size_t bytes, int what) {
    madvise(reinterpret_cast<void*>(heap + from), bytes, what);
  };
  const auto thread_ns = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  };
  // Advice: nothing changes where there are no huge pages, and what else is mapped there keeps its contents.
  advise(0, heap_bytes, MADV_HUGEPAGE);
  // Where memory is in small pieces, the kernel moves pages for each huge one, which takes milliseconds.
  const std::uint64_t begun = thread_ns();
  advise(huge_page, 1, populate_write);
  if (thread_ns() - begun <= most_ns) return;
  are_slow = true;
  advise(0, heap_bytes, MADV_NOHUGEPAGE);
#else
  (void)most_ns;
#endif
}

unsigned threads_of_host_driver() noexcept { return std::clamp(std::thread::hardware_concurrency(), 1U, 16U) + 6; }

namespace {

thread_local const std::atomic<bool>* stop_of_thread = nullptr;

}  // namespace

StopScope::StopScope(const std::atomic<bool>* stop) noexcept : before_(stop_of_thread) { stop_of_thread = stop; }
StopScope::~StopScope() { stop_of_thread = before_; }

const std::atomic<bool>* current_stop() noexcept { return stop_of_thread; }

namespace {

// Above every clock that is sold, boosts included. What the kernel tells of clocks leaves boosts out on some machines,
// and a roof that is too low would make errors of good runs.
constexpr double clock_ghz = 6.5;
constexpr double units = 2;  // that multiply, in each core

// Floating-point operations of one unit in a cycle.
double operations() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 16 * 2;
  if (__builtin_cpu_supports("fma")) return 8 * 2;
  // Without fused operations one unit multiplies while the other adds.
  if (__builtin_cpu_supports("avx")) return 8;
  return 4;
#else
  return 0;
#endif
}

}  // namespace

unsigned host_cores() noexcept {
  // The mask of a machine with more processors than cpu_set_t holds does not fit: the sets grow until it does.
  for (std::size_t processors = CPU_SETSIZE; processors <= (std::size_t{1} << 20); processors *= 2) {
    cpu_set_t* set = CPU_ALLOC(processors);
    if (set == nullptr) return 1;
    const std::size_t bytes = CPU_ALLOC_SIZE(processors);
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return static_cast<unsigned>(count);
  }
  return 1;
}

unsigned host_processors() noexcept {
  const long count = sysconf(_SC_NPROCESSORS_CONF);
  return count > 0 ? static_cast<unsigned>(count) : 1;
}

std::string host_instructions() {
#if defined(__x86_64__)
  // What CPUID answers of features, but for those that the operating system switches on (OSXSAVE, OSPKE).
  unsigned a = 0, b = 0, c = 0, d = 0;
  std::array<unsigned, 4> words{};
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) words[0] = c & ~(1u << 27), words[1] = d;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) words[2] = b, words[3] = c & ~(1u << 4);
  char text[40];
  std::snprintf(text, sizeof text, "%08x %08x %08x %08x", words[0], words[1], words[2], words[3]);
  return text;
#else
  char text[40];
  std::snprintf(text, sizeof text, "%lx %lx", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
  return text;
#endif
}

double host_roof_gflops() noexcept { return host_cores() * units * operations() * clock_ghz; }

}  // namespace kiln
