#include "progress/tuning_progress.hpp"

#include "progress/progress_bar.hpp"

#include <cstdio>

namespace kiln::host {
namespace {

constexpr std::size_t tuning_bar_places = 20;

}  // namespace

std::string tuning_progress_text(const std::string& job, const TuneProgress& progress) {
  std::string text = job + ": " + std::to_string(progress.measured) + " of " + std::to_string(progress.planned) + " " +
                     text_bar(progress.measured, progress.planned, tuning_bar_places);
  char best[48];
  std::snprintf(best, sizeof best, " best %.3f ms, ", static_cast<double>(progress.best_ns) / 1e6);
  text += progress.best_ns == 0 ? " none runs yet, " : best;
  return text + rough_time(static_cast<double>(progress.left_ns) / 1e9) + " left";
}

}  // namespace kiln::host
