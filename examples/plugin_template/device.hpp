// TemplateDevice: a whole device that can do one thing: matrix products, by plain loops on the calling thread.
//
// Thread-safety: any thread may call; work runs inside submit(), one at a time. Ownership: as Device.
#pragma once

#include <kiln/device.hpp>

#include <map>
#include <mutex>

namespace kiln_template {

// What enumerate() tells: cheap, and no promise.
kiln::DeviceInfo device_info();

class TemplateDevice final : public kiln::Device {
 public:
  TemplateDevice(kiln::DeviceInfo info, kiln::WorkCounters* counters);

  const kiln::DeviceInfo& info() const noexcept override { return info_; }
  kiln::Result<std::unique_ptr<kiln::Buffer>> create_buffer(const kiln::BufferDesc& desc) noexcept override;
  kiln::Result<std::unique_ptr<kiln::Program>> build(const kiln::KernelSource& source) noexcept override;
  kiln::Result<std::unique_ptr<kiln::Program>> load(const kiln::KernelSource& source,
                                                    const kiln::ProgramBinary& binary) noexcept override;
  kiln::Result<kiln::ProgramBinary> serialize(const kiln::Program& program) noexcept override;
  kiln::Result<std::uint64_t> submit(const kiln::Dispatch& dispatch) noexcept override;
  kiln::Result<kiln::FenceResult> wait(std::uint64_t value, kiln::Deadline deadline) noexcept override;

 private:
  kiln::DeviceInfo info_;
  kiln::WorkCounters* counters_;
  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, kiln::Status> done_;  // results that nobody has taken yet
};

}  // namespace kiln_template
