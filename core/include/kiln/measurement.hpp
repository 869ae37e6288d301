// Measurement: where the time of one job went; WorkCounters: how often a device did work that a cache should have
// saved.
//
// One definition of time: every figure is wall time of the steady clock but device_ns, which is the device's own
// timestamp difference over the passes (0 where the device has none), or that clock's around a driver's call of which
// such stamps have shown that the work is done when it returns. wall runs from the request to the output in host
// memory; of two jobs in flight at once each has its own, and they overlap. Thread-safety: Measurement is a value;
// WorkCounters may be bumped and read from any thread. Ownership: values; WorkCounters outlive the
// driver that is given them.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

// Which tier answered, fastest last. library: prepared inside the process by a library; never compiled, never stored.
enum class Tier : std::uint8_t { invalid = 0, built, disk, library, memory };

std::string_view to_string(Tier tier) noexcept;

struct Measurement {
  std::uint64_t queue_ns = 0;  // waited for a slot, and for its turn to be uploaded and to be submitted
  std::uint64_t build_ns = 0;  // acquiring programs and preparing constants
  std::uint64_t upload_ns = 0;
  std::uint64_t device_ns = 0;
  std::uint64_t readback_ns = 0;
  std::uint64_t wall_ns = 0;
  Tier tier = Tier::invalid;  // the slowest among the passes
  std::uint32_t batch = 1;    // jobs that went to the device as one: device_ns is that of all of them
  bool first_run = false;     // the first of its program in this process: not learned from
  bool prepared = false;      // a Constant was packed for it
  bool contended = false;     // something else used what the device shares meanwhile
  std::string variant;
  std::optional<bool> verified;  // nullopt: not compared
};

// What a dispatch took, without waiting and moving data.
inline std::uint64_t dispatch_ns(const Measurement& m) noexcept {
  const std::uint64_t rest = m.queue_ns + m.build_ns + m.upload_ns + m.readback_ns;
  return m.wall_ns > rest ? m.wall_ns - rest : m.device_ns;
}

struct WorkCounters {
  std::atomic<std::uint64_t> builds{
      0};  // driver compilations whose product the device can serialize; counted at the call
  std::atomic<std::uint64_t> loads{0};     // binaries handed to the driver
  std::atomic<std::uint64_t> prepared{0};  // library primitives and packed constants made inside the process
};

}  // namespace kiln
