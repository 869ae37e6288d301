#include "progress.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>

#include "text_table.hpp"

#include <kiln/clock.hpp>
#include <kiln/process_limits.hpp>

#include <sys/ioctl.h>

namespace kiln::host {
namespace {

// A label's value from behind its opening quote; takes the closing one too. nullopt: there is none.
std::optional<std::string> take_quoted(std::string_view& text) {
  std::string value;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      text.remove_prefix(at + 1);
      return value;
    }
    if (text[at] == '\\' && at + 1 < text.size()) {
      ++at;
      value += text[at] == 'n' ? '\n' : text[at];
    } else {
      value += text[at];
    }
  }
  return std::nullopt;
}

}  // namespace

MetricsReading::MetricsReading(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::size_t name_ends = line.find_first_of("{ ");
    if (name_ends == std::string_view::npos) continue;
    const std::string name(line.substr(0, name_ends));
    line.remove_prefix(name_ends);
    Sample sample;
    bool whole = true;
    if (line.front() == '{') {
      line.remove_prefix(1);
      while (whole && !line.empty() && line.front() != '}') {
        const std::size_t equals = line.find("=\"");
        whole = equals != std::string_view::npos;
        if (!whole) break;
        const std::string label(line.substr(0, equals));
        line.remove_prefix(equals + 2);
        auto value = take_quoted(line);
        whole = value.has_value();
        if (value) sample.labels[label] = std::move(*value);
        if (!line.empty() && line.front() == ',') line.remove_prefix(1);
      }
      if (whole && !line.empty()) line.remove_prefix(1);
    }
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const auto end = std::from_chars(line.data(), line.data() + line.size(), sample.value);
    if (whole && end.ec == std::errc() && end.ptr == line.data() + line.size()) {
      samples_[name].push_back(std::move(sample));
    }
  }
}

double MetricsReading::sum(std::string_view name, const std::vector<Label>& with) const {
  const auto found = samples_.find(name);
  if (found == samples_.end()) return 0;
  double sum = 0;
  for (const Sample& sample : found->second) {
    const bool all = std::ranges::all_of(with, [&](const Label& label) {
      const auto at = sample.labels.find(label.first);
      return at != sample.labels.end() && at->second == label.second;
    });
    if (all) sum += sample.value;
  }
  return sum;
}

std::vector<std::string> MetricsReading::values_of(std::string_view name, std::string_view label) const {
  std::vector<std::string> values;
  const auto found = samples_.find(name);
  if (found == samples_.end()) return values;
  for (const Sample& sample : found->second) {
    const auto at = sample.labels.find(label);
    if (at == sample.labels.end() || std::ranges::find(values, at->second) != values.end()) continue;
    values.push_back(at->second);
  }
  return values;
}

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

namespace {

constexpr std::chrono::milliseconds progress_redraw{250};
constexpr std::size_t run_bar_places = 20;
constexpr double least_elapsed_s = 0.5;  // before that nobody asks how long it takes

}  // namespace

std::string run_progress_text(const RunCourse& course, double runs_done) {
  std::string text = course.job;
  if (course.runs > 1) text += " " + text_bar(runs_over(course, runs_done), course.runs, run_bar_places);
  const auto left = seconds_left(course, runs_done);
  if (course.runs > 1 && left && course.elapsed_s >= least_elapsed_s) text += " " + rough_time(*left) + " left";
  const std::string warming = warming_text(course.warming);
  return warming.empty() ? text : text + "; " + warming;
}

RunProgress::RunProgress(Progress progress, const Runtime& runtime, std::size_t jobs, std::uint32_t repeat)
    : runtime_(runtime), line_(progress), begun_ns_(now_ns()), course_(course_of(jobs, repeat)) {
  if (!line_.is_redrawn()) return;
  auto thread = start_thread([this] { follow(); });
  if (thread) thread_ = std::move(*thread);  // else the line is not redrawn
}

RunProgress::~RunProgress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RunProgress::job(std::string text) {
  const std::lock_guard lock(mutex_);
  course_.job = std::move(text);
  if (line_.is_redrawn()) {
    draw();
  } else {
    line_.show(course_.job);
  }
}

void RunProgress::ended(const RunReport& report) {
  const std::lock_guard lock(mutex_);
  count_end(course_, report);
}

void RunProgress::follow() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, progress_redraw, [this] { return over_; })) {
    runs_done_ = MetricsReading(runtime_.metrics()).sum("kiln_runtime_run_seconds_count");
    draw();
  }
}

void RunProgress::draw() {
  course_.elapsed_s = static_cast<double>(now_ns() - begun_ns_) / 1e9;
  course_.warming = runtime_.warming();
  line_.show(run_progress_text(course_, runs_done_));
}

namespace {

constexpr std::size_t warming_bar_places = 20;

}  // namespace

RunCourse course_of(std::size_t jobs, std::uint32_t repeat) {
  RunCourse course;
  course.jobs = jobs;
  course.repeat = repeat;
  course.runs = std::uint64_t{jobs} * repeat;
  return course;
}

void count_end(RunCourse& course, const RunReport& report) {
  ++course.ended;
  if (!report.status.ok()) ++course.failed;
  course.runs_out += course.repeat - std::min(report.runs, course.repeat);
}

std::uint64_t runs_over(const RunCourse& course, double runs_done) {
  return std::min(course.runs, static_cast<std::uint64_t>(std::llround(runs_done)) + course.runs_out);
}

std::optional<double> seconds_left(const RunCourse& course, double runs_done) {
  if (runs_done <= 0) return std::nullopt;
  return static_cast<double>(course.runs - runs_over(course, runs_done)) * course.elapsed_s / runs_done;
}

std::string warming_text(const WarmingState& state) {
  if (!state.running || state.of == 0) return {};
  return "warming " + text_bar(state.done, state.of, warming_bar_places) + " " + std::to_string(state.done) + " of " +
         std::to_string(state.of);
}

}  // namespace kiln::host
