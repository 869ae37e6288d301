#include "runtime/metrics/job_metrics.hpp"

#include <algorithm>

namespace kiln {
namespace {

double seconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace

void JobMetrics::ran(const std::string& device, std::string_view operation, const Measurement& run) {
  const auto bucket = std::ranges::lower_bound(bounds_s, seconds(run.wall_ns)) - bounds_s.begin();
  const std::lock_guard lock(mutex_);
  Runs& runs = runs_[{device, std::string(operation)}];
  ++runs.buckets[static_cast<std::size_t>(bucket)];
  runs.wall_ns += run.wall_ns;
  runs.queue_ns += run.queue_ns;
  runs.build_ns += run.build_ns;
  runs.upload_ns += run.upload_ns;
  runs.device_ns += run.device_ns;
  runs.readback_ns += run.readback_ns;
}

void JobMetrics::ended(const std::string& device, std::string_view operation, std::string_view status) {
  const std::lock_guard lock(mutex_);
  ++jobs_[{{device, std::string(operation)}, std::string(status)}];
}

JobMetrics::UnderWay::UnderWay(JobMetrics& owner, std::string device) : owner_(owner), device_(std::move(device)) {
  const std::lock_guard lock(owner_.mutex_);
  ++owner_.under_way_[device_];
}

JobMetrics::UnderWay::~UnderWay() {
  const std::lock_guard lock(owner_.mutex_);
  --owner_.under_way_[device_];
}

void JobMetrics::add_to(Exposition& exposition) const {
  const std::lock_guard lock(mutex_);
  exposition.metric("kiln_runtime_jobs_total", "counter", "Jobs that ended, by device, operation and status.");
  for (const auto& [name, count] : jobs_) {
    exposition.sample({{"device", name.first.first}, {"op", name.first.second}, {"status", name.second}}, count);
  }
  exposition.metric("kiln_runtime_device_jobs", "gauge", "Jobs that a device was chosen for and that have not ended.");
  for (const auto& [device, count] : under_way_) exposition.sample({{"device", device}}, count);
  exposition.metric("kiln_runtime_run_seconds", "histogram", "Wall time of runs, from the request to the output.");
  for (const auto& [name, runs] : runs_) {
    exposition.histogram({{"device", name.first}, {"op", name.second}}, bounds_s, runs.buckets, seconds(runs.wall_ns));
  }
  exposition.metric("kiln_runtime_stage_seconds_total", "counter",
                    "Time that runs spent in each stage; stages of neighbouring runs overlap.");
  for (const auto& [name, runs] : runs_) {
    const std::pair<std::string_view, std::uint64_t> stages[] = {{"queue", runs.queue_ns},
                                                                 {"build", runs.build_ns},
                                                                 {"upload", runs.upload_ns},
                                                                 {"device", runs.device_ns},
                                                                 {"readback", runs.readback_ns}};
    for (const auto& [stage, ns] : stages) {
      exposition.sample({{"device", name.first}, {"op", name.second}, {"stage", stage}}, seconds(ns));
    }
  }
}

}  // namespace kiln
