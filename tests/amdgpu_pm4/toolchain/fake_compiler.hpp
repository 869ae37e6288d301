// FakeCompiler: a folder with programs that stand for compilers: shell scripts that answer, refuse, crash or hang.
//
// Thread-safety: none. Ownership: removes its folder. Also here: the compiler of this machine, for tests that need one.
#pragma once

#include <kiln/kernel.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {

class FakeCompiler {
 public:
  FakeCompiler();
  FakeCompiler(const FakeCompiler&) = delete;
  FakeCompiler& operator=(const FakeCompiler&) = delete;
  ~FakeCompiler();

  const std::filesystem::path& folder() const { return folder_; }
  // An executable script of these lines; answers its path.
  std::string write(const std::string& name, const std::string& lines) const;

 private:
  std::filesystem::path folder_;
};

// nullptr, after a warning that says so, where there is no clang-19.
std::unique_ptr<Toolchain> clang_of_this_machine();

KernelSource opencl(std::string text, std::string entry = "kiln_kernel");
Deadline soon();  // enough for any kernel of these tests on a busy machine

}  // namespace kiln::amdgpu_pm4
