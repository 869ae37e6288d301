#include "run_watch.hpp"

#include "progress.hpp"
#include "text_table.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <sstream>

#include <kiln/clock.hpp>
#include <kiln/process_limits.hpp>

#include <unistd.h>

namespace kiln::host {
namespace {

constexpr std::string_view run_count = "kiln_runtime_run_seconds_count";
constexpr std::string_view run_seconds = "kiln_runtime_run_seconds_sum";
constexpr std::string_view stage_seconds = "kiln_runtime_stage_seconds_total";
constexpr std::string_view hits_total = "kiln_runtime_cache_hits_total";
constexpr std::string_view builds_total = "kiln_runtime_cache_builds_total";
constexpr std::size_t most_bar_places = 50;
const std::string nothing = "–";

std::string count_text(double count) { return std::to_string(static_cast<std::uint64_t>(std::llround(count))); }

std::string rate_text(double count, double seconds) {
  if (seconds <= 0) return nothing;
  return count == 0 ? "0" : short_number(count / seconds);
}

std::string time_text(double seconds) { return human_ms(seconds * 1e3); }

double change(const WatchedFigures& figures, std::string_view name,
              const std::vector<MetricsReading::Label>& with = {}) {
  return std::max(0.0, figures.now.sum(name, with) - figures.before.sum(name, with));
}

// "[####----]  41 %  12 s left"; the bar takes the room that there is.
std::string headline(const RunCourse& run, double runs_done, std::size_t width) {
  const std::uint64_t done = runs_over(run, runs_done);
  char percent[24];
  std::snprintf(percent, sizeof percent, " %3.0f %%  ",
                run.runs == 0 ? 0.0 : 100 * static_cast<double>(done) / static_cast<double>(run.runs));
  const auto left = seconds_left(run, runs_done);
  const std::string words = percent + (left ? rough_time(*left) : nothing) + " left";
  const std::size_t used = columns_of(words) + 3;  // the brackets, and the last column, which stays free
  return text_bar(done, run.runs, std::min<std::size_t>(width > used ? width - used : 0, most_bar_places)) + words;
}

std::string counts(const RunCourse& run, const WatchedFigures& figures, double runs_done) {
  std::string words = std::to_string(run.ended) + " of " + counted(run.jobs, "job");
  if (run.failed != 0) words += ", " + std::to_string(run.failed) + " failed";
  words += ", " + count_text(runs_done) + " of " + counted(run.runs, "run") + ", ";
  return words + rate_text(change(figures, run_count), figures.seconds) + " runs/s, " + rough_time(run.elapsed_s) +
         " so far";
}

TextTable watched_devices(const WatchedFigures& figures) {
  TextTable table({{"device", Align::left},
                   {"queue", Align::right},
                   {"busy", Align::right},
                   {"runs/s", Align::right},
                   {"mean run", Align::right},
                   {"runs", Align::right}});
  for (const std::string& device : figures.now.values_of("kiln_runtime_device_usable", "device")) {
    const std::vector<MetricsReading::Label> of = {{"device", device}};
    const double runs = change(figures, run_count, of), all = figures.now.sum(run_count, of);
    const double at_work = change(figures, stage_seconds, {{"device", device}, {"stage", "device"}});
    // A run is counted when it ends, also the part of it that lay before.
    const double busy = figures.seconds > 0 ? std::min(1.0, at_work / figures.seconds) : 0;
    char percent[16];
    std::snprintf(percent, sizeof percent, "%.0f %%", 100 * busy);
    table.add({visible(device), count_text(figures.now.sum("kiln_runtime_device_jobs", of)), percent,
               rate_text(runs, figures.seconds), all > 0 ? time_text(figures.now.sum(run_seconds, of) / all) : nothing,
               count_text(all)});
  }
  return table;
}

TextTable watched_tiers(const WatchedFigures& figures) {
  TextTable table({{"programs from", Align::left},
                   {"found/s", Align::right},
                   {"found", Align::right},
                   {"held", Align::right},
                   {"size", Align::right}});
  const auto add = [&](const char* what, std::string_view name, const std::vector<MetricsReading::Label>& with,
                       const std::string& held, const std::string& size) {
    table.add({what, rate_text(change(figures, name, with), figures.seconds), count_text(figures.now.sum(name, with)),
               held, size});
  };
  add("memory", hits_total, {{"tier", "memory"}}, count_text(figures.now.sum("kiln_runtime_cache_programs")),
      human_size(static_cast<std::uint64_t>(figures.now.sum("kiln_runtime_cache_memory_bytes"))));
  add("disk", hits_total, {{"tier", "disk"}}, nothing, nothing);
  for (const char* tier : {"layer", "remote"}) {
    const std::vector<MetricsReading::Label> of = {{"tier", tier}};
    if (figures.now.sum(hits_total, of) != 0) add(tier, hits_total, of, nothing, nothing);
  }
  add("a build", builds_total, {}, nothing, nothing);
  return table;
}

void add_table(std::vector<std::string>& lines, const TextTable& table, Colour colour) {
  lines.emplace_back();
  std::istringstream text(table.text());
  bool title = true;
  for (std::string line; std::getline(text, line); title = false) {
    lines.push_back(title && colour == Colour::yes ? "\033[1m" + line + "\033[0m" : line);
  }
}

}  // namespace

std::vector<std::string> watch_lines(const RunCourse& run, const WatchedFigures& figures, std::size_t width,
                                     Colour colour) {
  const double runs_done = figures.now.sum(run_count);
  std::vector<std::string> lines = {headline(run, runs_done, width), counts(run, figures, runs_done), visible(run.job)};
  add_table(lines, watched_devices(figures), colour);
  add_table(lines, watched_tiers(figures), colour);
  if (std::string warming = warming_text(run.warming); !warming.empty()) lines.push_back(std::move(warming));
  return lines;
}

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
