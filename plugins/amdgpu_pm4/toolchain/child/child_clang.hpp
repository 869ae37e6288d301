// ChildClang: the Toolchain that starts a clang for every kernel. A compiler that crashes or hangs takes nothing with
// it.
//
// Thread-safety: as Toolchain. Ownership: owns nothing between calls.
#pragma once

#include <memory>

#include "amdgpu_pm4/toolchain/child/find_compiler.hpp"
#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {

class ChildClang final : public Toolchain {
 public:
  ChildClang(FileStamp compiler, std::string version, DeviceLibrary library)
      : Toolchain(std::move(library)), compiler_(std::move(compiler)), version_(std::move(version)) {}

  const std::string& version() const noexcept override { return version_; }
  Result<Compiled> compile(const OpenClText& text, Target target, Deadline deadline) noexcept override;

 private:
  const FileStamp compiler_;
  const std::string version_;
};

}  // namespace kiln::amdgpu_pm4
