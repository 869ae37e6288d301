#include "progress/run_course.hpp"

#include "progress/progress_bar.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::host {
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
