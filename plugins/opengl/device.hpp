// GlDevice: an opened OpenGL device: contexts on threads of their own behind methods that any thread may call.
//
// Thread-safety: every method from any thread. Ownership: shares the contexts with its programs and buffers; counters
// and log sink belong to the application and outlive it.
#pragma once

#include "gl/facts.hpp"
#include "objects/buffer.hpp"
#include "objects/program.hpp"
#include "objects/queue.hpp"
#include "settings.hpp"

#include <kiln/device.hpp>

#include <mutex>

namespace kiln::opengl {

class GlDevice final : public Device {
 public:
  static Result<std::unique_ptr<GlDevice>> open(std::shared_ptr<const EglApi> api, const EglDevice& device,
                                                std::string id, const Settings& settings, const DriverContext& context);
  ~GlDevice() override;

  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override;
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override;
  Result<ProgramBinary> serialize(const Program& program) noexcept override;
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override;

 private:
  GlDevice(std::shared_ptr<ContextGroup> group, Facts facts, Mapping mapping, const DriverContext& context);
  Result<BoundPass> bind(std::size_t index, const PassLaunch& launch) const;
  Status bind_resources(const GlProgram& program, const PassLaunch& launch, BoundPass& pass) const;

  std::shared_ptr<ContextGroup> group_;
  DeviceInfo info_;
  std::vector<GLenum> binary_formats_;
  const Mapping mapping_;
  DriverNotes* const notes_;
  std::once_flag transfer_chosen_;  // at the first buffer: who only looks at the device does not pay for a measurement
  Transfer transfer_ = Transfer::invalid;
  WorkCounters& counters_;
  std::shared_ptr<SharedStaging> staging_;
  GlQueue queue_;
};

}  // namespace kiln::opengl
