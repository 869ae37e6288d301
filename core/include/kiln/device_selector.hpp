// DeviceSelector: which of the devices that can serve a spec shall serve it, and what was learned from the answer.
//
// Thread-safety: every method from any thread. Ownership: candidates are borrowed for the call.
// Nothing is decided by a device's name or kind: only by cost = queue wait + transfer + build if cold + run.
#pragma once

#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/log.hpp>
#include <kiln/measurement.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace kiln {

struct Candidate {
  const DeviceInfo* device = nullptr;
  std::uint64_t queue_wait_ns = 0;
  bool cold = false;  // its program must be built or loaded first
};

struct Choice {
  std::size_t candidate = 0;
  std::string because;  // the reason with its numbers, in words
};

class DeviceSelector {
 public:
  DeviceSelector() = default;
  DeviceSelector(const DeviceSelector&) = delete;
  DeviceSelector& operator=(const DeviceSelector&) = delete;
  virtual ~DeviceSelector();

  // unavailable where there is no candidate.
  virtual Result<Choice> select(const KernelSpec& spec, std::span<const Candidate> candidates) noexcept = 0;
  virtual void record(const KernelSpec& spec, const DeviceInfo& device, const Measurement& measurement) noexcept = 0;
};

struct SelectorContext {
  Log log;
  SelectorConfig config;
  DeviceConfig device;                    // the user's preference
  std::filesystem::path cache_directory;  // where a model may persist
};

}  // namespace kiln
