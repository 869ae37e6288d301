// RunProgress: the progress line of `kiln run`: the current job; on a terminal also the progress of the run, the time
// left, and the progress of warming.
//
// Thread-safety: job() and ended() from any thread, the rest from the main thread; on a terminal it starts a thread.
// Ownership: borrows the runtime.
#pragma once

#include "console.hpp"

#include <kiln/runtime.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace kiln::host {

// RunCourse: the progress of a `kiln run` in jobs and runs.
//
// Thread-safety: a value. Ownership: none.
struct RunCourse {
  std::size_t jobs = 0, ended = 0, failed = 0;
  std::uint32_t repeat = 1;
  std::uint64_t runs = 0;      // of all jobs
  std::uint64_t runs_out = 0;  // runs that will not happen, of failed jobs
  std::string job;             // the job started last
  double elapsed_s = 0;
  WarmingState warming;
};

RunCourse course_of(std::size_t jobs, std::uint32_t repeat);
void count_end(RunCourse& course, const RunReport& report);

// Returns the runs that are done or will not happen. runs_done: from the runtime's metrics.
std::uint64_t runs_over(const RunCourse& course, double runs_done);
// Returns the seconds until the end of the last run at the mean time per run; nullopt: no run has ended.
std::optional<double> seconds_left(const RunCourse& course, double runs_done);

// "warming [####----] 12 of 100"; empty: no warming.
std::string warming_text(const WarmingState& state);

class RunProgress {
 public:
  RunProgress(Progress progress, const Runtime& runtime, std::size_t jobs, std::uint32_t repeat);
  ~RunProgress();
  RunProgress(const RunProgress&) = delete;
  RunProgress& operator=(const RunProgress&) = delete;

  void job(std::string text);
  void ended(const RunReport& report);

 private:
  void follow();
  void draw();  // REQUIRES: mutex_ is held

  const Runtime& runtime_;
  ProgressLine line_;
  const std::uint64_t begun_ns_;
  std::mutex mutex_;  // guards the following members
  std::condition_variable changed_;
  bool over_ = false;
  RunCourse course_;
  double runs_done_ = 0;  // at the last update
  std::thread thread_;
};

// "job 3 of 23: layer [####----] 12 s left; warming [####----] 12 of 100"; unknown parts are omitted.
std::string run_progress_text(const RunCourse& course, double runs_done);

}  // namespace kiln::host
