// RunProgress: the line that says which job runs, and beside it, on a terminal, how far warming has come behind the
// jobs.
//
// Thread-safety: job() from any thread, else main thread only; it has a thread of its own while something is warmed.
// Ownership: borrows the runtime.
#pragma once

#include "console.hpp"

#include <kiln/runtime.hpp>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace kiln::host {

class RunProgress {
 public:
  RunProgress(Progress progress, const Runtime& runtime);
  ~RunProgress();
  RunProgress(const RunProgress&) = delete;
  RunProgress& operator=(const RunProgress&) = delete;

  void job(std::string text);

 private:
  void follow();
  void draw();  // REQUIRES: mutex_ is held

  const Runtime& runtime_;
  ProgressLine line_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::string job_;
  std::thread thread_;
};

// "warming [####----] 12 of 100"; empty where nothing is warmed.
std::string warming_text(const WarmingState& state);

}  // namespace kiln::host
