#include "progress/progress_bar.hpp"

#include "report/text_table.hpp"

#include <kiln/clock.hpp>

#include <sys/ioctl.h>

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

namespace {

// How long the sequence is that begins here; 0: none does.
std::size_t escape_at(std::string_view text, std::size_t at) {
  if (text[at] != '\033' || at + 1 >= text.size() || text[at + 1] != '[') return 0;
  std::size_t end = at + 2;
  while (end < text.size() && (text[end] < '@' || text[end] > '~')) ++end;
  return std::min(end + 1, text.size()) - at;
}

}  // namespace

TerminalSize size_of_terminal(int terminal) {
  winsize size{};
  TerminalSize answer;
  if (ioctl(terminal, TIOCGWINSZ, &size) != 0) return answer;
  if (size.ws_col != 0) answer.width = size.ws_col;
  if (size.ws_row != 0) answer.height = size.ws_row;
  return answer;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t escape = escape_at(text, at);
    if (escape == 0) columns += continues_a_character(text[at]) ? 0 : 1;
    at += std::max<std::size_t>(escape, 1);
  }
  return columns;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  std::string cut;
  std::size_t used = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t escape = escape_at(text, at); escape != 0) {
      cut += text.substr(at, escape);
      at += escape;
      continue;
    }
    std::size_t end = at + 1;
    while (end < text.size() && continues_a_character(text[end])) ++end;
    if (used < columns) cut += text.substr(at, end - at);
    ++used;
    at = end;
  }
  return cut;
}

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
