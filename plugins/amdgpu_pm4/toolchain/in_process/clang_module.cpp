#include "amdgpu_pm4/toolchain/in_process/clang_module.hpp"

#include <dlfcn.h>

namespace kiln::amdgpu_pm4 {
namespace {

std::string linker_message() {
  const char* const message = dlerror();
  return message == nullptr ? "no reason given" : message;
}

}  // namespace

std::filesystem::path clang_module_path() {
  Dl_info here{};
  // Any address inside this plugin tells where it was loaded from.
  if (dladdr(reinterpret_cast<const void*>(&clang_module_path), &here) == 0 || here.dli_fname == nullptr) return {};
  std::error_code error;
  const auto plugin = std::filesystem::absolute(here.dli_fname, error);
  return error ? std::filesystem::path() : plugin.parent_path().parent_path() / "libkiln_clang.so";
}

Result<ClangModule> open_clang_module(const std::filesystem::path& path) noexcept {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return unavailable("Clang cannot be loaded: " + linker_message());
  const auto describe = reinterpret_cast<DescribeClangFn>(dlsym(library, describe_clang_symbol));
  if (describe == nullptr) return unavailable("Clang's module is another: " + linker_message());
  ClangModule module{};
  describe(module);
  return module;
}

}  // namespace kiln::amdgpu_pm4
