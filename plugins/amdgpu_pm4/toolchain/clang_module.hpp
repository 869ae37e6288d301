// The line between the plugin and libkiln_clang.so, which links Clang as a library: what the module exports, and the
// loading of it at first use.
//
// Thread-safety: open_clang_module() and what it answers, from any thread, also from several at once. Ownership: the
// module stays loaded until the process exits; its texts live as long.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::amdgpu_pm4 {

struct ClangAnswer {
  bool compiled = false;
  bool gave_up = false;  // Clang would have ended the process: `said` ends with its reason
  std::vector<std::byte> object;
  std::string said;
};

struct ClangModule {
  const char* version;  // as `clang --version` begins
  const char* library;  // the file that Clang was loaded from; empty: not known
  // `arguments` are those of the command, without input and output.
  ClangAnswer (*compile)(std::string_view text, std::span<const std::string> arguments) noexcept;
};

using DescribeClangFn = void (*)(ClangModule& module);
inline constexpr const char* describe_clang_symbol = "kiln_describe_clang";

// Where the module lies beside this plugin: the folder above its own. Empty: not known.
std::filesystem::path clang_module_path();

// unavailable, with the dynamic linker's words, where the module or Clang's library is missing.
Result<ClangModule> open_clang_module(const std::filesystem::path& path) noexcept;

}  // namespace kiln::amdgpu_pm4
