// Pm4Device: an opened AMD device: buffers, programs and a queue over one winsys.
//
// Thread-safety: every method from any thread. Ownership: owns the winsys and all that serves it; counters, log sink
// and notes belong to the application and outlive it.
#pragma once

#include <kiln/device.hpp>

#include "amdgpu_pm4/device/program/compiler.hpp"
#include "amdgpu_pm4/device/program/program_loader.hpp"
#include "amdgpu_pm4/device/quarantine.hpp"
#include "amdgpu_pm4/device/queue/queue.hpp"
#include "amdgpu_pm4/node_source.hpp"
#include "amdgpu_pm4/winsys/chip.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

struct DeviceParts {
  std::string id;           // "amdgpu:0"
  std::string physical_id;  // "pci:0000:03:00.0"
  NodeVersion version;
  std::unique_ptr<Winsys> winsys;
  Compiler compiler;
  Log log;
  WorkCounters* counters = nullptr;  // not null
  DriverNotes* notes = nullptr;      // null: nothing is kept
};

class Pm4Device final : public Device {
 public:
  // unsupported: a chip that nothing is dispatched to.
  static Result<std::unique_ptr<Device>> open(DeviceParts parts);

  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override;
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override;
  Result<ProgramBinary> serialize(const Program& program) noexcept override;
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override;

 private:
  Pm4Device(DeviceParts parts, const Chip& chip, DeviceInfo info);
  Status check_source(const KernelSource& source) const;
  Result<std::unique_ptr<Program>> make(const KernelSource& source, std::span<const std::byte> object,
                                        const Digest& digest);
  Result<BoundPass> bind(std::size_t index, const PassLaunch& launch) const;
  // What of local memory the launch gives each argument. The words that follow "pass 2", where it cannot.
  std::optional<std::string> bind_local(const PassLaunch& launch, BoundPass& pass) const;

  const std::unique_ptr<Winsys> winsys_;
  const Compiler compiler_;
  WorkCounters& counters_;
  const DeviceInfo info_;
  const Target target_;
  Quarantine quarantine_;
  ProgramLoader loader_;
  std::unique_ptr<Queue> queue_;  // ends first: what is in flight pins what the others hold
};

}  // namespace kiln::amdgpu_pm4
