// The programs of `kiln bench`: which there are, and how one is run.
//
// The areas of `kiln bench` and the programs that measure each: what they are called with, and how long they take.
//
// Thread-safety: constants. Ownership: static text.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verbs/bench_file.hpp"

#include <kiln/clock.hpp>
#include <kiln/status.hpp>

namespace kiln::host {

struct BenchArea {
  std::string_view name;  // as typed
  std::string_view title;
};

// tuning_database: the program gets the path of the cache folder, which holds the tuning database.
enum class BenchNeeds { invalid = 0, nothing, simulated_card, tuning_database };

struct BenchProgram {
  std::string_view area;
  std::string_view program;  // a file of the benchmarks' folder
  std::string_view words;    // what it is called with, parted by blanks
  std::string_view quick_words;
  std::optional<std::string_view> stable_words;  // for counts only; nothing: it has none that are worth a run
  std::chrono::seconds usual;                    // about, on two cores; a run ends after eight times that, or a minute
  std::chrono::seconds quick;
  BenchNeeds needs = BenchNeeds::nothing;
  unsigned turns = 1;  // of each pass, behind all the others: where two processes differ by more than rounds of one do
};

// In the order in which they are run and told.
std::span<const BenchArea> bench_areas() noexcept;
std::span<const BenchProgram> bench_programs() noexcept;

// run_program: another program as a child of its own process group, under a deadline.
//
// Thread-safety: main thread only. Ownership: the child and its group are gone when it answers.

// Waits until it has ended, and calls `every_second` meanwhile. What it says goes to `log`, both of its streams.
// unavailable: cannot be started. internal: ended by a signal or with another status than 0; timeout: was ended at the
// deadline: both with the last words of the log. cancelled: `stop` was set, and the child was ended.
Status run_program(const std::vector<std::string>& words, const std::filesystem::path& log, Deadline deadline,
                   const std::atomic<bool>& stop, const std::function<void()>& every_second);

// The machine that figures are of, and whether it is quiet enough for times to mean something.
//
// Thread-safety: pure but for the threads that measure_noise() runs for half a second. Ownership: values.

// How much the time of one and the same calculation varies while every core does it: the distance of the 10 % and the
// 90 % quantile, in percent of the median.
double measure_noise();

// Processor, memory, system, load and noise of this machine, now; the compiler of this command as its one version.
BenchMachine describe_machine();

}  // namespace kiln::host
