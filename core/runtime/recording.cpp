#include "runtime/recording.hpp"

#include "contract/overlap.hpp"
#include "runtime/runtime_state.hpp"
#include "runtime/verification.hpp"

#include <kiln/operation.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

namespace kiln {

RecordedRequests::RecordedRequests(std::unique_ptr<RecordedState> state) : state_(std::move(state)) {}
RecordedRequests::~RecordedRequests() = default;

const DeviceInfo& RecordedRequests::device() const noexcept { return state_->report.device; }
std::size_t RecordedRequests::jobs() const noexcept { return state_->jobs; }
const std::string& RecordedRequests::selected_because() const noexcept { return state_->report.selected_because; }

namespace {

Status check_recordable(const RunRequest& request) {
  if (Status status = validate(request.spec); !status.ok()) return status;
  if (request.repeat > 1)
    return invalid_argument(std::to_string(request.repeat) + " repeats given, expected 1: each replay runs once");
  if (!request.device.empty()) {
    return invalid_argument("device " + request.device + " given, expected none: one device runs the whole recording");
  }
  if (request.timeout || request.stop != nullptr) {
    return invalid_argument("a timeout or a stop flag given, expected none. Give them to each replay");
  }
  if (Status status = check_tensors(request); !status.ok()) return status;
  if (Status status = check_on_host(request); request.verify && !status.ok()) return status.within("verify");
  return check_verifiable(request);
}

std::string name_of(const std::vector<RunRequest>& requests, std::size_t i) {
  return "recording: request " + std::to_string(i) + " '" + requests[i].name + "'";
}

bool names(const RunRequest& request, const HostTensor* tensor, bool (*with)(TensorRole)) {
  const std::vector<TensorDecl> declared = tensors_of(request.spec);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (request.tensors[i].host.get() == tensor && with(declared[i].role)) return true;
  }
  return false;
}

bool is_read(TensorRole role) { return role == TensorRole::input || role == TensorRole::inout; }

// Requests pass on what one HostTensor holds. Of two that overlap, each has device memory of its own.
Status check_apart(const std::vector<RunRequest>& requests, std::size_t writer) {
  const std::vector<TensorDecl> declared = tensors_of(requests[writer].spec);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const HostTensor* const written = is_written(declared[i].role) ? requests[writer].tensors[i].host.get() : nullptr;
    for (std::size_t other = 0; other < requests.size(); ++other) {
      for (std::size_t j = 0; j < requests[other].tensors.size() && written != nullptr; ++j) {
        const HostTensor* const tensor = requests[other].tensors[j].host.get();
        if (tensor == nullptr || tensor == written || !overlap(written->bytes(), tensor->bytes())) continue;
        const std::string name = tensors_of(requests[other].spec)[j].name;
        return shared_memory(declared[i].name, name + " of request " + std::to_string(other));
      }
    }
  }
  return {};
}

// What is compared is poisoned before and looked at after the whole: so nobody may read it earlier or write it later.
Status check_comparable(const std::vector<RunRequest>& requests, std::size_t compared) {
  const std::vector<TensorDecl> declared = tensors_of(requests[compared].spec);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const HostTensor* const tensor = requests[compared].tensors[i].host.get();
    if (tensor == nullptr) continue;
    for (std::size_t other = 0; other < requests.size(); ++other) {
      const std::string whom = "request " + std::to_string(other) + " '" + requests[other].name + "'";
      if (other < compared && is_written(declared[i].role) && names(requests[other], tensor, is_read)) {
        return invalid_argument("cannot be verified: the earlier " + whom + " reads this request's tensor " +
                                declared[i].name);
      }
      if (other > compared && names(requests[other], tensor, is_written)) {
        return invalid_argument("cannot be verified: the later " + whom + " writes this request's tensor " +
                                declared[i].name);
      }
    }
  }
  return {};
}

// The device that suits the most work suits the whole best, as far as one can know without running it.
const RunRequest& largest(const std::vector<RunRequest>& requests) {
  return *std::max_element(requests.begin(), requests.end(),
                           [](const RunRequest& a, const RunRequest& b) { return flops(a.spec) < flops(b.spec); });
}

}  // namespace

Result<std::vector<Submission>> submissions_of(RuntimeState& state, const std::vector<RunRequest>& requests,
                                               const std::shared_ptr<Device>& device, Job& recording,
                                               std::vector<RunReport>* each) {
  std::vector<Submission> submissions;
  RunReport& sum = recording.report;
  sum.device = device->info();
  sum.flops = sum.bytes = 0;
  sum.tier = Tier::invalid;
  Tier slowest = Tier::memory;
  sum.build_ns = 0;
  sum.keys.clear();
  const std::atomic<bool>* const stop = current_stop();
  for (const RunRequest& request : requests) {
    if (stop_requested(stop)) return cancelled("stopped on request");
    Job job(request);
    const StopScope building(stop);  // the request has no flag of its own
    auto acquired = state.programs.acquire(job, *device, state.planner.plan(job, *device));
    std::ranges::move(job.report.notes, std::back_inserter(sum.notes));
    const char* const what = recording.pipeline != nullptr ? "step '" : "request '";
    if (!acquired) return std::move(acquired).error().within(what + request.name + "'");
    for (const std::string& note : job.plan_notes) recording.plan_notes.push_back(request.name + ": " + note);
    recording.generic = recording.generic || acquired->generic;
    slowest = std::min(slowest, job.report.tier);  // Tier is ordered from the slowest
    sum.build_ns += job.report.build_ns;
    sum.keys.insert(sum.keys.end(), job.report.keys.begin(), job.report.keys.end());
    sum.flops += job.report.flops;
    sum.bytes += job.report.bytes;
    submissions.push_back({device, acquired->plan.keyed->plan, std::move(acquired->passes),
                           std::move(acquired->prepare), request.tensors, Deadline::never(), request.verify,
                           Completion::ordered, std::move(acquired->sources)});
    if (each != nullptr) each->push_back(std::move(job.report));
  }
  sum.tier = slowest;
  return submissions;
}

namespace {

class RequestList final : public RecordedState {
 public:
  RequestList(RuntimeState& state, std::vector<RunRequest> requests) : state_(state), requests_(std::move(requests)) {
    jobs = requests_.size();
    of_layers =
        std::ranges::all_of(requests_, [](const RunRequest& request) { return operation_of(request.spec).is_layer; });
  }

  const std::vector<RunRequest>& requests() const noexcept { return requests_; }

  Result<std::shared_ptr<Recording>> record(const std::shared_ptr<Device>& chosen, Job& job) override {
    auto submissions = submissions_of(state_, requests_, chosen, job);
    if (!submissions) return std::move(submissions).error();
    return record_with(*state_.parts->executor, std::move(*submissions));
  }

  Status replay_once(const ReplayTerms& terms, RunReport& replayed) override {
    for (const RunRequest& request : requests_) {
      if (request.verify) poison_outputs(request);
    }
    const Deadline deadline = Deadline::after(terms.timeout.value_or(state_.parts->config.executor.timeout));
    ReplayOutcome outcome = state_.runner.replay(recording, replayed.device, deadline, terms.stop);
    had_device = outcome.had_device;
    Result<Measurement>& measured = outcome.measurement;
    if (!measured) return std::move(measured).error();
    measured->tier = replayed.tier;
    replayed.first_output_ns = now_ns();
    std::optional<ResourceUse::Use> comparing;
    for (const RunRequest& request : requests_) {
      if (!request.verify) continue;
      if (!comparing) comparing.emplace(state_.parts->resources.begin(cores_of_host, "comparing"));
      Status status = state_.runner.compare(request, replayed);
      had_device = was_judged(status);
      if (!status.ok()) return status.within("request '" + request.name + "'");
    }
    replayed.runs = 1;
    replayed.variant = measured->variant;
    replayed.median = *measured;
    replayed.wall_min_ns = replayed.wall_max_ns = measured->wall_ns;
    state_.parts->metrics.ran(replayed.device.id, replayed.op, *measured);
    return {};
  }

 private:
  RuntimeState& state_;
  const std::vector<RunRequest> requests_;
};

}  // namespace

Result<std::shared_ptr<Recording>> RecordedState::record_with(Executor& executor, std::vector<Submission> submissions) {
  auto made = executor.record(std::move(submissions));
  executor_refuses = !made && made.error().code == StatusCode::unsupported;
  return made;
}

Status record_on_a_device(RuntimeState& state, Job& job, RecordedState& made) {
  job.is_recorded = true;
  job.of_layers = made.of_layers;
  while (const auto chosen = state.router.next(job)) {
    RunOutcome outcome;
    auto recording = made.record(chosen, job);
    if (!recording) outcome.status = recording.error();
    outcome.of_device = !made.executor_refuses;
    made.notes = job.plan_notes;
    // Of a job that ended with an error there is no next device.
    if (!state.router.settled(job, *chosen, outcome) || !outcome.status.ok()) continue;
    made.device = chosen;
    made.recording = std::move(*recording);
    made.report = std::move(job.report);
    return {};
  }
  return std::move(job.report.status);
}

Result<std::unique_ptr<RecordedRequests>> Runtime::record(std::vector<RunRequest> requests,
                                                          std::string_view device) try {
  if (requests.empty()) return invalid_argument("recording: no requests given, expected at least one");
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Status status = check_recordable(requests[i]);
    if (!status.ok()) return status.within(name_of(requests, i));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Status status = check_apart(requests, i);
    if (status.ok() && requests[i].verify) status = check_comparable(requests, i);
    if (!status.ok()) return status.within(name_of(requests, i));
  }
  const RuntimeState::JobScope background_waits(*state_);
  auto made = std::make_unique<RequestList>(*state_, std::move(requests));
  RunRequest wanted = largest(made->requests());
  wanted.device = device;
  wanted.stop = current_stop();
  Job job(wanted);
  job.report.name = "recording of " + std::to_string(made->jobs);
  job.report.op = "recording";
  if (Status status = record_on_a_device(*state_, job, *made); !status.ok()) return status;
  return std::unique_ptr<RecordedRequests>(new RecordedRequests(std::move(made)));
} catch (...) {
  return caught();
}

RunReport Runtime::replay(RecordedRequests& recorded, const ReplayTerms& terms) {
  RunReport report;
  try {
    const RuntimeState::JobScope background_waits(*state_);
    RecordedState& made = *recorded.state_;
    report = made.report;
    TracedWork span(state_->parts->trace, TraceArea::runtime, report.name);
    const JobMetrics::UnderWay under_way(state_->parts->metrics, report.device.id);
    made.had_device = false;
    // Before anything is written to tensors that the device may still use.
    report.status = made.recording->in_flight()
                        ? invalid_argument(
                              "replay: the recording is still in flight: an earlier replay timed out or was "
                              "cancelled, and the device has not finished that replay")
                        : made.replay_once(terms, report);
    if (report.status.code == StatusCode::device_lost) {
      const std::string aside = state_->parts->devices.set_aside(report.device.id, report.status, made.device.get());
      report.notes.push_back(report.device.id + " was lost" + (aside.empty() ? "" : " (set aside for " + aside + ")"));
    } else if (made.had_device) {
      state_->router.replayed(*made.device, report.status, made.of_layers);
    }
    state_->learner.finish(report, span);
    // The programs were there before this replay began.
    made.report.build_ns = 0;
    made.report.tier = Tier::memory;
    for (StepReport& step : made.report.steps) step.build_ns = 0, step.tier = Tier::memory;
    made.report.notes = made.notes;
  } catch (...) {
    report.status = caught();
  }
  return report;
}

}  // namespace kiln
