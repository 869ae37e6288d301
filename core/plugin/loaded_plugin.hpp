// LoadedPlugin: a plugin whose library is open, whose object agrees with its note, and which has registered into a
// registry of its own. Host and kiln-probe load through here, so that the probe tries exactly what the host will do.
//
// Thread-safety: none; loading is done by one thread. Ownership: owns the library's handle and the registry, until
// merged.
#pragma once

#include <kiln/plugin.hpp>
#include <kiln/registry.hpp>

#include "plugin/shared_library.hpp"

#include <filesystem>
#include <span>
#include <string>

namespace kiln {

// The plugin's name by its file: "/x/opengl.so" → "opengl".
std::string plugin_name(const std::filesystem::path& path);

// What can be known of the file without running it: the note, checked against this host and the file's name.
Result<PluginNote> inspect_plugin(const std::filesystem::path& path, std::span<const std::byte> bytes);

struct LoadedPlugin {
  SharedLibrary library;
  Registry registered;

  // Runs the plugin's code. unavailable: the dynamic linker refuses it. corrupt: no entry object, or one that differs
  // from `note`. internal: it threw while registering. Otherwise what its register function answered.
  static Result<LoadedPlugin> open(const std::filesystem::path& path, const PluginNote& note, Log log);
};

}  // namespace kiln
