// InProcessClang: the Toolchain that compiles within this process, by Clang as a library. A kernel takes milliseconds
// instead of a process's start; a deadline is looked at before the work and after it, not during it.
//
// Thread-safety: as Toolchain. Ownership: the module stays loaded until the process exits.
#pragma once

#include <kiln/driver_notes.hpp>

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "amdgpu_pm4/toolchain/clang_module.hpp"
#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {

class InProcessClang final : public Toolchain {
 public:
  // The module is opened here only where the notes do not tell its version already. unavailable: the module, or the
  // library that it stands on, is missing.
  static Result<std::unique_ptr<InProcessClang>> create(const std::filesystem::path& module, DriverNotes* notes,
                                                        DeviceLibrary library);

  const std::string& version() const noexcept override { return version_; }
  Result<Compiled> compile(const OpenClText& text, Target target, Deadline deadline) noexcept override;

 private:
  InProcessClang(std::filesystem::path path, DeviceLibrary library)
      : Toolchain(std::move(library)), path_(std::move(path)) {}
  Result<ClangModule> module() noexcept;

  const std::filesystem::path path_;
  std::string version_;
  std::mutex mutex_;
  std::optional<ClangModule> module_;  // once it was opened
};

}  // namespace kiln::amdgpu_pm4
