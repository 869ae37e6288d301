// ClangAheadCompiler: `kiln kernel build` for this plugin's targets, without a device.
//
// Thread-safety: as AheadCompiler. Ownership: owns its toolchain, opened by the first compile().
#pragma once

#include <kiln/offline_tools.hpp>

#include <memory>

#include "amdgpu_pm4/toolchain/open_toolchain.hpp"

namespace kiln::amdgpu_pm4 {

class ClangAheadCompiler final : public AheadCompiler {
 public:
  ClangAheadCompiler(ToolchainSettings settings, Log log) : settings_(std::move(settings)), log_(log) {}

  std::vector<std::string> targets() const override;
  // The binary is the code object itself, in the format "amdgpu:gfx1100:code-object".
  Result<AheadProgram> compile(const AheadSource& source) noexcept override;

 private:
  const ToolchainSettings settings_;
  const Log log_;
  std::unique_ptr<Toolchain> toolchain_;
};

Result<std::unique_ptr<AheadCompiler>> make_ahead_compiler(const OfflineContext& context);

}  // namespace kiln::amdgpu_pm4
