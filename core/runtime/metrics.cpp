#include "runtime/metrics.hpp"

#include "base/os/atomic_file.hpp"

#include <algorithm>
#include <exception>
#include <span>

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

namespace {

void add_devices(Exposition& to, const std::vector<DeviceInfo>& devices) {
  to.metric("kiln_runtime_device_usable", "gauge", "Whether a device that was met can be used: 1 or 0.");
  for (const DeviceInfo& one : devices) {
    to.sample({{"device", one.id}, {"kind", to_string(one.kind)}, {"name", one.name}, {"driver", one.driver}},
              std::uint64_t{one.usable ? 1u : 0u});
  }
}

void add_cache(Exposition& to, const CacheStats& counts) {
  to.metric("kiln_runtime_cache_hits_total", "counter", "Programs found, by the tier that had them.");
  to.sample({{"tier", "memory"}}, counts.memory_hits);
  to.sample({{"tier", "disk"}}, counts.disk_hits);
  to.sample({{"tier", "layer"}}, counts.shared.layer_hits);
  to.sample({{"tier", "remote"}}, counts.shared.hits);
  to.single("kiln_runtime_cache_misses_total", "counter", "Programs that no tier had.", counts.misses);
  to.metric("kiln_runtime_cache_builds_total", "counter", "Programs built, by whether they can be stored.");
  to.sample({{"stored", "yes"}}, counts.builds);
  to.sample({{"stored", "no"}}, counts.prepared);
  to.single("kiln_runtime_cache_failed_builds_total", "counter", "Builds that made no program.", counts.failed_builds);
  to.metric("kiln_runtime_cache_evictions_total", "counter", "Programs that had to go, by the tier that they left.");
  to.sample({{"tier", "memory"}}, counts.evictions);
  to.sample({{"tier", "disk"}}, counts.disk_evictions);
  to.single("kiln_runtime_cache_programs", "gauge", "Programs held in memory.", counts.programs_in_memory);
  to.single("kiln_runtime_cache_memory_bytes", "gauge", "What the programs held in memory are charged.",
            counts.bytes_in_memory);
  to.single("kiln_runtime_cache_saved_seconds", "gauge",
            "Recorded build time of what was found, less the time that finding it took.", counts.saved_ms / 1e3);
}

}  // namespace

std::string runtime_metrics(const JobMetrics& jobs, const std::vector<DeviceInfo>& devices, const CacheStats& cache) {
  Exposition exposition;
  jobs.add_to(exposition);
  add_devices(exposition, devices);
  add_cache(exposition, cache);
  return exposition.take();
}

void MetricsFile::write_if_due(const std::function<std::string()>& text) noexcept {
  if (config_.file.empty()) return;
  const std::uint64_t now = now_ns();
  std::uint64_t due = due_ns_.load();
  const auto next = now + static_cast<std::uint64_t>(config_.interval.count());
  // Of several that find it due, one writes.
  if (now < due || !due_ns_.compare_exchange_strong(due, next)) return;
  write(text);
}

void MetricsFile::write(const std::function<std::string()>& text) noexcept try {
  if (config_.file.empty()) return;
  Result<AtomicFile> file = AtomicFile::create(config_.file);
  Status status = file ? ok_status() : file.error();
  if (file) {
    const std::string whole = text();
    status = file->write(std::as_bytes(std::span(whole)));
    if (status.ok()) status = file->commit();
  }
  if (status.ok() || said_.exchange(true)) return;
  log_.write(LogLevel::warning, "metrics", "[metrics] file is not written: " + status.message);
} catch (const std::exception&) {  // out of memory: the next job tries again
}

}  // namespace kiln
