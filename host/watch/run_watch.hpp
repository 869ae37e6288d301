// RunWatch: `kiln run --watch`: a table of what the runtime does, drawn about four times a second on a terminal while
// it lives.
//
// Its numbers are those of Runtime::metrics() and their changes over the last two seconds. Lines of the log go above
// the table. Thread-safety: began() and ended() from any thread; it has a thread of its own. Ownership: borrows the
// runtime and the log's sink.
#pragma once

#include "console.hpp"
#include "progress/metrics_reading.hpp"
#include "watch/live_area.hpp"
#include "watch/watch_table.hpp"

#include <kiln/runtime.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace kiln::host {

class RunWatch {
 public:
  RunWatch(const Runtime& runtime, ConsoleLog& log, std::size_t jobs, std::uint32_t repeat);
  ~RunWatch();  // wipes the table
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  void began(const std::string& job);
  void ended(const RunReport& report);

  // Whether there is a terminal to draw on, and --progress does not ask for something else.
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
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool over_ = false;
  RunCourse run_;
  std::uint64_t begun_ns_ = 0;
  std::deque<Reading> readings_;  // of the last two seconds
  std::thread thread_;            // last: it uses the rest
};

}  // namespace kiln::host
