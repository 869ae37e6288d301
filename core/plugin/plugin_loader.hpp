// LoadedPlugin: a plugin with its library open, its object checked against its note, and a registry of its own. The
// loader and kiln-probe both use it, so the probe tests exactly what the loader does.
//
// Thread-safety: none; one thread loads plugins. Ownership: owns the library's handle and the registry, until merged.
#pragma once

#include <kiln/plugin.hpp>
#include <kiln/registry.hpp>
#include <kiln/status.hpp>

#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace kiln {

// SharedLibrary: a library opened with immediate binding and local symbols. The only user of Boost.DLL.
//
// Thread-safety: as dlopen and dlsym. Ownership: a handle; the library remains loaded until the process exits, because
// its threads, static objects and created objects may still use its code.
class SharedLibrary {
 public:
  // unavailable: with the dynamic linker's message. REQUIRES: path is absolute.
  static Result<SharedLibrary> open(const std::filesystem::path& path);

  SharedLibrary(SharedLibrary&&) noexcept;
  ~SharedLibrary();

  // Null: the library does not export it.
  const void* symbol(const char* name) const noexcept;

 private:
  struct Handle;
  explicit SharedLibrary(std::unique_ptr<Handle> handle) noexcept;
  std::unique_ptr<Handle> handle_;
};

// Returns the plugin's name from its file: "/x/opengl.so" → "opengl".
std::string plugin_name(const std::filesystem::path& path);

// Reads the note without running the plugin, and checks it against this host and the file's name.
Result<PluginNote> inspect_plugin(const std::filesystem::path& path, std::span<const std::byte> bytes);

struct LoadedPlugin {
  SharedLibrary library;
  Registry registered;

  // Runs the plugin's code. unavailable: dlopen failed. corrupt: no entry object, or it differs from `note`. internal:
  // it threw while registering. Otherwise the error of its register function.
  static Result<LoadedPlugin> open(const std::filesystem::path& path, const PluginNote& note, Log log);
};

}  // namespace kiln
