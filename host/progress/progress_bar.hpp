// ProgressBar: how much of something that is counted is done and how long the rest will take, on a line of progress.
//
// On a terminal it is redrawn some times a second; with Progress::plain a line is said at the first, at the last and
// once a second. Nobody else sees anything. Thread-safety: one thread at a time. Ownership: borrows the line.
#pragma once

#include "console.hpp"

#include <kiln/cache_admin.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::host {

class ProgressBar {
 public:
  // what: the words before the numbers: "opengl:0: program".
  ProgressBar(ProgressLine& line, std::string what);
  // So many are done. now: what is being done, where there is more to say of it.
  void at(std::size_t done, std::size_t of, std::string_view now = {});

 private:
  ProgressLine& line_;
  const std::string what_;
  const std::uint64_t begun_ns_;
  std::uint64_t shown_ns_ = 0;  // 0: never
};

// "[####----]"
std::string text_bar(std::uint64_t done, std::uint64_t of, std::size_t places);
// "program 12 of 100 [##------] 3 s left"; the time where enough is done to tell.
std::string progress_bar_text(std::string_view what, std::size_t done, std::size_t of, double elapsed_s);
// "3 s", "2 min", "1.5 h"
std::string rough_time(double seconds);

// Runs something of a cache's administration with its progress shown, and wipes that before it answers.
template <class Work>
auto with_progress(Progress progress, std::string what, const Work& work) {
  ProgressLine line(progress);
  ProgressBar bar(line, std::move(what));
  return work(CacheProgress([&bar](std::size_t done, std::size_t of) { bar.at(done, of); }));
}

}  // namespace kiln::host
