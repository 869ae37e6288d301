// RunCourse: how far a `kiln run` has come, in jobs and in runs of theirs.
//
// Thread-safety: a value. Ownership: none.
#pragma once

#include <kiln/runtime.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kiln::host {

struct RunCourse {
  std::size_t jobs = 0, ended = 0, failed = 0;
  std::uint32_t repeat = 1;
  std::uint64_t runs = 0;      // of all jobs
  std::uint64_t runs_out = 0;  // that never come: of jobs that failed
  std::string job;             // the last that was begun
  double elapsed_s = 0;
  WarmingState warming;
};

RunCourse course_of(std::size_t jobs, std::uint32_t repeat);
void count_end(RunCourse& course, const RunReport& report);

// Runs that are behind it: done, or never to come. runs_done: as the runtime's metrics tell them.
std::uint64_t runs_over(const RunCourse& course, double runs_done);
// Seconds until the last run has ended, if those to come take as long as those before; nullopt: none has ended.
std::optional<double> seconds_left(const RunCourse& course, double runs_done);

// "warming [####----] 12 of 100"; empty where nothing is warmed.
std::string warming_text(const WarmingState& state);

}  // namespace kiln::host
