#include "progress/run_watch.hpp"

#include "progress/progress_bar.hpp"

#include <kiln/clock.hpp>
#include <kiln/process_limits.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace kiln::host {
namespace {

constexpr std::chrono::milliseconds watch_redraw{250};
constexpr std::uint64_t watch_window_ns = 2'000'000'000;

}  // namespace

bool RunWatch::can_draw(Progress progress) { return progress == Progress::automatic && stderr_is_terminal(); }

RunWatch::RunWatch(const Runtime& runtime, ConsoleLog& log, std::size_t jobs, std::uint32_t repeat)
    : runtime_(runtime),
      log_(log),
      colour_(colour_on_stderr() ? Colour::yes : Colour::no),
      area_(STDERR_FILENO),
      begun_ns_(now_ns()) {
  run_ = course_of(jobs, repeat);
  log_.redirect([this](std::string_view line) { area_.print(line); });
  auto thread = start_thread([this] { follow(); });
  if (thread) thread_ = std::move(*thread);  // else nothing is drawn
}

RunWatch::~RunWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  log_.redirect({});
}

void RunWatch::began(const std::string& job) {
  const std::lock_guard lock(mutex_);
  run_.job = job;
}

void RunWatch::ended(const RunReport& report) {
  const std::lock_guard lock(mutex_);
  count_end(run_, report);
}

void RunWatch::follow() {
  std::unique_lock lock(mutex_);
  do draw();
  while (!changed_.wait_for(lock, watch_redraw, [this] { return over_; }));
}

void RunWatch::draw() {
  const std::uint64_t now = now_ns();
  readings_.push_back({now, MetricsReading(runtime_.metrics())});
  while (readings_.size() > 2 && now - readings_[1].at_ns >= watch_window_ns) readings_.pop_front();
  run_.elapsed_s = static_cast<double>(now - begun_ns_) / 1e9;
  run_.warming = runtime_.warming();
  const Reading& before = readings_.front();
  area_.draw(watch_lines(run_,
                         {before.figures, readings_.back().figures, static_cast<double>(now - before.at_ns) / 1e9},
                         area_.width(), colour_));
}

LiveArea::~LiveArea() {
  const std::lock_guard lock(mutex_);
  if (!drawn_.empty()) put(erasure(size_of_terminal(terminal_).width));
}

std::size_t LiveArea::width() const { return size_of_terminal(terminal_).width; }

void LiveArea::draw(const std::vector<std::string>& lines) {
  const TerminalSize size = size_of_terminal(terminal_);
  const std::lock_guard lock(mutex_);
  std::string text = erasure(size.width);
  drawn_.clear();
  // One column and one row stay free: what fills the last one may scroll the screen.
  for (const std::string& line : lines) {
    if (drawn_.size() + 1 >= size.height) break;
    text += drawn_.emplace_back(cut_to(line, size.width - 1)) + "\n";
  }
  put(text);
}

void LiveArea::print(std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::string whole = drawn_.empty() ? std::string() : erasure(size_of_terminal(terminal_).width);
  whole += text;
  for (const std::string& line : drawn_) whole += line + "\n";
  put(whole);
}

// To the first of the lines, and everything from there away. A terminal that has become narrower has broken them.
std::string LiveArea::erasure(std::size_t width) const {
  std::size_t rows = 0;
  for (const std::string& line : drawn_) rows += std::max<std::size_t>((columns_of(line) + width - 1) / width, 1);
  return rows == 0 ? std::string() : "\033[" + std::to_string(rows) + "A\r\033[J";
}

// At once: what is written in pieces flickers.
void LiveArea::put(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = write(terminal_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // a terminal that is gone sees nothing
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace kiln::host
