// HostDevice: a device of dialect library in host memory that computes with the reference, correct unless a fault is
// planted. It exists to show that the conformance checks pass where they should and fail where they should.
//
// Thread-safety: every method from any thread; work runs inside submit(). Ownership: as the contract says.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel_generator.hpp>

#include <atomic>
#include <map>
#include <mutex>

namespace kiln::conformance {

enum class Fault : std::uint8_t { none, skips_last_element, writes_behind_output, writes_input, rounds_badly };

class HostDevice final : public Device {
 public:
  explicit HostDevice(WorkCounters& counters, Fault fault = Fault::none);

  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override;
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override;
  Result<ProgramBinary> serialize(const Program& program) noexcept override;
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override;

 private:
  DeviceInfo info_;
  WorkCounters& counters_;
  Fault fault_;
  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Status> finished_;
};

// Hands a spec through as a plan of one pass.
class HostGenerator final : public KernelGenerator {
 public:
  std::span<const Dialect> dialects() const noexcept override;
  Result<KernelPlan> generate(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) noexcept override;
  void record(const KernelSpec&, const DeviceInfo&, std::string_view, const Measurement&) noexcept override {}
};

}  // namespace kiln::conformance
