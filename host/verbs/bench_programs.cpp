#include "verbs/bench_programs.hpp"

#include "text_table.hpp"

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/host_processor.hpp>
#include <kiln/process_limits.hpp>
#include <kiln/regular_file.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <thread>

namespace kiln::host {
namespace {

using std::chrono::seconds;

constexpr BenchArea areas[] = {
    {"cache", "Program cache"},
    {"start", "Whole processes, from outside"},
    {"conv", "Layers of four networks, and whole networks"},
    {"executor", "Executor"},
    {"selector", "Device selector, on simulated worlds"},
    {"tuner", "Tuner"},
    {"pm4", "Submissions by PM4 and the simulated card"},
};

constexpr BenchProgram programs[] = {
    {"cache",
     "cache_hits",
     "--benchmark_min_time=0.05 --benchmark_repetitions=7 --benchmark_enable_random_interleaving=true",
     "--benchmark_min_time=0.02 --benchmark_repetitions=3 --benchmark_enable_random_interleaving=true",
     {},
     seconds(45),
     seconds(12)},
    {"cache", "cache_disk", "2000", "500", {}, seconds(15), seconds(5)},
    {"cache", "cache_one_thread", "5", "1", {}, seconds(15), seconds(4)},
    {"cache", "cache_processes", "synthetic 3", "synthetic 1 20", {}, seconds(15), seconds(3)},
    {"cache", "cache_policies", "--part 0.25", "--part 0.25", {}, seconds(15), seconds(15)},
    {"cache", "cache_counts", "", "", "", seconds(2), seconds(2)},
    {"start", "start_processes", "large 7 100", "large 3 4", {}, seconds(100), seconds(10)},
    {"start", "start_processes", "large 9 10", "large 2 10", {}, seconds(35), seconds(8)},
    {"start", "start_processes", "large 15 1", "large 3 1", {}, seconds(15), seconds(5)},
    {"start", "start_processes", "simple 7 100", "simple 2 30", {}, seconds(60), seconds(10)},
    {"start", "start_processes", "simple 9 20", "simple 2 20", {}, seconds(35), seconds(8)},
    {"start", "start_processes", "command 41", "command 5", {}, seconds(4), seconds(1)},
    {"conv",
     "conv_tables",
     "--rounds 5",
     "--rounds 3 --every 12 resnet50 mobilenet_v2",
     {},
     seconds(60),
     seconds(20),
     BenchNeeds::tuning_database,
     2},
    {"conv", "networks", "--rounds 15", "--rounds 3 mobilenet_v2", {}, seconds(90), seconds(10), BenchNeeds::nothing, 2},
    {"executor", "executor_overhead",
     "--benchmark_min_time=0.2 --benchmark_repetitions=7 --benchmark_enable_random_interleaving=true",
     "--benchmark_min_time=0.02 --benchmark_repetitions=3 --benchmark_enable_random_interleaving=true",
     "--benchmark_min_time=0.05 --benchmark_filter=(streamed|replayed)/wraps:0", seconds(20), seconds(3)},
    {"executor", "executor_overlap", "overlap tiny", "overlap tiny", {}, seconds(10), seconds(10)},
    {"executor", "cpu_contention", "4", "2", {}, seconds(30), seconds(20), BenchNeeds::nothing, 2},
    {"selector", "selector", "--seeds 30", "--seeds 3", {}, seconds(20), seconds(2)},
    {"tuner", "tuner", "--layers 4 --budget 8", "--layers 1 --budget 3", {}, seconds(60), seconds(10)},
    {"pm4", "pm4_submission", "100", "10", "1", seconds(20), seconds(5), BenchNeeds::simulated_card},
    {"pm4", "interpreter", "7", "2", {}, seconds(15), seconds(5)},
};

}  // namespace

std::span<const BenchArea> bench_areas() noexcept { return areas; }
std::span<const BenchProgram> bench_programs() noexcept { return programs; }

namespace {

struct ProgramSpawn {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ProgramSpawn() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ProgramSpawn(const ProgramSpawn&) = delete;
  ProgramSpawn& operator=(const ProgramSpawn&) = delete;
  ~ProgramSpawn() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

int start_program(pid_t& pid, const std::vector<std::string>& words, const std::string& log) {
  ProgramSpawn setup;
  int error = 0;
  const auto also = [&error](int result) { error = error != 0 ? error : result; };
  also(posix_spawn_file_actions_addopen(&setup.files, 0, "/dev/null", O_RDONLY, 0));
  also(posix_spawn_file_actions_addopen(&setup.files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600));
  also(posix_spawn_file_actions_adddup2(&setup.files, 1, 2));
  also(posix_spawn_file_actions_addclosefrom_np(&setup.files, 3));
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  also(posix_spawnattr_setsigmask(&setup.attributes, &none));
  also(posix_spawnattr_setsigdefault(&setup.attributes, &all));
  also(posix_spawnattr_setpgroup(&setup.attributes, 0));
  also(posix_spawnattr_setflags(&setup.attributes,
                                POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
  if (error != 0) return error;
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  return posix_spawn(&pid, argv.front(), &setup.files, &setup.attributes, argv.data(), environ);
}

// Ends what is left of the group, and takes the child's status.
int reap(pid_t pid) {
  kill(-pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// The last lines that a program said, on one line; empty where it said nothing.
std::string last_words(const std::filesystem::path& log) {
  constexpr std::size_t most = 400;
  std::string text;
  if (const Result<RegularFile> file = RegularFile::open(log)) {
    text.resize(static_cast<std::size_t>(std::min<std::uint64_t>(file->bytes(), 2 * most)));
    if (!file->read(file->bytes() - text.size(), std::as_writable_bytes(std::span(text))).ok()) text.clear();
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > most) text = "…" + text.substr(text.size() - most);
  std::ranges::replace(text, '\n', ' ');
  return text.empty() ? "; no output" : "; last output: " + visible(text);
}

Status end_of(int status, const std::filesystem::path& log) {
  if (WIFSIGNALED(status)) {
    const char* signal = sigabbrev_np(WTERMSIG(status));
    return internal_error(std::string("ended by SIG") + (signal != nullptr ? signal : "?") + last_words(log));
  }
  if (WEXITSTATUS(status) == 0) return {};
  return internal_error("ended with status " + std::to_string(WEXITSTATUS(status)) + last_words(log));
}

}  // namespace

Status run_program(const std::vector<std::string>& words, const std::filesystem::path& log, Deadline deadline,
                   const std::atomic<bool>& stop, const std::function<void()>& every_second) {
  pid_t pid = -1;
  if (const int error = start_program(pid, words, log.string()); error != 0) {
    return unavailable(words.front() + ": cannot be started: " + std::strerror(error));
  }
  const UniqueFd ended(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!ended) {
    const int error = errno;
    reap(pid);
    return unavailable(words.front() + ": pidfd_open failed: " + std::strerror(error));
  }
  while (!stop.load()) {
    if (deadline.passed()) {
      reap(pid);
      return timed_out("timed out" + last_words(log));
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count();
    pollfd waited{ended.get(), POLLIN, 0};
    if (poll(&waited, 1, static_cast<int>(std::clamp<std::int64_t>(left + 1, 1, 1000))) > 0) {
      return end_of(reap(pid), log);
    }
    every_second();
  }
  reap(pid);
  return cancelled("was interrupted");
}

namespace {

constexpr double quiet_noise_percent = 5;
constexpr double quiet_load_a_core = 0.25;

// The text behind `key` and the separator in the first line that begins with the key.
std::string value_in(const char* file, const std::string& key, char separator) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    std::string value = line.substr(at + 1);
    std::erase(value, '"');
    const std::size_t begin = value.find_first_not_of(" \t");
    return begin == std::string::npos ? "" : value.substr(begin);
  }
  return "not known";
}

std::uint64_t calculate(std::uint64_t steps) {
  std::uint64_t value = steps;
  for (std::uint64_t i = 0; i < steps; ++i) value = value * 6364136223846793005u + 1442695040888963407u;
  return value;
}

// Times of one calculation, again and again for half a second.
std::vector<double> calculation_times() {
  constexpr std::uint64_t steps = 1'000'000;
  constexpr std::uint64_t span_ns = 500'000'000;
  std::vector<double> times;
  volatile std::uint64_t sink = calculate(steps);
  for (const std::uint64_t begin = now_ns(); now_ns() - begin < span_ns;) {
    const std::uint64_t at = now_ns();
    sink = calculate(steps + (sink & 1));
    times.push_back(static_cast<double>(now_ns() - at));
  }
  return times;
}

}  // namespace

double measure_noise() {
  std::vector<std::vector<double>> of_cores(host_cores());
  std::vector<std::thread> threads;
  threads.reserve(of_cores.size());
  for (auto& times : of_cores) {
    auto thread = start_thread([&times] { times = calculation_times(); });
    if (!thread) break;
    threads.push_back(std::move(*thread));
  }
  if (threads.empty()) of_cores.front() = calculation_times();
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (const auto& times : of_cores) all.insert(all.end(), times.begin(), times.end());
  std::ranges::sort(all);
  const auto at = [&](double share) {
    return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
  };
  return 100 * (at(0.9) - at(0.1)) / at(0.5);
}

BenchMachine describe_machine() {
  BenchMachine machine;
  machine.cpu = value_in("/proc/cpuinfo", "model name", ':');
  utsname system{};
  uname(&system);
  machine.kernel = system.release;
  machine.os = value_in("/etc/os-release", "PRETTY_NAME", '=');
  machine.cores = host_cores();
  machine.memory_bytes =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  double load[1] = {0};
  if (getloadavg(load, 1) == 1) machine.load_before = load[0];
  machine.noise_percent = std::round(100 * measure_noise()) / 100;
  machine.quiet = machine.noise_percent <= quiet_noise_percent &&
                  machine.load_before <= quiet_load_a_core * static_cast<double>(machine.cores);
#if defined(__clang__)
  machine.versions["compiler"] = "Clang " __clang_version__;
#elif defined(__GNUC__)
  machine.versions["compiler"] = std::string("GCC ") + __VERSION__;
#endif
  return machine;
}

}  // namespace kiln::host
