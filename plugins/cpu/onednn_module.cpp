#include "onednn_module.hpp"

#include <dlfcn.h>

#include <filesystem>

namespace kiln::cpu {
namespace {

std::filesystem::path module_path() {
  Dl_info here{};
  // Any address inside this plugin tells where it was loaded from.
  if (dladdr(reinterpret_cast<const void*>(&open_onednn), &here) == 0 || here.dli_fname == nullptr) return {};
  std::error_code error;
  const auto plugin = std::filesystem::absolute(here.dli_fname, error);
  return error ? std::filesystem::path() : plugin.parent_path().parent_path() / "libkiln_onednn.so";
}

std::string linker_message() {
  const char* message = dlerror();
  return message == nullptr ? "no reason given" : message;
}

}  // namespace

Result<std::unique_ptr<Device>> open_onednn(const OpenRequest& request) noexcept try {
  const std::filesystem::path path = module_path();
  if (path.empty()) return unavailable("device 'cpu': the plugin's own folder is unknown");
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return unavailable("device 'cpu': oneDNN cannot be loaded: " + linker_message());
  const auto create = reinterpret_cast<CreateDeviceFn>(dlsym(module, create_device_symbol));
  if (create == nullptr) return unavailable("device 'cpu': " + linker_message());
  Status failure;
  std::unique_ptr<Device> device(create(request, failure));
  if (device == nullptr) return failure.within("device 'cpu'");
  return device;
} catch (...) {
  return caught();
}

}  // namespace kiln::cpu
