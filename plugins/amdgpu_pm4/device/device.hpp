// An AMD device and its buffers.
//
// Pm4Buffer: device memory of one device, mapped for the host for good where it can be.
//
// Thread-safety: any thread. Ownership: shares the buffer object with the submissions in flight that list it.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/device.hpp>
#include <kiln/fence_exchange.hpp>

#include <memory>
#include <string>

#include "amdgpu_pm4/device/program.hpp"
#include "amdgpu_pm4/device/quarantine.hpp"
#include "amdgpu_pm4/device/queue.hpp"
#include "amdgpu_pm4/winsys/chip.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

class Pm4Buffer final : public Buffer {
 public:
  // `owner`: the device, by its id and its winsys. REQUIRES: bytes <= object->bytes().
  Pm4Buffer(std::string device, const Winsys& owner, std::shared_ptr<BufferObject> object, std::uint64_t bytes)
      : device_(std::move(device)), owner_(&owner), object_(std::move(object)), bytes_(bytes) {}

  // desc is checked: 0 < bytes, a usage, no host memory.
  static Result<std::unique_ptr<Buffer>> create(const std::string& device, Winsys& winsys, const BufferDesc& desc);

  std::uint64_t bytes() const noexcept override { return bytes_; }
  Status write(std::uint64_t offset, std::span<const std::byte> from) noexcept override;
  Status read(std::uint64_t offset, std::span<std::byte> to) noexcept override;
  std::span<std::byte> mapped() noexcept override;
  Result<UniqueFd> export_fd() noexcept override;

  const Winsys* owner() const noexcept { return owner_; }
  const std::shared_ptr<BufferObject>& object() const noexcept { return object_; }
  std::uint64_t number() const noexcept { return number_; }

 private:
  Status check(std::string_view doing, std::uint64_t offset, std::size_t bytes) const;

  std::string device_;
  const Winsys* owner_;
  std::shared_ptr<BufferObject> object_;
  std::uint64_t bytes_;
  const std::uint64_t number_ = next_object_number();
};

// The device of one render node, and the facts that it reports.

// Pm4Device: an opened AMD device: buffers, programs and a queue over one winsys.
//
// Thread-safety: every method from any thread. Ownership: owns the winsys and all that serves it; counters, log sink
// and notes belong to the application and outlive it.

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

class Pm4Device final : public Device, public FenceExchange {
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
  Result<UniqueFd> export_fence(std::uint64_t value) noexcept override;
  Status wait_for_fence(int sync_file) noexcept override;

 private:
  Pm4Device(DeviceParts parts, const Chip& chip, DeviceInfo info);
  Status check_source(const KernelSource& source) const;
  Result<std::unique_ptr<Program>> make(const KernelSource& source, std::span<const std::byte> object,
                                        const Digest& digest);
  // No words: a launch is incomplete or of another device, or reads what may have changed: arguments by value.
  DispatchKey key_of(const Dispatch& dispatch) const;
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

// DeviceInfo of an AMD device, from what its node and its chip tell.
//
// Thread-safety: pure functions. Ownership: values.

// "kiln-simulated" in the version's description: Kiln's own simulator; nothing else answers it.
bool is_simulated(const NodeVersion& version);
std::string driver_words(const NodeVersion& version);  // "amdgpu 3.49.0 (AMD GPU)"

// Of an opened device, all but its id and physical_id. `toolchain`: the identity of what compiles for it.
DeviceInfo describe_device(const NodeVersion& version, const NodeFacts& facts, const Chip& chip,
                           const std::string& toolchain);

}  // namespace kiln::amdgpu_pm4
