// JobMetrics: what the jobs of one runtime did, by device and operation, counted up since it began.
//
// Thread-safety: every method from any thread; a run pays one lock, for a look-up. Ownership: values.
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
  // Upper bounds of the buckets of a run's wall time, in seconds: from what a tiny job takes to what somebody notices.
  static constexpr std::array bounds_s{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                       0.05,   0.1,     0.25,   0.5,   1.0,    2.5,   5.0,  10.0};

  // A run that ended well. device: an id; operation: "conv2d", "gemm", "kernel".
  void ran(const std::string& device, std::string_view operation, const Measurement& run);
  // A job, of one run or several. device: empty where none was reached. status: as in to_string(StatusCode).
  void ended(const std::string& device, std::string_view operation, std::string_view status);

  // A job has a device now, for as long as the answer lives.
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
  std::map<std::string, std::uint64_t> under_way_;              // jobs, by device
};

// What a runtime tells a monitoring system: its jobs, its devices and its cache, as text, and the file of [metrics].
//
// Thread-safety: runtime_metrics() is pure; a MetricsFile's methods from any thread. Ownership: values.

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
