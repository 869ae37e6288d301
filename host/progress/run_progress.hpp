// RunProgress: the line that says which job runs; on a terminal also how far the run has come, how long it will still
// take, and how far warming has come behind the jobs.
//
// Thread-safety: job() and ended() from any thread, else main thread only; on a terminal it has a thread of its own.
// Ownership: borrows the runtime.
#pragma once

#include "console.hpp"
#include "progress/run_course.hpp"

#include <kiln/runtime.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace kiln::host {

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
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool over_ = false;
  RunCourse course_;
  double runs_done_ = 0;  // when it was last asked
  std::thread thread_;
};

// "job 3 of 23: layer [####----] 12 s left; warming [####----] 12 of 100"; what is not known is left out.
std::string run_progress_text(const RunCourse& course, double runs_done);

}  // namespace kiln::host
