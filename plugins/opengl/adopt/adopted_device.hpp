// AdoptedDevice: the codec of an adopted context as a Device, for the cache to call.
//
// Thread-safety: info() from any thread; the codec on the adopting thread, and unavailable on another. Ownership:
// shares the context's record with its programs.
#pragma once

#include "adopt/adopted_context.hpp"
#include "codec/context_facts.hpp"

namespace kiln::opengl {

class AdoptedDevice final : public Device {
 public:
  AdoptedDevice(std::shared_ptr<AdoptedContext> context, Facts facts);

  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override;
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override;
  Result<ProgramBinary> serialize(const Program& program) noexcept override;
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override;

  // The program for one holder alone: the acquired one, or where that has had a holder, a second link of its binary.
  // REQUIRES: the acquired program is this device's; enter() was ok.
  Result<Acquired> for_one_holder(Acquired acquired, const KernelSource& source);

  // REQUIRES: the program was made by an AdoptedDevice.
  static GLuint name_of(const Program& program) noexcept;

 private:
  const std::shared_ptr<AdoptedContext> context_;
  const DeviceInfo info_;
  const std::vector<GLenum> binary_formats_;
  WorkCounters counters_;
};

}  // namespace kiln::opengl
