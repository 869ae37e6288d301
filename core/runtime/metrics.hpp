// JobMetrics and MetricsFile: job counters of a runtime by device and operation, and their export in Prometheus format.
//
// Thread-safety: every method from any thread; a run takes one lock. Ownership: values.
#pragma once

#include "base/exposition.hpp"

#include <kiln/clock.hpp>
#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/log.hpp>
#include <kiln/measurement.hpp>
#include <kiln/program_cache.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

class JobMetrics {
 public:
  // Upper bounds of the histogram buckets of a run's wall time, in seconds.
  static constexpr std::array bounds_s{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                       0.05,   0.1,     0.25,   0.5,   1.0,    2.5,   5.0,  10.0};

  // Counts a successful run. device: an id; operation: "conv2d", "gemm", "kernel".
  void ran(const std::string& device, std::string_view operation, const Measurement& run);
  // Counts a job of one or more runs. device: empty if none was reached. status: as in to_string(StatusCode).
  void ended(const std::string& device, std::string_view operation, std::string_view status);

  // Counts a job as running on the device for its lifetime.
  class UnderWay {
   public:
    UnderWay(JobMetrics& owner, std::string device);
    ~UnderWay();
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    JobMetrics& owner_;
    const std::string device_;
  };

  void add_to(Exposition& exposition) const;

 private:
  using Name = std::pair<std::string, std::string>;  // device, operation

  struct Runs {
    std::array<std::uint64_t, bounds_s.size() + 1> buckets{};
    std::uint64_t wall_ns = 0, queue_ns = 0, build_ns = 0, upload_ns = 0, device_ns = 0, readback_ns = 0;
  };

  mutable std::mutex mutex_;
  std::map<Name, Runs> runs_;
  std::map<std::pair<Name, std::string>, std::uint64_t> jobs_;  // by status
  std::map<std::string, std::uint64_t> under_way_;              // running jobs, by device
};

// Returns the metrics of jobs, devices and cache as text.
std::string runtime_metrics(const JobMetrics& jobs, const std::vector<DeviceInfo>& devices, const CacheStats& cache);

// Writes the file of [metrics] atomically, at most once per interval. Errors are logged once and do not affect jobs. A
// collector reads it (for node_exporter's textfile collector the name must end in ".prom").
class MetricsFile {
 public:
  MetricsFile(const MetricsConfig& config, Log log) : config_(config), log_(log) {}

  // Writes if the interval has passed. Calls `text` only then.
  void write_if_due(const std::function<std::string()>& text) noexcept;
  // Writes regardless of the interval, if a file is configured.
  void write(const std::function<std::string()>& text) noexcept;

 private:
  const MetricsConfig config_;
  const Log log_;
  std::atomic<std::uint64_t> due_ns_{0};
  std::atomic<bool> said_{false};
};

}  // namespace kiln
