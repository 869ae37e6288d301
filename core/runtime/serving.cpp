// Serves one request: a device is chosen, the programs are prepared, the runs are made, compared and learned from.
#include "config/text/units.hpp"
#include "runtime/job/request_tensors.hpp"
#include "runtime/job/run_statistics.hpp"
#include "runtime/job/verification.hpp"
#include "runtime/parts.hpp"
#include "selector/hygiene.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/traced_work.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

namespace kiln {
namespace {

// How long a wait lasts before the request's stop flag is looked at again.
constexpr std::chrono::milliseconds stop_poll{50};

// A failure that another device may not have.
bool another_device_may_serve(const Status& status) {
  return status.code == StatusCode::unavailable || status.code == StatusCode::device_lost ||
         status.code == StatusCode::unsupported;
}

// A job that went wrong on the device; again and again, and the device is set aside.
bool is_the_devices_failure(const Status& status) {
  return status.code == StatusCode::timeout || status.code == StatusCode::internal;
}

bool stop_requested(const std::atomic<bool>* stop) { return stop != nullptr && stop->load(); }

bool stop_requested(const RunRequest& request) { return stop_requested(request.stop); }

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

Status above_roof(const RunRequest& request, const DeviceInfo& device, const Measurement& measurement) {
  if (!selector::is_above_roof(request.spec, device, measurement)) return {};
  return internal_error("measured " + std::to_string(selector::rate_of(request.spec, measurement)) + " GFLOP/s on " +
                        device.id + ", whose roof is " + std::to_string(selector::rate_limit(request.spec, device)) +
                        ": the time is invalid");
}

}  // namespace

void Runtime::Parts::serve(const RunRequest& request, Until until, RunReport& report) {
  const BuildProcesses::StopScope stop(request.stop);
  report.name = request.name;
  report.op = operation(request.spec);
  report.flops = flops(request.spec);
  report.bytes = bytes_moved(request.spec);
  if (Status status = validate(request.spec); !status.ok()) {
    report.status = std::move(status);
    return;
  }
  if (Status status = check_tensors(request); !status.ok()) {
    report.status = std::move(status);
    return;
  }
  if (Status status = check_verifiable(request); !status.ok()) {
    report.status = std::move(status);
    return;
  }
  std::set<std::string> refused;  // devices that turned out not to be able to serve this request
  // Of those, devices that failed under it: another job may have been the cause. Where no other device can serve, each
  // is tried once more.
  std::set<std::string> failed;
  std::optional<Status> first_failure;
  for (;;) {
    auto chosen = choose(request, refused, report);
    if (!chosen && !failed.empty() && !first_failure) {
      first_failure = chosen.error();
      for (const std::string& id : failed) refused.erase(id);
      chosen = choose(request, refused, report);
    }
    if (!chosen) {
      report.status = std::move(chosen).error();
      return;
    }
    const std::string& device = chosen->device;
    const JobMetrics::UnderWay under_way(metrics, device);
    auto opened = devices.open(device);
    auto service = opened ? prepare(request, *opened, report) : Result<Service>(opened.error());
    const Device* const used = opened ? opened->get() : nullptr;
    if (service) service->chosen_ns = chosen->traced_ns;
    // Who waited in vain for another's build says nothing of the device.
    JobEnd end;
    if (!service) {
      end = {service.error(), service.error().code != StatusCode::timeout};
    } else if (until == Until::end) {
      end = run_all(request, *service, report);
    }
    Status& status = end.status;
    if (status.ok() && until == Until::end) devices.served(device);
    if (status.ok() || !another_device_may_serve(status) || stop_requested(request)) {
      if (end.had_its_turn && is_the_devices_failure(status)) devices.failed(device, status, used);
      report.status = std::move(status);
      // Not before: what a plan tells of a device is told where that device is the one of the report.
      if (service) std::ranges::copy(service->keyed->plan->notes, std::back_inserter(report.notes));
      return;
    }
    std::string for_how_long;
    if (status.code != StatusCode::unsupported) {
      const std::string pause = devices.set_aside(device, status, used);
      if (!pause.empty()) for_how_long = " (set aside for " + pause + ")";
      failed.insert(device);
    }
    if (config.device.fallback == Fallback::never && !may_be_left(request, status)) {
      if (!first_failure && status.code != StatusCode::unsupported) {
        first_failure = status;
        report.notes.push_back(device + ": " + status.message + "; the job is run again");
        report.device = {};
        continue;
      }
      report.status = first_failure.value_or(status).within("fallback = \"never\"");
      return;
    }
    report.notes.push_back(device + " cannot serve: " + status.message + for_how_long);
    report.device = {};
    refused.insert(device);
  }
}

Result<Measurement> Runtime::Parts::run_once(const RunRequest& request, const Service& service, bool poisoned,
                                             Deadline deadline, std::uint64_t follows_ns) {
  auto fence = executor->submit({service.device, service.keyed->plan, service.programs.passes, service.programs.prepare,
                                 request.tensors, deadline, poisoned, request.completion, service.programs.sources});
  if (!fence) return std::move(fence).error();
  if (follows_ns != 0) trace->add_link({TraceArea::selector, follows_ns, service.device->info().id, fence->value});
  return await(*fence, request.stop, deadline);
}

Result<Measurement> Runtime::Parts::await(Fence fence, const std::atomic<bool>* stop, Deadline deadline) {
  for (;;) {
    const Deadline slice = Deadline{std::min(deadline.at, Deadline::after(stop_poll).at)};
    auto measurement = executor->wait(fence, stop == nullptr ? deadline : slice);
    if (measurement || measurement.error().code != StatusCode::timeout) return measurement;
    const bool stopped = stop_requested(stop);
    if (!stopped && !deadline.passed()) continue;
    (void)executor->cancel(fence);  // nobody asks for it any more; what the device has begun runs to its end
    if (!deadline.passed()) return cancelled("stopped on request");
    return measurement;
  }
}

// All runs of a request: the first and the last are compared, outside the clock, with their outputs poisoned before.
JobEnd Runtime::Parts::run_all(const RunRequest& request, const Service& service, RunReport& report) {
  RunStatistics statistics;
  const InoutSnapshot snapshot(request);
  const std::uint32_t runs = std::max(request.repeat, 1u);
  for (std::uint32_t run = 0; run < runs; ++run) {
    if (stop_requested(request)) return {cancelled("stopped on request after " + std::to_string(run) + " runs")};
    const bool compared = request.verify && (run == 0 || run + 1 == runs);
    if (run != 0) snapshot.restore();
    const bool poisoned = compared || request.poison;
    if (poisoned) poison_outputs(request);
    const std::chrono::nanoseconds patience = request.timeout.value_or(config.executor.timeout);
    const auto run_share_ns = static_cast<std::uint64_t>(patience.count() / 2);
    const Deadline deadline = Deadline::after(patience);
    auto use = resources.begin_turn(report.device, deadline, request.stop);
    if (!use) {
      Status status = std::move(use).error();
      if (status.code == StatusCode::timeout) status = status.within(too_long(request, config));
      return {std::move(status), false};
    }
    const bool ran_before = !service.stands_in && begins_to_run(request, report.device.id);
    RunConditions conditions;
    if (run == 0) conditions.build_ns = service.programs.build_ns;
    TracedWork dispatching(ran_before ? nullptr : trace, TraceArea::cache, "first dispatch");
    auto measurement = run_once(request, service, poisoned, deadline, run == 0 ? service.chosen_ns : 0);
    dispatching.end();
    conditions.contended = use->contended();
    use->end();
    if (!measurement) {
      if (measurement.error().code == StatusCode::timeout && deadline.passed()) {
        measurement = measurement.error().within(too_long(request, config));
      }
      conditions.status = measurement.error();
      const bool short_of_time = measurement.error().code == StatusCode::timeout && use->waited_ns() > run_share_ns;
      if (run != 0) snapshot.restore();  // another device, or this one again, begins with what the job was given
      if (short_of_time) return {std::move(measurement).error(), false};  // others had it
      selector->record(request.spec, service.device->info(), {}, conditions);
      return {std::move(measurement).error()};
    }
    measurement->queue_ns += use->waited_ns();
    measurement->wall_ns += use->waited_ns();
    if (run == 0) {
      report.first_output_ns = now_ns();
      measurement->build_ns += service.programs.build_ns;
    }
    measurement->tier = service.programs.tier;
    measurement->first_run = !ran_before;
    measurement->contended = conditions.contended;
    if (compared) {
      const auto comparing = resources.begin(host_cores, "comparing");
      conditions.status = compare(request, report);
      measurement->verified = report.verified;
    }
    learn(request, service, *measurement, conditions);
    if (!conditions.status.ok()) return {conditions.status};
    // Before it is a figure: the report of a job that has such a run holds none.
    if (Status above = above_roof(request, report.device, *measurement); !above.ok()) {
      report.first_output_ns = 0;
      return {above};
    }
    statistics.add(*measurement);
    metrics.ran(report.device.id, report.op, *measurement);
    report.runs = run + 1;
    if (!ran_before && !service.stands_in) build_stand_ins(request, report.device.id);
  }
  report.median = statistics.median();
  report.wall_min_ns = statistics.wall_min_ns();
  report.wall_max_ns = statistics.wall_max_ns();
  const auto rate = [&](std::uint64_t ns) { return ns == 0 ? 0.0 : report.flops / static_cast<double>(ns); };
  auto first = statistics.first();
  if (first) first->build_ns -= service.programs.build_ns;  // acquired before the wall time began: no part of it
  const auto steady = statistics.steady_median();
  for (const ProgramKey& key : service.keyed->passes) {
    if (first) cache->record(key, *service.device, *first, rate(first->wall_ns));
    if (steady) cache->record(key, *service.device, *steady, rate(steady->wall_ns));
  }
  return {};
}

Status Runtime::Parts::compare(const RunRequest& request, RunReport& report) {
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
  return internal_error(report.device.id + ": " + wrong_text(*verdict));
}

void Runtime::Parts::learn(const RunRequest& request, const Service& service, const Measurement& measurement,
                           const RunConditions& conditions) {
  if (service.stands_in && conditions.status.ok()) return;  // its time says nothing of what will serve
  const DeviceInfo& device = service.device->info();
  selector->record(request.spec, device, measurement, conditions);  // it judges by itself what is fit, and counts
  if (!conditions.status.ok() || selector::is_above_roof(request.spec, device, measurement)) return;
  service.generator->record(request.spec, device, service.keyed->plan->variant, measurement);
  // A simulated device's times say nothing of any other; a variant that was asked for says nothing of what serves.
  if (tuning != nullptr && device.kind != DeviceKind::simulated && request.variant.empty()) {
    tuning->ran(device.id, request.spec, request.name, measurement.wall_ns);
  }
}

}  // namespace kiln
