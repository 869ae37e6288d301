#include "runtime/runner.hpp"

#include "config/config_text.hpp"
#include "runtime/verification.hpp"
#include "selector/sample_filter.hpp"

#include <kiln/clock.hpp>
#include <kiln/config_reader.hpp>
#include <kiln/stop_scope.hpp>
#include <kiln/traced_work.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kiln {
namespace {

// How long a wait lasts before the stop flag is read again.
constexpr std::chrono::milliseconds stop_poll{50};

using Field = std::uint64_t Measurement::*;

std::uint64_t median_of(const std::vector<Measurement>& runs, Field field) {
  std::vector<std::uint64_t> values;
  values.reserve(runs.size());
  for (const Measurement& run : runs) values.push_back(run.*field);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// REQUIRES: there is one.
Measurement median_of(const std::vector<Measurement>& runs) {
  Measurement median = runs.front();
  for (const Field field : {&Measurement::queue_ns, &Measurement::build_ns, &Measurement::upload_ns,
                            &Measurement::device_ns, &Measurement::readback_ns, &Measurement::wall_ns}) {
    median.*field = median_of(runs, field);
  }
  return median;
}

// "job 'layer' took longer than 10 s ([executor] timeout, jobs.toml:11)": which limit it was, and where it was set.
std::string too_long(const RunRequest& request, const Config& config) {
  const std::string name = request.name.empty() ? "job" : "job '" + request.name + "'";
  const auto text = [&](std::chrono::nanoseconds limit) {
    return name + " took longer than " + config::print_duration(limit.count());
  };
  if (request.timeout) return text(*request.timeout) + " (the timeout of its request)";
  const ConfigPlace place = config.place_of("executor.timeout");
  std::string origin = ", the default";
  if (place.line != 0) {
    origin = ", " + place.file + ":" + std::to_string(place.line);
  } else if (place.file != "executor.timeout") {
    origin = ", " + place.file;
  }
  return text(config.executor.timeout) + " ([executor] timeout" + origin + ")";
}

}  // namespace

Measurement RunStatistics::median() const { return median_of(runs_); }

std::optional<Measurement> RunStatistics::first() const {
  const auto first = std::ranges::find_if(runs_, &Measurement::first_run);
  return first == runs_.end() ? std::nullopt : std::optional(*first);
}

std::optional<Measurement> RunStatistics::steady_median() const {
  std::vector<Measurement> steady;
  std::ranges::remove_copy_if(runs_, std::back_inserter(steady), &Measurement::first_run);
  return steady.empty() ? std::nullopt : std::optional(median_of(steady));
}

std::uint64_t RunStatistics::wall_min_ns() const {
  return std::min_element(runs_.begin(), runs_.end(),
                          [](const Measurement& a, const Measurement& b) { return a.wall_ns < b.wall_ns; })
      ->wall_ns;
}

std::uint64_t RunStatistics::wall_max_ns() const {
  return std::max_element(runs_.begin(), runs_.end(),
                          [](const Measurement& a, const Measurement& b) { return a.wall_ns < b.wall_ns; })
      ->wall_ns;
}

RunOutcome outcome_of(const Result<AcquiredPrograms>& programs) {
  RunOutcome outcome;
  if (programs) return outcome;
  outcome.status = programs.error();
  // A timeout while waiting for another thread's build is not a device failure.
  outcome.of_device = outcome.status.code != StatusCode::timeout;
  return outcome;
}

Runner::Runner(const Config& config, TraceSink* trace, Executor& executor, ResourceUse& resources, WorkHistory& history,
               JobMetrics& metrics)
    : config_(config),
      trace_(trace),
      executor_(executor),
      resources_(resources),
      history_(history),
      metrics_(metrics) {}

RunOutcome Runner::run(Job& job, const std::shared_ptr<Device>& device, const Result<AcquiredPrograms>& programs) {
  RunOutcome outcome = outcome_of(programs);
  if (!programs) return outcome;
  const RunRequest& request = job.request;
  RunReport& report = job.report;
  const auto ends_with = [&](Status status, bool of_device = true) {
    outcome.status = std::move(status);
    outcome.of_device = of_device;
    return std::move(outcome);
  };
  if (request.may_run && !std::exchange(job.asked_to_run, true) && !request.may_run()) {
    return ends_with(cancelled("stopped on request before the first run"), false);
  }
  const InoutSnapshot snapshot(request);
  const std::uint32_t runs = std::max(request.repeat, 1u);
  for (std::uint32_t run = 0; run < runs; ++run) {
    if (stop_requested(request.stop)) {
      return ends_with(cancelled("stopped on request after " + std::to_string(run) + " runs"));
    }
    const bool compared = request.verify && (run == 0 || run + 1 == runs);
    if (run != 0) snapshot.restore();
    const bool poisoned = compared || request.poison;
    if (poisoned) poison_outputs(request);
    const std::chrono::nanoseconds patience = request.timeout.value_or(config_.executor.timeout);
    const auto run_share_ns = static_cast<std::uint64_t>(patience.count() / 2);
    const Deadline deadline = Deadline::after(patience);
    sweep();
    auto use = resources_.begin_turn(report.device, deadline, request.stop);
    if (!use) {
      Status status = std::move(use).error();
      if (status.code == StatusCode::timeout) status = status.within(too_long(request, config_));
      return ends_with(std::move(status), false);
    }
    const bool counts = !programs->generic;
    const bool ran_before = counts && history_.begin_run(request.spec, report.device.id, request.variant);
    RunConditions conditions;
    if (run == 0) conditions.build_ns = programs->build_ns;
    TracedWork dispatching(ran_before ? nullptr : trace_, TraceArea::cache, "first dispatch");
    Attempt attempt = run_once(job, device, *programs, poisoned, deadline, run == 0 ? job.chosen_ns : 0);
    Result<Measurement>& measurement = attempt.measurement;
    dispatching.end();
    conditions.contended = use->contended();
    end(*use, attempt, report.device.id, deadline);
    if (!measurement) {
      if (counts && !ran_before) history_.undo_run(request.spec, report.device.id, request.variant);
      if (measurement.error().code == StatusCode::timeout && deadline.passed()) {
        measurement = measurement.error().within(too_long(request, config_));
      }
      // Another device, or this one again, begins with what the job was given. Work in flight may still be writing.
      if (!attempt.in_flight) snapshot.restore();
      if (attempt.kept_out) return ends_with(std::move(measurement).error(), is_overdue(report.device.id));
      const bool others_had_it = measurement.error().code == StatusCode::timeout && use->waited_ns() > run_share_ns;
      if (others_had_it) return ends_with(std::move(measurement).error(), false);
      conditions.status = measurement.error();
      outcome.runs.push_back({{}, std::move(conditions)});
      return ends_with(std::move(measurement).error());
    }
    measurement->queue_ns += use->waited_ns();
    measurement->wall_ns += use->waited_ns();
    if (run == 0) {
      report.first_output_ns = now_ns();
      measurement->build_ns += programs->build_ns;
    }
    measurement->tier = programs->tier;
    measurement->first_run = !ran_before;
    measurement->contended = conditions.contended;
    Status verdict;
    if (compared) {
      const auto comparing = resources_.begin(cores_of_host, "comparing");
      verdict = compare(request, report);
      measurement->verified = report.verified;
    }
    const bool judged = was_judged(verdict);
    if (judged) conditions.status = verdict;
    outcome.runs.push_back({*measurement, conditions});
    if (!verdict.ok()) return ends_with(std::move(verdict), judged);
    // Before it is a figure: the report of a job that has such a run holds none.
    if (selector::is_above_roof(request.spec, report.device, *measurement)) {
      report.first_output_ns = 0;
      return ends_with(selector::check_roof(selector::effort_of(request.spec), report.device, *measurement));
    }
    outcome.statistics.add(*measurement);
    metrics_.ran(report.device.id, report.op, *measurement);
    report.runs = run + 1;
    if (request.progress && !request.progress(run + 1) && run + 1 < runs) {
      return ends_with(cancelled("stopped on request after " + std::to_string(run + 1) + " runs"));
    }
  }
  report.median = outcome.statistics.median();
  report.wall_min_ns = outcome.statistics.wall_min_ns();
  report.wall_max_ns = outcome.statistics.wall_max_ns();
  return outcome;
}

Runner::Attempt Runner::run_once(const Job& job, const std::shared_ptr<Device>& device,
                                 const AcquiredPrograms& programs, bool poisoned, Deadline deadline,
                                 std::uint64_t follows_ns) {
  const RunRequest& request = job.request;
  auto fence = executor_.submit({device, programs.plan.keyed->plan, programs.passes, programs.prepare, request.tensors,
                                 deadline, poisoned, request.completion, programs.sources, true});
  if (!fence) return not_submitted(std::move(fence).error());
  if (follows_ns != 0) trace_->add_link({TraceArea::selector, follows_ns, device->info().id, fence->value});
  return await(*fence, request.stop, deadline);
}

ReplayOutcome Runner::replay(const std::shared_ptr<Recording>& recording, const DeviceInfo& device, Deadline deadline,
                             const std::atomic<bool>* stop) {
  const StopScope waits(stop);
  const auto patience_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(deadline.left().count(), 0));
  sweep();
  auto use = resources_.begin_turn(device, deadline, stop);
  if (!use) return {std::move(use).error(), false};
  auto fence = executor_.replay(recording, deadline);
  Attempt attempt = fence ? await(*fence, stop, deadline) : not_submitted(fence.error());
  const bool contended = use->contended();
  end(*use, attempt, device.id, deadline);
  ReplayOutcome outcome{std::move(attempt.measurement)};
  if (!outcome.measurement) {
    const bool is_late = outcome.measurement.error().code == StatusCode::timeout;
    outcome.had_device = !is_late || use->waited_ns() <= patience_ns / 2;
    if (attempt.kept_out) outcome.had_device = is_late && is_overdue(device.id);
    return outcome;
  }
  outcome.measurement->contended = contended;
  outcome.measurement->queue_ns += use->waited_ns();
  outcome.measurement->wall_ns += use->waited_ns();
  return outcome;
}

Runner::Attempt Runner::await(Fence fence, const std::atomic<bool>* stop, Deadline deadline) {
  for (;;) {
    const Deadline slice = Deadline{std::min(deadline.at, Deadline::after(stop_poll).at)};
    auto measurement = executor_.wait(fence, stop == nullptr ? deadline : slice);
    if (measurement || measurement.error().code != StatusCode::timeout) return measurement;
    const bool stopped = stop_requested(stop);
    if (!stopped && !deadline.passed()) continue;
    const bool taken_back = executor_.cancel(fence).ok();  // what the device has begun runs to its end
    if (!deadline.passed()) measurement = cancelled("stopped on request");
    Attempt attempt(std::move(measurement), taken_back);
    if (!has_ended(fence)) attempt.in_flight = fence;
    return attempt;
  }
}

// With a timeout or a stop no slot became free.
Runner::Attempt Runner::not_submitted(Status why) {
  const bool kept_out = why.code == StatusCode::timeout || why.code == StatusCode::cancelled;
  return {std::move(why), kept_out};
}

void Runner::end(ResourceUse::Use& use, const Attempt& attempt, const std::string& device, Deadline deadline) {
  if (!attempt.in_flight) return use.end();
  use.end_turn();
  const std::lock_guard lock(left_mutex_);
  left_.push_back({*attempt.in_flight, std::move(use), device, deadline});
}

bool Runner::has_ended(Fence fence) {
  const auto measured = executor_.wait(fence, Deadline{Clock::now()});
  return measured || measured.error().code != StatusCode::timeout;
}

void Runner::sweep() {
  const std::lock_guard lock(left_mutex_);
  left_.remove_if([&](const Left& work) { return has_ended(work.fence); });
}

bool Runner::is_overdue(const std::string& device) {
  sweep();
  const std::lock_guard lock(left_mutex_);
  return std::ranges::any_of(left_,
                             [&](const Left& work) { return work.device == device && work.deadline.passed(); });
}

Status Runner::compare(const RunRequest& request, RunReport& report) {
  const auto compared = verify_outputs(request);
  if (!compared) return compared.error().within("the output could not be compared");
  if (!compared->has_value()) return {};
  const std::optional<Verdict>& verdict = *compared;
  const bool worse = !report.worst || (report.verified.value_or(true) && !verdict->within);
  report.verified = verdict->within && report.verified.value_or(true);
  report.max_rel_error = std::max(report.max_rel_error, verdict->max_rel_error);
  report.error_bound = verdict->error_bound;
  if (worse) {
    report.compared_elements = verdict->elements;
    report.wrong_elements = verdict->wrong;
    report.worst = verdict->worst;
  }
  if (verdict->within) return {};
  return wrong_result(report.device.id + ": " + wrong_text(*verdict));
}

}  // namespace kiln
