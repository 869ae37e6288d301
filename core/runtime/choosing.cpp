// Which device serves a request: candidates, what they cost, what is built ahead.
#include "runtime/parts.hpp"
#include "runtime/warming/warming.hpp"

#include <kiln/traced_work.hpp>

#include <algorithm>

namespace kiln {

std::string work_name(const RunRequest& request, const std::string& device) {
  return device + "|" + canonical_text(request.spec);
}

std::pair<KernelGenerator*, Dialect> Runtime::Parts::generator_for(const DeviceInfo& device,
                                                                   const KernelSpec* spec) const {
  const auto* const kernel = spec == nullptr ? nullptr : std::get_if<UserKernelSpec>(spec);
  std::optional<std::string> plugin;  // looked up only where several generators write the dialect
  for (const Dialect dialect : device.dialects) {
    if (kernel != nullptr && dialect != kernel->dialect) continue;
    const OneGenerator* chosen = nullptr;
    for (const OneGenerator& one : generators) {
      if (std::ranges::find(one.dialects, dialect) == one.dialects.end()) continue;
      if (chosen == nullptr) {
        chosen = &one;
        if (prefers_first_generator && chosen == &generators.front()) break;
        continue;
      }
      if (!plugin) plugin = devices.plugin_of(device.id);
      if (one.plugin == *plugin && chosen->plugin != *plugin) chosen = &one;
    }
    if (chosen != nullptr) return {chosen->generator.get(), dialect};
  }
  return {nullptr, Dialect::invalid};
}

Status Runtime::Parts::check_reads(const DeviceInfo& device, const KernelSpec& spec) const {
  if (generator_for(device, &spec).first != nullptr) return {};
  std::string read;
  for (const Dialect dialect : device.dialects) read += (read.empty() ? "" : " or ") + std::string(to_string(dialect));
  if (read.empty()) read = "nothing";
  const auto* const kernel = std::get_if<UserKernelSpec>(&spec);
  if (kernel == nullptr) {
    return unsupported("device " + device.id + ": no loaded generator writes what it reads (" + read + ")");
  }
  return unsupported("device " + device.id + " cannot run kernel " + kernel->path + ": written in " +
                     std::string(to_string(kernel->dialect)) + ", expected " + read);
}

// The device that was requested while it can serve, else all that are usable.
Result<std::vector<DeviceInfo>> Runtime::Parts::candidates(const RunRequest& request,
                                                           const std::set<std::string>& refused, RunReport& report) {
  const bool by_request = !request.device.empty();
  std::string wanted = by_request ? request.device : config.device.prefer;
  if (wanted == "auto") wanted.clear();
  if (!wanted.empty() && !refused.contains(wanted)) {
    if (Status status = devices.check_name(wanted); !status.ok()) return status;
    Status why = unavailable("device " + wanted + ": its driver does not list it");
    for (const DeviceInfo& device : devices.enumerate_for(wanted)) {
      // A driver that could not start is listed under its own name, and stands for all of its devices.
      if (device.id != wanted && device.id != wanted.substr(0, wanted.find(':'))) continue;
      if (!device.usable) {
        why = unavailable("device " + wanted + ": " + device.why_not);
        // No other device may serve: its pause has no use.
        const bool no_choice = config.device.fallback == Fallback::never && check_reads(device, request.spec).ok();
        if (!no_choice || !devices.try_again(wanted)) continue;
        report.notes.push_back(why.message + "; tried again");
      }
      why = check_reads(device, request.spec);
      if (why.ok()) return std::vector<DeviceInfo>{device};
    }
    // A preference is not meant for a job in a language that the device cannot read.
    const bool is_failure = by_request || why.code != StatusCode::unsupported;
    if (is_failure && config.device.fallback == Fallback::never) return why.within("fallback = \"never\"");
    if (is_failure) report.notes.push_back(why.message);
  }
  std::vector<DeviceInfo> usable;
  for (DeviceInfo& device : devices.enumerate_all()) {
    if (refused.contains(device.id) || device.id == wanted) continue;
    if (device.usable) {
      usable.push_back(std::move(device));
    } else if (devices.is_set_aside(device.id)) {
      report.notes.push_back(device.id + ": " + device.why_not);
    }
  }
  return usable;
}

std::optional<std::string> Runtime::Parts::last_resort(const RunRequest& request,
                                                       const std::set<std::string>& refused) {
  const std::string& wanted = request.device.empty() ? config.device.prefer : request.device;
  std::vector<DeviceInfo> all = devices.enumerate_all();
  std::ranges::stable_partition(all, [&](const DeviceInfo& device) { return device.id == wanted; });
  for (const DeviceInfo& device : all) {
    if (refused.contains(device.id)) continue;
    if (config.device.fallback == Fallback::never && wanted != "auto" && device.id != wanted) continue;
    if (check_reads(device, request.spec).ok() && devices.try_again(device.id)) return device.id;
  }
  return std::nullopt;
}

// Why no device can serve, with every device.
Status Runtime::Parts::nothing_offered(const RunRequest& request, const std::set<std::string>& refused,
                                       const RunReport& report) {
  std::string reasons;
  const auto add = [&](const std::string& reason) {
    if (reasons.find(reason) == std::string::npos) reasons += (reasons.empty() ? "" : "; ") + reason;
  };
  for (const std::string& note : report.notes) add(note);
  for (const DeviceInfo& device : devices.enumerate_all()) {
    if (refused.contains(device.id)) continue;  // among the notes
    if (!device.usable) {
      add("device " + device.id + ": " + device.why_not);
    } else if (const Status status = check_reads(device, request.spec); !status.ok()) {
      add(status.message);
    }
  }
  return unavailable("no device can serve" + (reasons.empty() ? ": there is none" : ": " + reasons));
}

bool Runtime::Parts::may_be_left(const RunRequest& request, const Status& status) const {
  const std::string& wanted = request.device.empty() ? config.device.prefer : request.device;
  return status.code == StatusCode::unsupported && wanted == "auto";
}

// What waits for the device, and for others that compete with it.
std::uint64_t Runtime::Parts::wait_ns(const DeviceInfo& device, const std::vector<DeviceInfo>& all) {
  std::uint64_t wait_ns = 0;
  for (const DeviceInfo& other : all) {
    if (other.id != device.id && !share_a_resource(device, other)) continue;
    if (!devices.is_open(other.id)) continue;
    if (auto opened = devices.open(other.id)) wait_ns += executor->backlog_ns(**opened);
  }
  return wait_ns;
}

std::vector<Candidate> Runtime::Parts::offer(const RunRequest& request, const std::vector<DeviceInfo>& able) {
  const std::vector<DeviceInfo> all = devices.known();
  std::vector<Candidate> offered;
  for (const DeviceInfo& device : able) {
    if (generator_for(device, &request.spec).first == nullptr) continue;
    offered.push_back({&device, wait_ns(device, all), !is_ready(request, device.id)});
  }
  return offered;
}

JobTerms Runtime::Parts::terms_of(const RunRequest& request, const std::vector<Candidate>& offered) const {
  JobTerms terms;
  terms.repeat = std::max(request.repeat, 1u);
  terms.has_deadline = request.timeout.has_value();
  terms.can_build_ahead = config.selector.serve_while_building && request.device.empty();
  const std::lock_guard lock(warm_mutex);
  for (const Candidate& candidate : offered) {
    // What failed once is tried where its error has somebody to hear it.
    if (built_in_vain.contains(work_name(request, candidate.device->id))) terms.can_build_ahead = false;
  }
  return terms;
}

Result<Chosen> Runtime::Parts::choose(const RunRequest& request, const std::set<std::string>& refused,
                                      RunReport& report) {
  TracedWork choosing(trace, TraceArea::selector, "choose device");
  auto device = device_for(request, refused, report);
  if (!device) return std::move(device).error();
  choosing.figure("device", *device);
  choosing.figure("because", report.selected_because);
  choosing.end();
  return Chosen{std::move(*device), choosing.begin_ns()};
}

Result<std::string> Runtime::Parts::device_for(const RunRequest& request, const std::set<std::string>& refused,
                                               RunReport& report) {
  auto able = candidates(request, refused, report);
  if (!able) return std::move(able).error();
  const std::vector<Candidate> offered = offer(request, *able);
  if (offered.empty()) {
    auto again = last_resort(request, refused);
    if (!again) return nothing_offered(request, refused, report);
    report.notes.push_back("device " + *again + ": tried again before its time, no other device can serve");
    report.selected_because = "the only device that can serve";
    return std::move(*again);
  }
  if (offered.size() == 1) {
    const bool asked = offered[0].device->id == request.device || offered[0].device->id == config.device.prefer;
    report.selected_because = asked ? "asked for" : "the only device that can serve";
    return offered[0].device->id;
  }
  auto choice = selector->select(request.spec, offered, terms_of(request, offered));
  if (!choice) return std::move(choice).error();
  report.selected_because = choice->because;
  if (choice->build_ahead) build_ahead(request, offered[*choice->build_ahead].device->id);
  return offered[choice->candidate].device->id;
}

Result<Explanation> Runtime::Parts::explain(const RunRequest& request) {
  if (Status status = validate(request.spec); !status.ok()) return status;
  RunReport report;
  auto able = candidates(request, {}, report);
  if (!able) return std::move(able).error();
  const std::vector<Candidate> offered = offer(request, *able);
  if (offered.empty()) return nothing_offered(request, {}, report);
  auto explanation = selector->explain(request.spec, offered, terms_of(request, offered));
  if (!explanation) return explanation;
  for (std::string& note : report.notes) explanation->words.push_back(std::move(note));
  return explanation;
}

// Programs linked and dispatched over nothing, so that the next job of that spec finds the device ready.
void Runtime::Parts::build_ahead(const RunRequest& request, const std::string& id) {
  const std::string name = work_name(request, id);
  builder.ask(name, [this, name, id, job = WarmJob{request.name, request.spec}] {
    const auto failed = [&](const Status& status) {
      log.write(LogLevel::info, "runtime", "building ahead for " + id + ": " + status.message);
      const std::lock_guard lock(warm_mutex);
      built_in_vain.insert(name);
    };
    auto device = devices.open(id);
    if (!device) return failed(device.error());
    auto programs = programs_of({job}, **device);
    if (!programs) return failed(programs.error());
    const auto use = resources.begin((*device)->info(), id + ", building");
    const WarmReport report = warm_programs(*programs, **device, *cache, {}, 1, {}, most_for_first_dispatch, trace);
    if (report.failed != 0) return failed(report.first_failure);
    const std::lock_guard lock(warm_mutex);
    ready.insert(name);
  });
}

bool Runtime::Parts::begins_to_run(const RunRequest& request, const std::string& device) {
  std::string name = work_name(request, device);
  const std::lock_guard lock(warm_mutex);
  ready.insert(name);
  return !ran.insert(std::move(name)).second;
}

bool Runtime::Parts::is_ready(const RunRequest& request, const std::string& device) const {
  const std::lock_guard lock(warm_mutex);
  return ready.contains(work_name(request, device));
}

}  // namespace kiln
