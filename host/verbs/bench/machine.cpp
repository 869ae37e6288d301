#include "verbs/bench/machine.hpp"

#include <kiln/clock.hpp>
#include <kiln/process_limits.hpp>

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace kiln::host {
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

std::uint64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::max(1u, std::thread::hardware_concurrency());
  return static_cast<std::uint64_t>(CPU_COUNT(&set));
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
  std::vector<std::vector<double>> of_cores(usable_cores());
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
  machine.cores = usable_cores();
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
