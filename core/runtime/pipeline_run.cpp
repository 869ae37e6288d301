// Runs of pipelines: their steps are recorded once and replayed as one job.
#include "contract/pipeline_schedule.hpp"
#include "runtime/pipeline_check.hpp"
#include "runtime/recording.hpp"
#include "runtime/runtime_state.hpp"
#include "runtime/verification.hpp"
#include "selector/sample_filter.hpp"

#include <kiln/clock.hpp>
#include <kiln/operation.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace kiln {
namespace {

std::uint64_t bytes_of(const PipelineTensor& tensor) {
  std::uint64_t bytes = size_of(tensor.dtype);
  for (const std::int64_t extent : tensor.shape) bytes *= static_cast<std::uint64_t>(extent);
  return bytes;
}

// What the selector knows the pipeline as: a bucket of its own, named by all steps with their rounds.
ShapeBucket bucket_of(const Pipeline& pipeline, const Schedule& schedule, const std::vector<std::uint64_t>& rounds) {
  ShapeBucket bucket;
  bucket.operation = "pipeline";
  std::string steps;
  bool all_known = true;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const KernelSpec& spec = schedule.steps[i]->spec;
    const selector::Effort effort = selector::effort_of(spec);
    steps += canonical_text(spec) + " x" + std::to_string(rounds[i]) + "\n";
    bucket.flops += effort.flops * static_cast<double>(rounds[i]);
    bucket.saving = std::max(bucket.saving, effort.saving);
    all_known = all_known && effort.flops > 0;
  }
  if (!all_known) bucket.flops = 0;
  bucket.family = bucket.shape = sha256(steps).hex().substr(0, 32);
  for (const PipelineTensor& tensor : pipeline.tensors) {
    if (tensor.access != Access::invalid) bucket.bytes += static_cast<double>(bytes_of(tensor));
  }
  return bucket;
}

class PipelineRun final : public RecordedState {
 public:
  // own: null, or `request`, which then lives as long as this.
  PipelineRun(RuntimeState& state, const PipelineRequest& request, Schedule schedule,
              std::unique_ptr<PipelineRequest> own = nullptr)
      : state_(state),
        own_(std::move(own)),
        request_(request),
        pipeline_(request.pipeline),
        schedule_(std::move(schedule)) {
    make_arguments();
    make_requests();
    bucket_ = bucket_of(pipeline_, schedule_, rounds_);
    jobs = schedule_.runs.size();
    of_layers = std::ranges::all_of(schedule_.steps,
                                    [](const PipelineStep* step) { return operation_of(step->spec).is_layer; });
  }

  RunReport run() {
    const RunRequest largest = largest_step();
    Job job(largest, state_.parts->trace);
    begin(job);
    remember_results();
    while (const auto chosen = state_.router.next(job)) {
      if (state_.router.settled(job, *chosen, run_on(chosen, job))) break;
    }
    return state_.learner.finish(job);
  }

  Status record_once() {
    RunRequest largest = largest_step();
    largest.stop = current_stop();
    Job job(largest, state_.parts->trace);
    begin(job);
    return record_on_a_device(state_, job, *this);
  }

  Result<Explanation> explain() {
    const RunRequest largest = largest_step();
    Job job(largest);
    job.pipeline = &bucket_;
    return state_.router.explain(job);
  }

  Result<std::shared_ptr<Recording>> record(const std::shared_ptr<Device>& chosen, Job& job) override {
    units_ = chosen->info().runs_chains ? units_of(schedule_, leaving()) : single_units(schedule_);
    auto made = record_units(chosen, job);
    const bool has_chain = std::ranges::any_of(units_, [](const ScheduleUnit& unit) { return unit.is_chain(); });
    if (!made && has_chain && made.error().code == StatusCode::unsupported) {
      job.report.notes.push_back("the layers run one by one, because they cannot run as one program: " +
                                 made.error().message);
      units_ = single_units(schedule_);
      made = record_units(chosen, job);
    }
    is_generic_ = job.generic;
    if (made) describe(**made, job.report);
    return made;
  }

  Status replay_once(const ReplayTerms& terms, RunReport& replayed) override {
    const auto is_inout = [](const PipelineTensor& tensor) { return tensor.access == Access::read_write; };
    remembers_ = false;
    if (request_.check != PipelineCheck::none || request_.measure_steps ||
        std::ranges::any_of(pipeline_.tensors, is_inout)) {
      remember_results();
    }
    RunStatistics statistics;
    Status status = run_all(recording, *device, terms, replayed, statistics);
    // Not what was compared, and not where the device may still be at it.
    const bool keeps = status.ok() || status.code == StatusCode::wrong_result || recording->in_flight();
    if (!keeps) restore_results();
    return status;
  }

 private:
  // The device that suits the step with the most work suits the whole best, as far as one can know without running it.
  RunRequest largest_step() const {
    RunRequest largest = *std::ranges::max_element(
        requests_, [](const auto& a, const auto& b) { return flops(a.spec) < flops(b.spec); });
    largest.name = pipeline_.name;
    largest.device = request_.device;
    largest.stop = request_.stop;
    largest.repeat = request_.repeat;
    largest.timeout = request_.timeout;
    return largest;
  }

  void begin(Job& job) const {
    job.pipeline = &bucket_;
    job.of_layers = of_layers;
    job.report.op = "pipeline";
    Status status = PipelineChecker(request_, schedule_, results_).check_request();
    if (!status.ok()) job.report.status = std::move(status);
  }

  // A tensor that is swapped, stays on the device, or is an input that a step overwrites, is a DeviceTensor.
  void make_arguments() {
    const auto& tensors = pipeline_.tensors;
    std::vector<bool> swapped(tensors.size());
    const auto mark = [&](const auto& self, const std::vector<PipelineStep>& steps) -> void {
      for (const PipelineStep& step : steps) {
        for (const auto& [first, second] : step.swap) {
          for (std::size_t i = 0; i < tensors.size(); ++i) {
            if (tensors[i].name == first || tensors[i].name == second) swapped[i] = true;
          }
        }
        self(self, step.steps);
      }
    };
    mark(mark, pipeline_.steps);
    std::vector<std::shared_ptr<HostTensor>> after(tensors.size());  // by storage
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!is_result(tensors[i]) || tensors[i].host == nullptr) continue;
      after[schedule_.storage_of[i]] = tensors[i].host;
      results_.push_back({tensors[i].host, {}});
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const PipelineTensor& tensor = tensors[i];
      const bool by_host =
          !swapped[i] && (is_result(tensor) || (tensor.access == Access::read && !schedule_.written[i]));
      TensorArgument argument;
      if (by_host) {
        argument.host = tensor.host;
      } else {
        auto on_device = std::make_shared<DeviceTensor>();
        on_device->bytes = bytes_of(tensor);
        on_device->before = tensor.host;  // of a result, its zeros; null of an inner tensor
        on_device->after = after[i];
        argument.device = std::move(on_device);
      }
      arguments_.push_back(std::move(argument));
    }
  }

  std::vector<TensorArgument> tensors_of_run(const StepRun& run) const {
    std::vector<TensorArgument> tensors;
    const PipelineStep& step = *schedule_.steps[run.step];
    for (std::size_t i = 0; i < run.storages.size(); ++i) {
      const bool own = run.storages[i] == StepRun::own_value;
      tensors.push_back(own ? step.arguments[i].value : arguments_[run.storages[i]]);
    }
    return tensors;
  }

  void make_requests() {
    requests_.resize(schedule_.steps.size());
    rounds_.resize(schedule_.steps.size());
    std::vector<bool> used(arguments_.size());
    for (const StepRun& run : schedule_.runs) {
      const std::vector<TensorDecl> declared = tensors_of(schedule_.steps[run.step]->spec);
      for (std::size_t i = 0; i < run.storages.size(); ++i) {
        const std::size_t at = run.storages[i];
        if (at == StepRun::own_value || used[at]) continue;
        used[at] = true;
        // What a kernel writes first holds what it was given.
        if (declared[i].role == TensorRole::output && arguments_[at].host != nullptr) poisoned_.push_back(at);
      }
      if (rounds_[run.step]++ != 0) continue;
      RunRequest& made = requests_[run.step];
      made.name = schedule_.names[run.step];
      made.spec = schedule_.steps[run.step]->spec;
      made.tensors = tensors_of_run(run);
    }
  }

  void remember_results() {
    remembers_ = true;
    for (auto& [tensor, bytes] : results_) bytes.assign(tensor->bytes().begin(), tensor->bytes().end());
  }

  // Results hold before each run what they held before the first.
  void restore_results() const {
    if (!remembers_) return;
    for (const auto& [tensor, bytes] : results_) std::memcpy(tensor->bytes().data(), bytes.data(), bytes.size());
  }

  // What a pipeline's tensors on the device hold before or after it, and host tensors, are no inner tensors of a chain.
  std::vector<bool> leaving() const {
    std::vector<bool> leaves;
    for (const TensorArgument& argument : arguments_) {
      leaves.push_back(argument.device == nullptr || argument.device->before != nullptr ||
                       argument.device->after != nullptr);
    }
    return leaves;
  }

  TensorArgument argument_of(const ScheduleUnit::Tensor& tensor) const {
    if (tensor.storage != StepRun::own_value) return arguments_[tensor.storage];
    return schedule_.steps[schedule_.runs[tensor.run].step]->arguments[tensor.argument].value;
  }

  // One request for each unit; runs of one step share theirs.
  std::vector<RunRequest> requests_of(const std::vector<ScheduleUnit>& units, std::vector<std::size_t>& of_unit) const {
    std::vector<RunRequest> requests;
    std::vector<std::size_t> of_step(schedule_.steps.size(), SIZE_MAX);
    for (const ScheduleUnit& unit : units) {
      const std::size_t step = schedule_.runs[unit.first].step;
      if (!unit.is_chain() && of_step[step] != SIZE_MAX) {
        of_unit.push_back(of_step[step]);
        continue;
      }
      of_unit.push_back(requests.size());
      if (!unit.is_chain()) {
        of_step[step] = requests.size();
        requests.push_back(requests_[step]);
        continue;
      }
      RunRequest& chain = requests.emplace_back();
      chain.name = schedule_.names[step] + " to " + schedule_.names[schedule_.runs[unit.first + unit.count - 1].step];
      chain.spec = unit.chain;
      for (const ScheduleUnit::Tensor& tensor : unit.tensors) chain.tensors.push_back(argument_of(tensor));
    }
    return requests;
  }

  Result<std::shared_ptr<Recording>> record_units(const std::shared_ptr<Device>& on, Job& job) {
    job.generic = false;
    std::vector<RunReport> reports;
    std::vector<std::size_t> request_of_unit;
    const std::vector<RunRequest> requests = requests_of(units_, request_of_unit);
    auto made = submissions_of(state_, requests, on, job, &reports);
    if (!made) return std::move(made).error();
    job.report.flops = job.report.bytes = 0;
    std::vector<Submission> submissions;
    submissions.reserve(units_.size());
    reports_.assign(schedule_.steps.size(), {});
    for (std::size_t i = 0; i < units_.size(); ++i) {
      const ScheduleUnit& unit = units_[i];
      const RunReport& of_unit = reports[request_of_unit[i]];
      Submission& added = submissions.emplace_back((*made)[request_of_unit[i]]);
      if (!unit.is_chain()) added.tensors = tensors_of_run(schedule_.runs[unit.first]);
      added.upload_outputs = request_.check != PipelineCheck::none;
      job.report.flops += of_unit.flops;
      job.report.bytes += of_unit.bytes;
      for (std::size_t run = unit.first; run < unit.first + unit.count; ++run) {
        const std::size_t step = schedule_.runs[run].step;
        reports_[step] = of_unit;
        reports_[step].op = operation(schedule_.steps[step]->spec);
        reports_[step].flops = flops(schedule_.steps[step]->spec);
        if (run != unit.first) reports_[step].build_ns = 0;  // the program is counted once
      }
    }
    return record_with(*state_.parts->executor, std::move(submissions));
  }

  RunOutcome run_on(const std::shared_ptr<Device>& chosen, Job& job) {
    RunOutcome outcome;
    restore_results();  // another device may have begun
    had_device = true;
    auto made = record(chosen, job);
    outcome.status = made ? run_all(*made, *chosen, {request_.timeout, request_.stop}, job.report, outcome.statistics)
                          : std::move(made).error();
    outcome.of_device = had_device && !executor_refuses;
    return outcome;
  }

  void describe(const Recording& made, RunReport& whole) const {
    whole.variant = std::to_string(schedule_.runs.size()) + (schedule_.runs.size() == 1 ? " run" : " runs");
    whole.intermediate_bytes = made.device_bytes;
    whole.live_bytes = made.live_bytes;
    for (const ScheduleUnit& unit : units_) whole.live_bytes = std::max(whole.live_bytes, unit.live_bytes);
    whole.steps.clear();
    for (std::size_t i = 0; i < reports_.size(); ++i) {
      StepReport& step = whole.steps.emplace_back();
      step.name = schedule_.names[i];
      step.op = reports_[i].op;
      step.variant = reports_[i].variant;
      step.tier = reports_[i].tier;
      step.build_ns = reports_[i].build_ns;
      step.rounds = rounds_[i];
      step.flops = reports_[i].flops;
    }
  }

  Status run_all(const std::shared_ptr<Recording>& made, const Device& on, const ReplayTerms& terms, RunReport& whole,
                 RunStatistics& statistics) {
    const std::uint32_t runs = std::max(request_.repeat, 1u);
    PipelineChecker checker(request_, schedule_, results_);
    for (std::uint32_t run = 0; run < runs; ++run) {
      if (kiln::stop_requested(terms.stop)) {
        return cancelled("stopped on request after " + std::to_string(run) + " runs");
      }
      const bool checked = request_.check != PipelineCheck::none && (run == 0 || run + 1 == runs);
      if (run != 0) restore_results();
      if (checked) poison();
      ReplayOutcome outcome = replay(made, on, terms);
      had_device = outcome.had_device;
      Result<Measurement>& measured = outcome.measurement;
      if (!had_device) return std::move(measured).error();
      RunConditions conditions;
      if (run == 0) conditions.build_ns = whole.build_ns;
      if (!measured) {
        conditions.status = measured.error();
        state_.parts->selector->record(bucket_, on.info(), {}, conditions);
        return conditions.status;
      }
      const bool ran_before = is_generic_ || state_.parts->history.begin_run(bucket_, on.info().id);
      conditions.contended = measured->contended;
      if (run == 0) {
        whole.first_output_ns = now_ns();
        measured->build_ns += whole.build_ns;
      }
      measured->tier = whole.tier;
      measured->first_run = !ran_before;
      Status verdict;
      if (checked) {
        const auto comparing = state_.parts->resources.begin(cores_of_host, "comparing");
        verdict = checker.compare(whole);
        measured->verified = whole.verified;
      }
      had_device = was_judged(verdict);
      if (had_device) conditions.status = verdict;
      if (!is_generic_) state_.parts->selector->record(bucket_, on.info(), *measured, conditions);
      if (!verdict.ok()) return verdict;
      const Status above = selector::check_roof({bucket_.flops, bucket_.saving}, on.info(), *measured);
      if (!above.ok()) {
        whole.first_output_ns = 0;
        return above;
      }
      statistics.add(*measured);
      state_.parts->metrics.ran(whole.device.id, whole.op, *measured);
      whole.runs = run + 1;
      if (request_.progress && !request_.progress(run + 1) && run + 1 < runs) {
        return cancelled("stopped on request after " + std::to_string(run + 1) + " runs");
      }
    }
    whole.median = statistics.median();
    whole.wall_min_ns = statistics.wall_min_ns();
    whole.wall_max_ns = statistics.wall_max_ns();
    if (request_.measure_steps) {
      restore_results();
      if (Status status = measure_steps(made, on, terms, whole); !status.ok()) return status;
    }
    if (request_.check != PipelineCheck::steps) return {};
    Status status = checker.check_steps(state_, on, requests_, terms, whole);
    had_device = status.ok();  // jobs that failed have been counted
    return status;
  }

  void poison() const {
    for (const std::size_t at : poisoned_) {
      const std::span<std::byte> bytes = arguments_[at].host->bytes();
      std::memset(bytes.data(), 0xff, bytes.size());  // NaN
    }
  }

  ReplayOutcome replay(const std::shared_ptr<Recording>& made, const Device& on, const ReplayTerms& terms,
                       bool measures_each = false) {
    if (!made->in_flight()) made->measures_each = measures_each;
    const Deadline deadline = Deadline::after(terms.timeout.value_or(state_.parts->config.executor.timeout));
    return state_.runner.replay(made, on.info(), deadline, terms.stop);
  }

  Status measure_steps(const std::shared_ptr<Recording>& made, const Device& on, const ReplayTerms& terms,
                       RunReport& whole) {
    const ReplayOutcome outcome = replay(made, on, terms, true);
    had_device = outcome.had_device;
    const Result<Measurement>& measured = outcome.measurement;
    if (!measured) return measured.error();
    if (made->measured.size() != units_.size()) return {};
    std::uint64_t inner_bytes = 0;  // chains run one after another in the same memory
    for (std::size_t i = 0; i < units_.size(); ++i) {
      const ScheduleUnit& unit = units_[i];
      const FenceResult& took = made->measured[i];
      const std::vector<std::uint64_t>& of_chain = took.chain.step_ns;
      inner_bytes = std::max(inner_bytes, took.chain.bytes);
      std::uint64_t begin = took.begun_ns;
      for (std::size_t run = 0; run < unit.count; ++run) {
        StepReport& step = whole.steps[schedule_.runs[unit.first + run].step];
        const std::uint64_t ns = !unit.is_chain() ? took.device_ns : run < of_chain.size() ? of_chain[run] : 0;
        step.device_ns += ns;
        if (begin != 0 && ns != 0) trace_step(step, begin, ns);
        begin += begin == 0 ? 0 : ns;
      }
    }
    whole.intermediate_bytes += inner_bytes;
    return {};
  }

  void trace_step(const StepReport& step, std::uint64_t begin, std::uint64_t ns) const {
    if (state_.parts->trace == nullptr) return;
    const TraceFigure figures[] = {{"op", std::string_view(step.op)}, {"variant", std::string_view(step.variant)}};
    state_.parts->trace->add_event({TraceArea::runtime, step.name, begin, begin + ns, figures});
  }

  RuntimeState& state_;
  const std::unique_ptr<PipelineRequest> own_;
  const PipelineRequest& request_;
  const Pipeline& pipeline_;
  const Schedule schedule_;
  std::vector<TensorArgument> arguments_;  // by storage
  PipelineResults results_;
  bool remembers_ = false;
  std::vector<std::size_t> poisoned_;  // storages that are filled with NaN before a run that is checked
  std::vector<RunRequest> requests_;   // by step
  std::vector<std::uint64_t> rounds_;  // by step
  ShapeBucket bucket_;
  bool is_generic_ = false;          // it runs until its own programs are built
  std::vector<RunReport> reports_;   // by step
  std::vector<ScheduleUnit> units_;  // of the recording, one for each submission
};

}  // namespace

RunReport Runtime::run(const PipelineRequest& request) {
  RunReport report;
  report.name = request.pipeline.name;
  report.op = "pipeline";
  try {
    state_->parts->cache->trim_memory();
    const RuntimeState::JobScope background_waits(*state_);
    auto made = schedule(request.pipeline);
    if (made) return PipelineRun(*state_, request, std::move(*made)).run();
    report.status = std::move(made).error();
  } catch (...) {
    report.status = caught();
  }
  return report;
}

Result<std::unique_ptr<RecordedRequests>> Runtime::record(PipelineRequest request) try {
  if (request.repeat > 1 || request.progress) {
    return invalid_argument("pipeline '" + request.pipeline.name + "': " +
                            (request.progress ? "a progress callback given, expected none"
                                              : std::to_string(request.repeat) + " repeats given, expected 1") +
                            ": each replay runs the pipeline once");
  }
  if (request.timeout || request.stop != nullptr) {
    return invalid_argument("pipeline '" + request.pipeline.name +
                            "': a timeout or a stop flag given, expected none. Give them to each replay");
  }
  const RuntimeState::JobScope background_waits(*state_);
  auto own = std::make_unique<PipelineRequest>(std::move(request));
  const PipelineRequest& kept = *own;
  auto made = schedule(kept.pipeline);
  if (!made) return std::move(made).error();
  auto run = std::make_unique<PipelineRun>(*state_, kept, std::move(*made), std::move(own));
  if (Status status = run->record_once(); !status.ok()) return status;
  return std::unique_ptr<RecordedRequests>(new RecordedRequests(std::move(run)));
} catch (...) {
  return caught();
}

Result<Explanation> Runtime::explain(const PipelineRequest& request) try {
  auto made = schedule(request.pipeline);
  if (!made) return std::move(made).error();
  return PipelineRun(*state_, request, std::move(*made)).explain();
} catch (...) {
  return caught();
}

}  // namespace kiln
