// SteppedDevice: works only when told to, one dispatch at a time, and keeps every promise of a Device.
//
// Thread-safety: one thread at a time. Ownership: programs and buffers of what was submitted outlive its work.
#pragma once

#include "core/executor/synthetic_device.hpp"

#include <functional>
#include <set>
#include <utility>
#include <vector>

namespace kiln::test {

class SteppedDevice final : private DeviceClock, public Device {
 public:
  // each_ns: what it says of every dispatch. look_ns: what passes from one look at its clock to the next.
  explicit SteppedDevice(std::uint64_t each_ns, std::uint64_t look_ns = 1)
      : Device(static_cast<const DeviceClock&>(*this)), each_ns_(each_ns), look_ns_(look_ns) {
    info_.id = "stepped:0";
    info_.usable = true;
  }
  // A buffer of so many floats is refused.
  static constexpr std::size_t refused_floats = 3;

  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource&) noexcept override { return unsupported("build"); }
  Result<std::unique_ptr<Program>> load(const KernelSource&, const ProgramBinary&) noexcept override {
    return unsupported("load");
  }
  Result<ProgramBinary> serialize(const Program&) noexcept override { return unsupported("serialize"); }
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override;

  // No time but that of being asked: whether a copy counts as long is not the machine's to say.
  std::uint64_t clock_ns() const noexcept override { return clock_ += look_ns_; }

  // How wait() waits: until `done`, or until it gives up. Unset: it does not.
  std::function<void(const std::function<bool()>& done)> patience;

  bool can_work() const { return worked_ < submitted_ && !lost_; }
  void work();
  void lose() { lost_ = true; }
  bool lost() const { return lost_; }
  std::uint64_t submitted() const { return submitted_; }
  std::uint64_t worked() const { return worked_; }
  // Waits that would end by the clock, and soon. Where a schedule decides when a wait ends there is none.
  std::uint64_t timed_waits() const { return timed_waits_; }

 private:
  const std::uint64_t each_ns_, look_ns_;
  DeviceInfo info_;
  mutable std::uint64_t clock_ = 0;
  bool lost_ = false;
  std::vector<std::vector<std::pair<const SyntheticProgram*, std::vector<Buffer*>>>> queue_;
  std::uint64_t submitted_ = 0;
  std::uint64_t worked_ = 0;
  std::uint64_t timed_waits_ = 0;
  std::set<std::uint64_t> taken_;
};

}  // namespace kiln::test
