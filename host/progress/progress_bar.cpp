#include "progress/progress_bar.hpp"

#include <kiln/clock.hpp>

#include <algorithm>
#include <cstdio>

namespace kiln::host {
namespace {

constexpr std::size_t bar_places = 20;
constexpr std::uint64_t between_redraws_ns = 50'000'000;
constexpr std::uint64_t between_lines_ns = 1'000'000'000;
constexpr double enough_to_tell_s = 0.5;

}  // namespace

std::string text_bar(std::uint64_t done, std::uint64_t of, std::size_t places) {
  const auto full = of == 0 ? 0 : static_cast<std::size_t>(std::min(done, of) * places / of);
  return "[" + std::string(full, '#') + std::string(places - full, '-') + "]";
}

std::string rough_time(double seconds) {
  char text[32];
  if (seconds < 90) {
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  } else if (seconds < 5400) {
    std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
  } else {
    std::snprintf(text, sizeof text, "%.1f h", seconds / 3600);
  }
  return text;
}

std::string progress_bar_text(std::string_view what, std::size_t done, std::size_t of, double elapsed_s) {
  std::string text(what);
  text += " " + std::to_string(done) + " of " + std::to_string(of) + " " + text_bar(done, of, bar_places);
  if (done == 0 || done >= of || elapsed_s < enough_to_tell_s) return text;
  return text + " " + rough_time(elapsed_s * static_cast<double>(of - done) / static_cast<double>(done)) + " left";
}

ProgressBar::ProgressBar(ProgressLine& line, std::string what)
    : line_(line), what_(std::move(what)), begun_ns_(now_ns()) {}

void ProgressBar::at(std::size_t done, std::size_t of, std::string_view now) {
  const std::uint64_t at_ns = now_ns();
  const std::uint64_t pause_ns = line_.is_redrawn() ? between_redraws_ns : between_lines_ns;
  const bool worth_it = shown_ns_ == 0 || done >= of || !now.empty() || at_ns - shown_ns_ >= pause_ns;
  if (!worth_it) return;
  shown_ns_ = at_ns;
  std::string text = progress_bar_text(what_, done, of, static_cast<double>(at_ns - begun_ns_) / 1e9);
  if (!now.empty()) text.append(": ").append(now);
  line_.show(text);
}

}  // namespace kiln::host
