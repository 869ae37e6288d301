// What a runtime tells a monitoring system: its jobs, its devices and its cache, as text, and the file of [metrics].
//
// Thread-safety: runtime_metrics() is pure; a MetricsFile's methods from any thread. Ownership: values.
#pragma once

#include "runtime/metrics/job_metrics.hpp"

#include <kiln/clock.hpp>
#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/log.hpp>
#include <kiln/program_cache.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kiln {

std::string runtime_metrics(const JobMetrics& jobs, const std::vector<DeviceInfo>& devices, const CacheStats& cache);

// The file that a collector reads (node_exporter's textfile collector wants it to end in ".prom"): whole at each
// moment, written by whoever ends a job, no oftener than the interval says. What cannot be written is said once and
// costs no job.
class MetricsFile {
 public:
  MetricsFile(const MetricsConfig& config, Log log) : config_(config), log_(log) {}

  // Where the file is due. text: asked for the contents then alone.
  void write_if_due(const std::function<std::string()>& text) noexcept;
  // Where there is a file at all.
  void write(const std::function<std::string()>& text) noexcept;

 private:
  const MetricsConfig config_;
  const Log log_;
  std::atomic<std::uint64_t> due_ns_{0};
  std::atomic<bool> said_{false};
};

}  // namespace kiln
