// VulkanDevice: an opened Vulkan device, its buffers, programs and queue.
//
// Thread-safety: every method from any thread. Ownership: shares the VkDevice with its programs and buffers; counters
// and log sink belong to the application and outlive it.
#pragma once

#include <kiln/device.hpp>
#include <kiln/fence_exchange.hpp>

#include <memory>

#include "buffer.hpp"
#include "program.hpp"
#include "queue.hpp"

namespace kiln::vulkan {

class VulkanDevice final : public Device, public FenceExchange {
 public:
  static Result<std::unique_ptr<VulkanDevice>> open(std::shared_ptr<const VulkanApi> api, const PhysicalFacts& facts,
                                                    const DriverContext& context);

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
  VulkanDevice(std::shared_ptr<Gpu> gpu, std::unique_ptr<Queue> queue, DeviceInfo info, WorkCounters& counters);
  Status check_source(const KernelSource& source) const;

  std::shared_ptr<Gpu> gpu_;
  std::unique_ptr<Queue> queue_;
  DeviceInfo info_;
  WorkCounters& counters_;
  std::shared_ptr<Transfers> transfers_;
};

}  // namespace kiln::vulkan
