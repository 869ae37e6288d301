// The machine that figures are of, and whether it is quiet enough for times to mean something.
//
// Thread-safety: pure but for the threads that measure_noise() runs for half a second. Ownership: values.
#pragma once

#include "verbs/bench/bench_file.hpp"

namespace kiln::host {

// How much the time of one and the same calculation varies while every core does it: the distance of the 10 % and the
// 90 % quantile, in percent of the median.
double measure_noise();

// Processor, memory, system, load and noise of this machine, now; the compiler of this command as its one version.
BenchMachine describe_machine();

}  // namespace kiln::host
