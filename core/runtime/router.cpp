#include "runtime/router.hpp"

#include <kiln/traced_work.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kiln {
namespace {

// Errors that justify trying another device.
bool another_device_may_serve(const Status& status) {
  return status.code == StatusCode::unavailable || status.code == StatusCode::device_lost ||
         status.code == StatusCode::unsupported;
}

// Errors that count against the device; after several in a row it is set aside. What a user's kernel computes is not
// the device's fault.
bool is_device_failure(const Status& status, bool of_layers) {
  return status.code == StatusCode::timeout || status.code == StatusCode::internal ||
         (status.code == StatusCode::wrong_result && of_layers);
}

ShapeBucket bucket_of(const Job& job) {
  return job.pipeline == nullptr ? ShapeBucket(job.request.spec) : *job.pipeline;
}

void pass_over(Job& job, const Status& why) {
  const std::string who = why.message.starts_with(job.device + ":") ? "" : job.device + ": ";
  job.passed_over += (job.passed_over.empty() ? "" : "; ") + who + why.message;
}

}  // namespace

Router::Router(const Config& config, TraceSink* trace, DeviceTable& devices, const Executor& executor,
               DeviceSelector& selector, const Planner& planner, Programs& programs, const WorkHistory& history,
               JobMetrics& metrics)
    : config_(config),
      trace_(trace),
      devices_(devices),
      executor_(executor),
      selector_(selector),
      planner_(planner),
      programs_(programs),
      history_(history),
      metrics_(metrics) {}

std::shared_ptr<Device> Router::next(Job& job) {
  if (!job.report.status.ok()) return nullptr;
  for (;;) {
    TracedWork choosing(trace_, TraceArea::selector, "choose device");
    auto chosen = choose(job);
    if (!chosen && !job.failed.empty() && !job.first_failure) {
      job.first_failure = chosen.error();
      for (const std::string& id : job.failed) job.refused.erase(id);
      chosen = choose(job);
    }
    if (!chosen) {
      job.report.status = std::move(chosen).error();
      return nullptr;
    }
    choosing.figure("device", *chosen);
    choosing.figure("because", job.report.selected_because);
    choosing.end();
    job.chosen_ns = choosing.begin_ns();
    job.device = std::move(*chosen);
    job.plan_notes.clear();
    job.under_way.emplace(metrics_, job.device);
    auto device = devices_.open(job.device);
    if (device) return std::move(*device);
    RunOutcome not_opened;
    not_opened.status = std::move(device).error();
    if (ends(job, nullptr, not_opened)) return nullptr;
  }
}

bool Router::settled(Job& job, const Device& device, const RunOutcome& outcome) { return ends(job, &device, outcome); }

void Router::replayed(const Device& device, const Status& status, bool of_layers) {
  if (status.ok()) devices_.served(device.info().id);
  if (is_device_failure(status, of_layers)) devices_.failed(device.info().id, status, &device);
}

bool Router::ends(Job& job, const Device* device, const RunOutcome& outcome) {
  RunReport& report = job.report;
  const Status& status = outcome.status;
  if (status.ok() && report.runs != 0) devices_.served(job.device);
  if (status.ok() || !outcome.of_device || !another_device_may_serve(status) || stop_requested(job.request.stop)) {
    if (outcome.of_device && is_device_failure(status, job.of_layers)) {
      devices_.failed(job.device, status, device);
    }
    report.status = status;
    // A text that this device refuses may be right for another one, which failed for a reason of its own.
    if (status.code == StatusCode::invalid_argument && !job.passed_over.empty()) {
      // The device that was asked for comes first.
      const bool asked = wanted(job.request) != "auto";
      report.status.message =
          (asked ? job.passed_over : status.message) + "; other devices: " + (asked ? status.message : job.passed_over);
    }
    std::ranges::move(job.plan_notes, std::back_inserter(report.notes));
    return true;
  }
  pass_over(job, status);
  std::string for_how_long;
  if (status.code != StatusCode::unsupported) {
    const std::string pause = devices_.set_aside(job.device, status, device);
    if (!pause.empty()) for_how_long = " (set aside for " + pause + ")";
    job.failed.insert(job.device);
  }
  // What "auto" chose and what can never do what is asked is left for another device: that is no fallback.
  const bool may_be_left = status.code == StatusCode::unsupported && wanted(job.request) == "auto";
  if (config_.device.fallback == Fallback::never && !may_be_left) {
    if (job.first_failure || status.code == StatusCode::unsupported) {
      report.status = Status(job.first_failure.value_or(status)).within("fallback = \"never\"");
      return true;
    }
    job.first_failure = status;
    report.notes.push_back(job.device + ": " + status.message + "; the job is run again");
  } else {
    report.notes.push_back(job.device + " cannot serve: " + status.message + for_how_long);
    job.refused.insert(job.device);
  }
  report.device = {};
  return false;
}

const std::string& Router::wanted(const RunRequest& request) const {
  return request.device.empty() ? config_.device.prefer : request.device;
}

Result<std::string> Router::choose(Job& job) {
  const RunRequest& request = job.request;
  RunReport& report = job.report;
  auto able = candidates(job);
  if (!able) return std::move(able).error();
  const std::vector<Candidate> offered = offer(job, *able);
  if (offered.empty()) {
    auto again = last_resort(job);
    if (!again) return nothing_offered(job);
    report.notes.push_back("device " + *again + ": tried again early, because no other device can serve");
    report.selected_because = "the only device that can serve";
    return std::move(*again);
  }
  if (offered.size() == 1) {
    const bool asked = offered[0].device->id == request.device || offered[0].device->id == config_.device.prefer;
    report.selected_because = asked ? "requested" : "the only device that can serve";
    return offered[0].device->id;
  }
  auto choice = selector_.select(bucket_of(job), offered, terms_of(job, offered));
  if (!choice) return std::move(choice).error();
  report.selected_because = choice->because;
  if (choice->build_ahead) programs_.build_ahead(request, offered[*choice->build_ahead].device->id);
  return offered[choice->candidate].device->id;
}

Result<std::vector<DeviceInfo>> Router::candidates(Job& job) {
  const RunRequest& request = job.request;
  std::vector<std::string>& notes = job.report.notes;
  const bool by_request = !request.device.empty();
  const std::string one = wanted(request) == "auto" ? std::string() : wanted(request);
  if (!one.empty() && !job.refused.contains(one)) {
    if (Status status = devices_.check_name(one); !status.ok()) return status;
    Status why = unavailable("device " + one + ": its driver does not list this device");
    for (const DeviceInfo& device : devices_.enumerate_for(one)) {
      // A driver that could not start is listed under its own name, and stands for all of its devices.
      if (device.id != one && device.id != one.substr(0, one.find(':'))) continue;
      if (!device.usable) {
        why = unavailable("device " + one + ": " + device.why_not);
        // No other device may serve: its pause has no use.
        const bool no_choice =
            config_.device.fallback == Fallback::never && planner_.check_reads(device, request.spec).ok();
        if (!no_choice || !devices_.try_again(one)) continue;
        notes.push_back(why.message + "; tried again");
      }
      why = planner_.check_reads(device, request.spec);
      if (why.ok()) return std::vector<DeviceInfo>{device};
    }
    // A preference is not meant for a job in a language that the device cannot read.
    const bool is_failure = by_request || why.code != StatusCode::unsupported;
    if (is_failure && config_.device.fallback == Fallback::never) return why.within("fallback = \"never\"");
    if (is_failure) notes.push_back(why.message);
    if (is_failure && job.passed_over.empty()) job.passed_over = why.message;
  }
  std::vector<DeviceInfo> usable;
  for (DeviceInfo& device : devices_.open_all()) {
    if (job.refused.contains(device.id) || device.id == one) continue;
    if (device.usable) {
      usable.push_back(std::move(device));
    } else if (devices_.is_set_aside(device.id)) {
      notes.push_back(device.id + ": " + device.why_not);
    }
  }
  return usable;
}

std::optional<std::string> Router::last_resort(const Job& job) {
  const std::string& first = wanted(job.request);
  std::vector<DeviceInfo> all = devices_.enumerate_all();
  std::stable_partition(all.begin(), all.end(), [&](const DeviceInfo& device) { return device.id == first; });
  for (const DeviceInfo& device : all) {
    if (job.refused.contains(device.id)) continue;
    if (config_.device.fallback == Fallback::never && first != "auto" && device.id != first) continue;
    if (planner_.check_reads(device, job.request.spec).ok() && devices_.try_again(device.id)) return device.id;
  }
  return std::nullopt;
}

Status Router::nothing_offered(Job& job) {
  std::string reasons;
  std::size_t count = 0;
  // A reason leaves out what an earlier one says: "device amdgpu:0: set aside for another 0.3 s: amdgpu:0: …".
  const auto add = [&](std::string reason) {
    if (reasons.find(reason) != std::string::npos) return reason;
    for (std::size_t at = reason.find(": "); at != std::string::npos; at = reason.find(": ", at + 1)) {
      const std::string rest = reason.substr(at + 2);
      if (rest.find(": ") == std::string::npos || reasons.find(rest) == std::string::npos) continue;
      reason.resize(at);
      break;
    }
    reasons += (reasons.empty() ? "" : "\n  ") + reason;
    ++count;
    return reason;
  };
  for (std::string& note : job.report.notes) note = add(std::move(note));
  for (const DeviceInfo& device : devices_.enumerate_all()) {
    if (job.refused.contains(device.id)) continue;  // among the notes
    if (!device.usable) {
      add("device " + device.id + ": " + device.why_not);
    } else if (const Status status = planner_.check_reads(device, job.request.spec); !status.ok()) {
      add(status.message);
    }
  }
  if (count == 0) return unavailable("no device can serve: no device exists");
  return unavailable("no device can serve:" + std::string(count == 1 ? " " : "\n  ") + reasons);
}

std::uint64_t Router::backlog_ns(const DeviceInfo& device, const std::vector<DeviceInfo>& all) {
  std::uint64_t sum_ns = 0;
  for (const DeviceInfo& other : all) {
    if (other.id != device.id && !share_a_resource(device, other)) continue;
    if (!devices_.is_open(other.id)) continue;
    if (auto opened = devices_.open(other.id)) sum_ns += executor_.backlog_ns(**opened);
  }
  return sum_ns;
}

std::vector<Candidate> Router::offer(const Job& job, const std::vector<DeviceInfo>& able) {
  const std::vector<DeviceInfo> all = devices_.known();
  std::vector<Candidate> offered;
  for (const DeviceInfo& device : able) {
    if (planner_.generator_for(device, &job.request.spec).first == nullptr) continue;
    const bool ready = job.pipeline == nullptr ? history_.is_ready(job.request.spec, device.id)
                                               : history_.is_ready(*job.pipeline, device.id);
    offered.push_back({&device, backlog_ns(device, all), !ready});
  }
  return offered;
}

JobTerms Router::terms_of(const Job& job, const std::vector<Candidate>& offered) const {
  const RunRequest& request = job.request;
  JobTerms terms;
  terms.repeat = std::max(request.repeat, 1u);
  terms.has_deadline = request.timeout.has_value() || job.is_recorded;
  // The job itself builds what failed before, and reports the error.
  terms.can_build_ahead = config_.selector.serve_while_building && request.device.empty() && job.pipeline == nullptr &&
                          std::ranges::none_of(offered, [&](const Candidate& candidate) {
                            return history_.failed_ahead(request.spec, candidate.device->id);
                          });
  return terms;
}

Result<Explanation> Router::explain(Job& job) {
  auto able = candidates(job);
  if (!able) return std::move(able).error();
  const std::vector<Candidate> offered = offer(job, *able);
  if (offered.empty()) return nothing_offered(job);
  auto explanation = selector_.explain(bucket_of(job), offered, terms_of(job, offered));
  if (!explanation) return explanation;
  for (std::string& note : job.report.notes) explanation->words.push_back(std::move(note));
  return explanation;
}

}  // namespace kiln
