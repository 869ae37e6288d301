// run_program: another program as a child of its own process group, under a deadline.
//
// Thread-safety: main thread only. Ownership: the child and its group are gone when it answers.
#pragma once

#include "verbs/bench/bench_file.hpp"

#include <kiln/clock.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kiln::host {

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
