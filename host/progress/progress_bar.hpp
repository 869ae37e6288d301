// ProgressBar: shows how many of a known number of items are done, and the remaining time, on a progress line.
//
// On a terminal it is redrawn a few times per second. With Progress::plain it prints a line for the first item, the last
// item and once per second. Otherwise it prints nothing.
// Thread-safety: one thread at a time. Ownership: borrows the line.
#pragma once

#include "console.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/tuning.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::host {

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

// "res3_3x3: 12 of 64 [####----------------] best 1.203 ms, 14 s left". After all were measured, the best are compared again.
std::string tuning_progress_text(const std::string& job, const TuneProgress& progress);

}  // namespace kiln::host
