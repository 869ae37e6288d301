// `kiln run --watch`: the table and its redrawing.
//
// The table of `kiln run --watch` as lines: totals and current rates.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "console.hpp"
#include "progress.hpp"
#include "run_report.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <kiln/runtime.hpp>

namespace kiln::host {

// before, now: two readings of the metrics; seconds: the time between them, for rates.
struct WatchedFigures {
  const MetricsReading& before;
  const MetricsReading& now;
  double seconds = 0;
};

std::vector<std::string> watch_lines(const RunCourse& run, const WatchedFigures& figures, std::size_t width,
                                     Colour colour);

// RunWatch: the table of `kiln run --watch`, drawn about four times per second on a terminal.
//
// It shows the numbers of Runtime::metrics() and their changes over the last two seconds. Log lines are printed above
// the table. Thread-safety: began() and ended() from any thread; it starts a thread. Ownership: borrows the runtime and
// the log's sink.

// LiveArea: lines at the end of a terminal's output that are redrawn in place.
//
// Lines are cut to the current size of the terminal. print() writes other text above them. The cursor is below the
// lines and never hidden, so the terminal needs no reset however the process ends. Thread-safety: every method from any
// thread. Ownership: borrows the descriptor; the destructor erases the lines.
class LiveArea {
 public:
  explicit LiveArea(int terminal) : terminal_(terminal) {}
  ~LiveArea();
  LiveArea(const LiveArea&) = delete;
  LiveArea& operator=(const LiveArea&) = delete;

  void draw(const std::vector<std::string>& lines);
  // Complete lines with their line ends.
  void print(std::string_view text);
  std::size_t width() const;  // of the terminal, in columns

 private:
  std::string erasure(std::size_t width) const;
  void put(std::string_view text) const;

  const int terminal_;
  std::mutex mutex_;
  std::vector<std::string> drawn_;  // on the screen
};

class RunWatch {
 public:
  RunWatch(const Runtime& runtime, ConsoleLog& log, std::size_t jobs, std::uint32_t repeat);
  ~RunWatch();  // erases the table
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  void began(const std::string& job);
  void ended(const RunReport& report);

  // Whether standard error is a terminal and --progress allows drawing.
  static bool can_draw(Progress progress);

 private:
  struct Reading {
    std::uint64_t at_ns = 0;
    MetricsReading figures;
  };
  void follow();
  void draw();  // REQUIRES: mutex_ is held

  const Runtime& runtime_;
  ConsoleLog& log_;
  const Colour colour_;
  LiveArea area_;
  std::mutex mutex_;  // guards the following members
  std::condition_variable changed_;
  bool over_ = false;
  RunCourse run_;
  std::uint64_t begun_ns_ = 0;
  std::deque<Reading> readings_;  // of the last two seconds
  std::thread thread_;            // last member: it uses the others
};

}  // namespace kiln::host
