// Requests that are recorded once and replayed as one job.
#include "runtime/job/request_tensors.hpp"
#include "runtime/job/verification.hpp"
#include "runtime/parts.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

namespace kiln {

struct RecordedRequests::Parts {
  std::vector<RunRequest> requests;
  std::shared_ptr<Device> device;
  std::shared_ptr<Recording> recording;
  RunReport report;                // of what every replay has alike
  std::vector<std::string> notes;  // of the plans, with the names of their requests
};

RecordedRequests::RecordedRequests(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
RecordedRequests::~RecordedRequests() = default;

const DeviceInfo& RecordedRequests::device() const noexcept { return parts_->report.device; }
std::size_t RecordedRequests::jobs() const noexcept { return parts_->requests.size(); }
const std::string& RecordedRequests::selected_because() const noexcept { return parts_->report.selected_because; }

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

std::vector<std::string> notes_of(const std::vector<RunRequest>& requests, const std::vector<Submission>& submissions) {
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    for (const std::string& note : submissions[i].plan->notes) notes.push_back(requests[i].name + ": " + note);
  }
  return notes;
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
  const Parts::JobScope job(*parts_);
  auto made = std::make_unique<RecordedRequests::Parts>();
  made->requests = std::move(requests);
  made->report.name = "recording of " + std::to_string(made->requests.size());
  made->report.op = "recording";
  RunRequest wanted = largest(made->requests);
  wanted.device = device;
  std::set<std::string> refused;
  for (;;) {
    auto chosen = parts_->choose(wanted, refused, made->report);
    if (!chosen) return std::move(chosen).error();
    auto submissions = parts_->submissions_of(*made, chosen->device);
    if (submissions) made->notes = notes_of(made->requests, *submissions);
    auto recording = submissions ? parts_->executor->record(std::move(submissions).value())
                                 : Result<std::shared_ptr<Recording>>(submissions.error());
    if (recording) {
      made->recording = std::move(recording).value();
      std::ranges::copy(made->notes, std::back_inserter(made->report.notes));
      return std::unique_ptr<RecordedRequests>(new RecordedRequests(std::move(made)));
    }
    const Status status = recording.error();
    const bool of_the_device = status.code == StatusCode::unavailable || status.code == StatusCode::device_lost;
    if (of_the_device) (void)parts_->devices.set_aside(chosen->device, status, made->device.get());
    // An executor that does not record does so for no device.
    const bool another_may = of_the_device || (!submissions && status.code == StatusCode::unsupported);
    if (!another_may) return status;
    if (parts_->config.device.fallback == Fallback::never && !parts_->may_be_left(wanted, status))
      return status.within("fallback = \"never\"");
    made->report.notes.push_back(chosen->device + " cannot serve: " + status.message);
    refused.insert(chosen->device);
  }
} catch (...) {
  return caught();
}

Result<std::vector<Submission>> Runtime::Parts::submissions_of(RecordedRequests::Parts& recorded,
                                                               const std::string& device) {
  std::vector<Submission> submissions;
  RunReport& report = recorded.report;
  report.flops = 0;
  report.bytes = 0;
  Tier tier = Tier::memory;
  std::uint64_t build_ns = 0;
  std::vector<std::string> keys;
  recorded.device.reset();
  auto opened = devices.open(device);
  if (!opened) return std::move(opened).error();
  recorded.device = *opened;
  for (const RunRequest& request : recorded.requests) {
    auto service = prepare(request, recorded.device, report);
    if (!service) return std::move(service).error().within("request '" + request.name + "'");
    tier = std::min(tier, report.tier);  // Tier is ordered from the slowest
    build_ns += report.build_ns;
    keys.insert(keys.end(), report.keys.begin(), report.keys.end());
    report.flops += flops(request.spec);
    report.bytes += bytes_moved(request.spec);
    submissions.push_back({service->device, service->keyed->plan, service->programs.passes, service->programs.prepare,
                           request.tensors, Deadline::never(), request.verify, Completion::ordered,
                           service->programs.sources});
  }
  report.tier = tier;
  report.build_ns = build_ns;
  report.keys = std::move(keys);
  return submissions;
}

Status Runtime::Parts::compare_all(const std::vector<RunRequest>& requests, RunReport& report) {
  std::optional<ResourceUse::Use> comparing;
  for (const RunRequest& request : requests) {
    if (!request.verify) continue;
    if (!comparing) comparing.emplace(resources.begin(host_cores, "comparing"));
    Status status = compare(request, report);
    if (!status.ok()) return status.within("request '" + request.name + "'");
  }
  return {};
}

RunReport Runtime::replay(RecordedRequests& recorded, const ReplayTerms& terms) {
  RunReport report;
  try {
    const Parts::JobScope job(*parts_);
    report = recorded.parts_->report;
    const JobMetrics::UnderWay under_way(parts_->metrics, report.device.id);
    report.status = parts_->replay(*recorded.parts_, terms, report);
    if (report.status.ok()) parts_->metrics.ran(report.device.id, report.op, report.median);
    parts_->count(report);
    // The programs were there before this replay began.
    recorded.parts_->report.build_ns = 0;
    recorded.parts_->report.tier = Tier::memory;
    recorded.parts_->report.notes = recorded.parts_->notes;
  } catch (...) {
    report.status = caught();
  }
  return report;
}

Status Runtime::Parts::replay(RecordedRequests::Parts& recorded, const ReplayTerms& terms, RunReport& report) {
  for (const RunRequest& request : recorded.requests) {
    if (request.verify) poison_outputs(request);
  }
  const Deadline deadline = Deadline::after(terms.timeout.value_or(config.executor.timeout));
  auto use = resources.begin_turn(report.device, deadline, terms.stop);
  if (!use) return std::move(use).error();
  auto fence = executor->replay(recorded.recording, deadline);
  auto measured = fence ? await(*fence, terms.stop, deadline) : Result<Measurement>(fence.error());
  use->end();
  if (!measured) {
    if (measured.error().code == StatusCode::device_lost) {
      const std::string aside = devices.set_aside(report.device.id, measured.error(), recorded.device.get());
      report.notes.push_back(report.device.id + " was lost" + (aside.empty() ? "" : " (set aside for " + aside + ")"));
    }
    return std::move(measured).error();
  }
  measured->queue_ns += use->waited_ns();
  measured->wall_ns += use->waited_ns();
  measured->tier = report.tier;
  report.first_output_ns = now_ns();
  if (Status status = compare_all(recorded.requests, report); !status.ok()) return status;
  report.runs = 1;
  report.variant = measured->variant;
  report.median = *measured;
  report.wall_min_ns = report.wall_max_ns = measured->wall_ns;
  return {};
}

}  // namespace kiln
