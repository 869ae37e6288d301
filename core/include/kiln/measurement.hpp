// Measurement: the times of one job. WorkCounters: counts of device work that a cache should avoid.
//
// All times are wall times of the steady clock in nanoseconds, except device_ns. device_ns is the difference of device
// timestamps over the passes, or 0 without timestamps. If a driver call is known to return after the work is done,
// device_ns is the time of that call. wall_ns is the time from the request to the output in host memory. The times of
// concurrent jobs overlap.
// Thread-safety: Measurement is a value; any thread may update and read WorkCounters. Ownership: values; WorkCounters
// must outlive the driver that uses them.
//
//   if (report.median.first_run) return;  // includes one-time costs
//   const double ms = static_cast<double>(report.median.wall_ns) / 1e6;
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] kiln {

// Tier that provided a program, slowest first. library: created by a library in this process, never compiled or stored.
enum class Tier : std::uint8_t { invalid = 0, built, remote, layer, disk, library, memory };

std::string_view to_string(Tier tier) noexcept;

struct Measurement {
  std::uint64_t queue_ns = 0;  // waiting for a slot, the upload, the submission and earlier jobs on the device
  std::uint64_t build_ns = 0;  // getting programs and preparing constants
  std::uint64_t upload_ns = 0;
  std::uint64_t device_ns = 0;
  std::uint64_t readback_ns = 0;
  std::uint64_t wall_ns = 0;
  Tier tier = Tier::invalid;  // the slowest of all passes
  std::uint32_t batch = 1;    // jobs submitted together: device_ns is their total
  bool first_run = false;     // first run of the program in this process: not learned
  bool prepared = false;      // a Constant was packed for this job
  bool contended = false;     // another user of a shared resource was active
  std::string variant;
  std::optional<bool> verified;  // nullopt: not compared
};

// Time of a dispatch without waiting and data transfer.
inline std::uint64_t dispatch_ns(const Measurement& m) noexcept {
  const std::uint64_t rest = m.queue_ns + m.build_ns + m.upload_ns + m.readback_ns;
  return m.wall_ns > rest ? m.wall_ns - rest : m.device_ns;
}

struct WorkCounters {
  // Calls to the driver's compiler with a result that the device can serialize.
  std::atomic<std::uint64_t> builds{0};
  std::atomic<std::uint64_t> loads{0};     // binaries passed to the driver
  std::atomic<std::uint64_t> prepared{0};  // library primitives and packed constants created in this process
};

}  // namespace kiln
