#include "progress/run_progress.hpp"

#include "progress/metrics_reading.hpp"
#include "progress/progress_bar.hpp"

#include <kiln/clock.hpp>
#include <kiln/process_limits.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace kiln::host {
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
