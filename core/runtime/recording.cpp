// Requests that are recorded once and replayed as one job.
#include "runtime/runtime_state.hpp"
#include "runtime/verification.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

namespace kiln {

struct RecordedState {
  std::vector<RunRequest> requests;
  std::shared_ptr<Device> device;
  std::shared_ptr<Recording> recording;
  RunReport report;                // of what every replay has alike
  std::vector<std::string> notes;  // of the plans, with the names of their requests
};

RecordedRequests::RecordedRequests(std::unique_ptr<RecordedState> state) : state_(std::move(state)) {}
RecordedRequests::~RecordedRequests() = default;

const DeviceInfo& RecordedRequests::device() const noexcept { return state_->report.device; }
std::size_t RecordedRequests::jobs() const noexcept { return state_->requests.size(); }
const std::string& RecordedRequests::selected_because() const noexcept { return state_->report.selected_because; }

namespace {

Status check_recordable(const RunRequest& request) {
  if (Status status = validate(request.spec); !status.ok()) return status;
  if (request.repeat > 1)
    return invalid_argument("asks for " + std::to_string(request.repeat) + " repeats, expected 1");
  if (!request.device.empty()) {
    return invalid_argument("asks for device " + request.device + "; one device serves the whole recording");
  }
  if (request.timeout || request.stop != nullptr) {
    return invalid_argument("has a timeout or a stop of its own; they are those of the replay");
  }
  if (Status status = check_tensors(request); !status.ok()) return status;
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
bool is_written(TensorRole role) { return role == TensorRole::output || role == TensorRole::inout; }

// What is compared is poisoned before and looked at after the whole: so nobody may read it earlier or write it later.
Status check_comparable(const std::vector<RunRequest>& requests, std::size_t compared) {
  const std::vector<TensorDecl> declared = tensors_of(requests[compared].spec);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const HostTensor* const tensor = requests[compared].tensors[i].host.get();
    if (tensor == nullptr) continue;
    for (std::size_t other = 0; other < requests.size(); ++other) {
      const std::string whom = "request " + std::to_string(other) + " '" + requests[other].name + "'";
      if (other < compared && is_written(declared[i].role) && names(requests[other], tensor, is_read)) {
        return invalid_argument("cannot be verified: " + whom + " before it reads its tensor " + declared[i].name);
      }
      if (other > compared && names(requests[other], tensor, is_written)) {
        return invalid_argument("cannot be verified: " + whom + " after it writes its tensor " + declared[i].name);
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
  for (const RunRequest& request : requests) {
    Job job(request);
    auto acquired = state.programs.acquire(job, *device, state.planner.plan(job, *device));
    std::ranges::move(job.report.notes, std::back_inserter(sum.notes));
    if (!acquired) return std::move(acquired).error().within("request '" + request.name + "'");
    for (const std::string& note : job.plan_notes) recording.plan_notes.push_back(request.name + ": " + note);
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

Status replay_once(RuntimeState& state, const RecordedState& recorded, const ReplayTerms& terms, RunReport& report) {
  for (const RunRequest& request : recorded.requests) {
    if (request.verify) poison_outputs(request);
  }
  const Deadline deadline = Deadline::after(terms.timeout.value_or(state.parts->config.executor.timeout));
  auto measured = state.runner.replay(recorded.recording, report.device, deadline, terms.stop);
  if (!measured) {
    if (measured.error().code == StatusCode::device_lost) {
      const std::string aside =
          state.parts->devices.set_aside(report.device.id, measured.error(), recorded.device.get());
      report.notes.push_back(report.device.id + " was lost" + (aside.empty() ? "" : " (set aside for " + aside + ")"));
    }
    return std::move(measured).error();
  }
  measured->tier = report.tier;
  report.first_output_ns = now_ns();
  std::optional<ResourceUse::Use> comparing;
  for (const RunRequest& request : recorded.requests) {
    if (!request.verify) continue;
    if (!comparing) comparing.emplace(state.parts->resources.begin(cores_of_host, "comparing"));
    Status status = state.runner.compare(request, report);
    if (!status.ok()) return status.within("request '" + request.name + "'");
  }
  report.runs = 1;
  report.variant = measured->variant;
  report.median = *measured;
  report.wall_min_ns = report.wall_max_ns = measured->wall_ns;
  return {};
}

}  // namespace

Result<std::unique_ptr<RecordedRequests>> Runtime::record(std::vector<RunRequest> requests,
                                                          std::string_view device) try {
  if (requests.empty()) return invalid_argument("recording: no requests given, expected at least one");
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Status status = check_recordable(requests[i]);
    if (!status.ok()) return status.within(name_of(requests, i));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Status status = requests[i].verify ? check_comparable(requests, i) : Status{};
    if (!status.ok()) return status.within(name_of(requests, i));
  }
  const RuntimeState::JobScope background_waits(*state_);
  auto made = std::make_unique<RecordedState>();
  made->requests = std::move(requests);
  RunRequest wanted = largest(made->requests);
  wanted.device = device;
  Job job(wanted);
  job.report.name = "recording of " + std::to_string(made->requests.size());
  job.report.op = "recording";
  while (const auto chosen = state_->router.next(job)) {
    RunOutcome outcome;
    auto submissions = submissions_of(*state_, made->requests, chosen, job);
    if (submissions) {
      auto recording = state_->parts->executor->record(std::move(*submissions));
      if (recording) made->recording = std::move(*recording);
      if (!recording) outcome.status = recording.error();
      // An executor that does not record does so for no device.
      outcome.of_device = recording || outcome.status.code != StatusCode::unsupported;
    } else {
      outcome.status = submissions.error();
    }
    made->notes = job.plan_notes;
    if (!state_->router.settled(job, *chosen, outcome)) continue;
    if (!outcome.status.ok()) break;
    made->device = chosen;
    made->report = std::move(job.report);
    return std::unique_ptr<RecordedRequests>(new RecordedRequests(std::move(made)));
  }
  return std::move(job.report.status);
} catch (...) {
  return caught();
}

RunReport Runtime::replay(RecordedRequests& recorded, const ReplayTerms& terms) {
  RunReport report;
  try {
    const RuntimeState::JobScope background_waits(*state_);
    RecordedState& parts = *recorded.state_;
    report = parts.report;
    const JobMetrics::UnderWay under_way(state_->parts->metrics, report.device.id);
    report.status = replay_once(*state_, parts, terms, report);
    if (report.status.ok()) state_->parts->metrics.ran(report.device.id, report.op, report.median);
    state_->learner.finish(report);
    // The programs were there before this replay began.
    parts.report.build_ns = 0;
    parts.report.tier = Tier::memory;
    parts.report.notes = parts.notes;
  } catch (...) {
    report.status = caught();
  }
  return report;
}

}  // namespace kiln
