#include "codec/glslang_module.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace kiln::vulkan {
namespace {

std::string linker_message() {
  const char* const message = dlerror();
  return message == nullptr ? "no reason given" : message;
}

Result<const GlslangModule*> open_module() {
  Dl_info here{};
  // Any address inside this plugin tells where it was loaded from.
  if (dladdr(reinterpret_cast<const void*>(&open_module), &here) == 0 || here.dli_fname == nullptr) {
    return unavailable("the GLSL compiler cannot be loaded: the folder of the plugin is unknown");
  }
  std::error_code error;
  const std::filesystem::path plugin = std::filesystem::absolute(here.dli_fname, error);
  const std::filesystem::path path = plugin.parent_path().parent_path() / "libkiln_glslang.so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return unavailable("the GLSL compiler cannot be loaded: " + linker_message());
  const auto* module = static_cast<const GlslangModule*>(dlsym(library, glslang_module_symbol));
  if (module == nullptr) return unavailable("the GLSL compiler does not match the plugin: " + linker_message());
  return module;
}

}  // namespace

Result<const GlslangModule*> glslang_module() {
  static const Result<const GlslangModule*> opened = open_module();
  return opened;
}

}  // namespace kiln::vulkan
