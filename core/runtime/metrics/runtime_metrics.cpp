#include "runtime/metrics/runtime_metrics.hpp"

#include "base/atomic_file.hpp"

#include <exception>
#include <span>

namespace kiln {
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
