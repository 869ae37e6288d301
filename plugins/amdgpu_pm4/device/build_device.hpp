// BuildDevice: builds, loads and serializes programs for every card of one chip, without a card.
//
// Its programs have the keys and the bytes of those that a card's own device makes. Nothing runs on it but empty grids.
// Thread-safety: every method from any thread. Ownership: owns its compiler.
#pragma once

#include <kiln/device.hpp>
#include <kiln/log.hpp>
#include <kiln/offline_tools.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "amdgpu_pm4/device/program.hpp"
#include "amdgpu_pm4/toolchain/toolchain.hpp"
#include "amdgpu_pm4/winsys/chip.hpp"

namespace kiln::amdgpu_pm4 {

class BuildDevice final : public Device {
 public:
  // unavailable: there is no compiler, so that the keys of the card's programs are not known.
  static Result<std::unique_ptr<Device>> open(const Chip& chip, Compiler compiler);

  const DeviceInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Buffer>> create_buffer(const BufferDesc& desc) noexcept override;
  Result<std::unique_ptr<Program>> build(const KernelSource& source) noexcept override;
  Result<std::unique_ptr<Program>> load(const KernelSource& source, const ProgramBinary& binary) noexcept override;
  Result<ProgramBinary> serialize(const Program& program) noexcept override;
  Result<std::uint64_t> submit(const Dispatch& dispatch) noexcept override;
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline) noexcept override;

 private:
  BuildDevice(const Chip& chip, Compiler compiler, DeviceInfo info);
  Status nothing_runs() const;

  const Compiler compiler_;
  const DeviceInfo info_;
  const Target target_;
  std::atomic<std::uint64_t> submitted_{0};
};

// ClangAheadCompiler: `kiln kernel build` and `kiln cache bake` for this plugin's targets, without a device.
//
// Thread-safety: as AheadCompiler. Ownership: owns its toolchain, opened by the first compile().
class ClangAheadCompiler final : public AheadCompiler {
 public:
  ClangAheadCompiler(ToolchainSettings settings, Log log) : settings_(std::move(settings)), log_(log) {}

  std::vector<std::string> targets() const override;
  // The binary is the code object itself, in the format "amdgpu:gfx1100:code-object".
  Result<AheadProgram> compile(const AheadSource& source) noexcept override;
  // Of the targets, those of a chip that the plugin dispatches to. unavailable: no compiler.
  Result<std::unique_ptr<Device>> open(const std::string& target) noexcept override;

 private:
  Result<std::shared_ptr<Toolchain>> open_shared() const;

  const ToolchainSettings settings_;
  const Log log_;
  std::unique_ptr<Toolchain> toolchain_;
};

Result<std::unique_ptr<AheadCompiler>> make_ahead_compiler(const OfflineContext& context);

}  // namespace kiln::amdgpu_pm4
