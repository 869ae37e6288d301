// plugin_path: the folders that the command and its bench look for plugins in.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include <kiln/config.hpp>

#include <filesystem>
#include <vector>

namespace kiln::host {

// Those that were given, and after them the installed one: who adds a plugin keeps what Kiln brings.
std::vector<std::filesystem::path> plugin_path(const PluginsConfig& config);

}  // namespace kiln::host
