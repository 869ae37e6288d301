#include "amdgpu_pm4/toolchain/open_toolchain.hpp"

#include <algorithm>
#include <cstdlib>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/toolchain/child_clang.hpp"
#include "amdgpu_pm4/toolchain/in_process_clang.hpp"
#include "amdgpu_pm4/toolchain/opencl_text.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::chrono::seconds version_deadline{20};

CompilerPlace place_named(std::string_view name) {
  if (name == "auto") return CompilerPlace::automatic;
  if (name == "in_process") return CompilerPlace::in_process;
  return name == "child" ? CompilerPlace::child : CompilerPlace::invalid;
}

Result<std::unique_ptr<Toolchain>> open_child(const ToolchainSettings& settings, DriverNotes* notes,
                                              DeviceLibrary library) {
  const char* const folders = std::getenv("PATH");
  auto compiler = find_compiler(settings.program, folders == nullptr ? "" : folders);
  if (!compiler) return compiler.error();
  auto version = version_of(*compiler, notes, Deadline::after(version_deadline));
  if (!version) return version.error();
  return std::unique_ptr<Toolchain>(
      std::make_unique<ChildClang>(std::move(*compiler), std::move(*version), std::move(library)));
}

Result<std::unique_ptr<Toolchain>> open_in_process(const ToolchainSettings& settings, DriverNotes* notes,
                                                   DeviceLibrary library) {
  auto clang = InProcessClang::create(settings.module.empty() ? clang_module_path() : settings.module, notes,
                                      std::move(library));
  if (!clang) return clang.error();
  return std::unique_ptr<Toolchain>(std::move(*clang));
}

}  // namespace

std::vector<ConfigKey> toolchain_keys() {
  const ToolchainSettings usual;
  return {{"compiler",
           ConfigType::text,
           std::string("auto"),
           "Where OpenCL C is compiled: 'in_process' by Clang as a library, 'child' by a clang started for every "
           "kernel; 'auto' is in_process where that library is there, else child",
           {},
           {},
           {"auto", "in_process", "child"}},
          {"clang",
           ConfigType::text,
           usual.program,
           "The clang to start: a path, or a name to look for in PATH; one that knows the device's target",
           {},
           {},
           {}},
          {"device_library",
           ConfigType::text,
           usual.library,
           "The folder of OpenCL C's function library as bitcode (Debian: rocm-device-libs); 'auto': where packages "
           "install it",
           {},
           {},
           {}},
          {"compile_timeout",
           ConfigType::integer,
           std::int64_t{usual.deadline.count()},
           "Seconds after which a clang that was started for a kernel is ended",
           1,
           3600,
           {}}};
}

Result<ToolchainSettings> read_toolchain_settings(const PluginSettings& section) {
  ToolchainSettings settings;
  const auto find = [&section](const char* key) {
    const auto at = section.find(key);
    return at == section.end() ? nullptr : &at->second;
  };
  if (const ConfigValue* const value = find("compiler")) {
    const auto* const name = std::get_if<std::string>(value);
    settings.place = name == nullptr ? CompilerPlace::invalid : place_named(*name);
    if (settings.place == CompilerPlace::invalid) {
      return invalid_argument("compiler = " + (name == nullptr ? "no text" : "'" + *name + "'") +
                              ": expected auto, in_process or child");
    }
  }
  if (const ConfigValue* const value = find("clang")) {
    const auto* const program = std::get_if<std::string>(value);
    if (program == nullptr || program->empty()) return invalid_argument("clang: expected a path or a name");
    settings.program = *program;
  }
  if (const ConfigValue* const value = find("device_library")) {
    const auto* const folder = std::get_if<std::string>(value);
    if (folder == nullptr || folder->empty()) return invalid_argument("device_library: expected a folder or 'auto'");
    settings.library = *folder;
  }
  if (const ConfigValue* const value = find("compile_timeout")) {
    const auto* const seconds = std::get_if<std::int64_t>(value);
    if (seconds == nullptr || *seconds < 1) return invalid_argument("compile_timeout: expected seconds, at least 1");
    settings.deadline = std::chrono::seconds(*seconds);
  }
  return settings;
}

Result<std::unique_ptr<Toolchain>> open_toolchain(const ToolchainSettings& settings, DriverNotes* notes, Log log) {
  DeviceLibrary library = find_device_library(settings.library, notes);
  if (!library.present()) {
    log.write(LogLevel::info, "amdgpu_pm4", "OpenCL C's function library is missing: " + library.why_not);
  }
  if (settings.place == CompilerPlace::child) return open_child(settings, notes, std::move(library));
  auto in_process = open_in_process(settings, notes, library);
  if (in_process || settings.place == CompilerPlace::in_process) return in_process;
  log.write(LogLevel::info, "amdgpu_pm4", in_process.error().message + "; a clang is started for every kernel");
  auto child = open_child(settings, notes, std::move(library));
  if (child) return child;
  return unavailable(child.error().message + "; and " + in_process.error().message);
}

}  // namespace kiln::amdgpu_pm4
