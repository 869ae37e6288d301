// Progress on a terminal: numbers of the runtime, a bar, and the line of a run.
//
// MetricsReading: parses the text of Runtime::metrics() and returns its numbers.
//
// Thread-safety: a value. Ownership: none.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "console.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/runtime.hpp>
#include <kiln/tuning.hpp>

namespace kiln::host {

class MetricsReading {
 public:
  using Label = std::pair<std::string_view, std::string_view>;

  MetricsReading() = default;
  // Ignores lines that are not samples in the Prometheus text format.
  explicit MetricsReading(std::string_view text);

  // Returns the sum of all samples with that name and all these labels; 0: none.
  double sum(std::string_view name, const std::vector<Label>& with = {}) const;
  // Returns the values of a label among the samples of a name, each once, in the order of the text.
  std::vector<std::string> values_of(std::string_view name, std::string_view label) const;

 private:
  struct Sample {
    std::map<std::string, std::string, std::less<>> labels;
    double value = 0;
  };
  std::map<std::string, std::vector<Sample>, std::less<>> samples_;
};

// ProgressBar: shows how many of a known number of items are done, and the remaining time, on a progress line.
//
// On a terminal it is redrawn a few times per second. With Progress::plain it prints a line for the first item, the
// last item and once per second. Otherwise it prints nothing. Thread-safety: one thread at a time. Ownership: borrows
// the line.

class ProgressBar {
 public:
  // what: the text before the numbers: "opengl:0: program".
  ProgressBar(ProgressLine& line, std::string what);
  // Reports the number of items done. now: the current item; may be empty.
  void at(std::size_t done, std::size_t of, std::string_view now = {});

 private:
  ProgressLine& line_;
  const std::string what_;
  const std::uint64_t begun_ns_;
  std::uint64_t shown_ns_ = 0;  // 0: never
};

// "[####----]"
std::string text_bar(std::uint64_t done, std::uint64_t of, std::size_t places);
// "program 12 of 100 [##------] 3 s left"; with the time as soon as it can be estimated.
std::string progress_bar_text(std::string_view what, std::size_t done, std::size_t of, double elapsed_s);
// "3 s", "2 min", "1.5 h"
std::string rough_time(double seconds);

// Runs a function of cache administration with a progress bar, and erases the bar before it returns.
template <class Work>
auto with_progress(Progress progress, std::string what, const Work& work) {
  ProgressLine line(progress);
  ProgressBar bar(line, std::move(what));
  return work(CacheProgress([&bar](std::size_t done, std::size_t of) { bar.at(done, of); }));
}

// Terminal text: the size of a terminal, and the width of text in columns.
//
// Thread-safety: any thread; the size may change at any time. Ownership: values.

struct TerminalSize {  // in columns and rows; 80 x 24 if the terminal does not report it
  std::size_t width = 80, height = 24;
};

TerminalSize size_of_terminal(int terminal);

// Width of UTF-8 text: one column per character, none for escape sequences ("\033[1m").
std::size_t columns_of(std::string_view text);
// Returns the first `columns` columns, with all escape sequences.
std::string cut_to(std::string_view text, std::size_t columns);

// The progress line of tuning: variants measured, best time so far, time left.
//
// Thread-safety: a pure function. Ownership: values.

// "res3_3x3: 12 of 64 [####----------------] best 1.203 ms, 14 s left". After all were measured, the best are compared
// again.
std::string tuning_progress_text(const std::string& job, const TuneProgress& progress);

// RunProgress: the progress line of `kiln run`: the current job; on a terminal also the progress of the run, the time
// left, and the progress of warming.
//
// Thread-safety: job() and ended() from any thread, the rest from the main thread; on a terminal it starts a thread.
// Ownership: borrows the runtime.

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
