// Work: what a slot carries through its stages: one submission, or a recording of several.
//
// Stages, in this order: make_constants → upload → launches → (the device works) → readback → release.
// Thread-safety: none; one lane at a time has it. Ownership: as kiln::Submission says, until release().
#pragma once

#include "executor/stages/bound_plan.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::executor {

class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  // Makes the job's Constants resident and, by `run`, those packed forms that are not there yet; `packed` counts them.
  virtual Status make_constants(Device& device, ConstantStore& constants, const RunToEnd& run,
                                std::uint64_t& packed) = 0;
  // aside_ns: what of its time belongs to verification, not to the job: bringing a poison to the device.
  virtual Status upload(Device& device, std::uint64_t& aside_ns) = 0;
  // Valid until release().
  virtual std::span<const PassLaunch> launches() = 0;
  virtual Status readback() = 0;
  // REQUIRES: the device has finished with the job, or is lost.
  virtual void release() noexcept = 0;

  // Not empty: so many launches at a time are submitted, one group after another, and took() gets the time of each.
  virtual std::span<const std::size_t> groups() const noexcept { return {}; }
  virtual void took(std::uint64_t device_ns) { (void)device_ns; }

  virtual std::string_view variant() const noexcept = 0;
  // Whether it may share a submission with neighbours: should that fail as a whole, it has to begin anew, so what it
  // reads must be as it was.
  virtual bool may_share(const Device&) const noexcept = 0;
  // What has to be copied; 0 where the device works in the tensors' own memory.
  virtual std::uint64_t upload_bytes(const Device& device) const noexcept = 0;
  virtual std::uint64_t readback_bytes(const Device& device) const noexcept = 0;
};

}  // namespace kiln::executor
