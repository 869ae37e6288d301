#include "amdgpu_pm4/toolchain/fake_compiler.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {

FakeCompiler::FakeCompiler() {
  std::string name = (std::filesystem::temp_directory_path() / "kiln-compiler-XXXXXX").string();
  REQUIRE(mkdtemp(name.data()) != nullptr);
  folder_ = name;
}

FakeCompiler::~FakeCompiler() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string FakeCompiler::write(const std::string& name, const std::string& lines) const {
  const std::filesystem::path path = folder_ / name;
  std::ofstream(path) << "#!/bin/sh\n" << lines << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path.string();
}

std::unique_ptr<Toolchain> clang_of_this_machine() {
  ToolchainSettings settings;
  settings.place = CompilerPlace::child;
  auto toolchain = open_toolchain(settings, nullptr, {});
  if (toolchain) return std::move(*toolchain);
  WARN("skipped: " << toolchain.error().message);
  return nullptr;
}

KernelSource opencl(std::string text, std::string entry) {
  KernelSource source;
  source.dialect = Dialect::opencl_c;
  source.text = std::move(text);
  source.entry = std::move(entry);
  return source;
}

Deadline soon() { return Deadline::after(std::chrono::seconds(120)); }

}  // namespace kiln::amdgpu_pm4
