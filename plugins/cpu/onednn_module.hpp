// The line between cpu.so and libkiln_onednn.so: what is asked of the module, the type of its one exported function,
// and the loading of it.
//
// Thread-safety: open_onednn() from any thread. Ownership: the module stays loaded until the process exits.
#pragma once

#include <kiln/device.hpp>

#include <chrono>
#include <cstdint>

namespace kiln::cpu {

// oneDNN generates code and keeps scratch memory, and ends the process where it is refused memory: measured under
// RLIMIT_AS on two cores.
inline constexpr std::uint64_t memory_to_open = 160ULL << 20U;
inline constexpr std::uint64_t memory_to_build = 128ULL << 20U;

struct OpenRequest {
  DeviceInfo info;                     // as enumerated; the device adds the library's identity
  int threads = 1;                     // REQUIRES: positive
  std::chrono::nanoseconds tuning{0};  // a program's first run may spend on timing layouts
  std::string layout;                  // "auto", or the one in which convolutions run where it exists for their shape
  Log log;
  WorkCounters* counters = nullptr;  // may be null
};

// Answers a device that the caller owns, or null with `failure` set.
using CreateDeviceFn = Device* (*)(const OpenRequest& request, Status& failure);
inline constexpr const char* create_device_symbol = "kiln_onednn_create_device";

// Loads libkiln_onednn.so from the folder above this plugin's own. unavailable, with the dynamic linker's words, where
// the module or something it needs is missing.
Result<std::unique_ptr<Device>> open_onednn(const OpenRequest& request) noexcept;

}  // namespace kiln::cpu
