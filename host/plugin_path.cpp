#include "plugin_path.hpp"

#include <kiln/plugin_loader.hpp>

namespace kiln::host {

std::vector<std::filesystem::path> plugin_path(const PluginsConfig& config) {
  std::vector<std::filesystem::path> folders = config.path;
  for (std::filesystem::path& folder : PluginLoader::default_path()) folders.push_back(std::move(folder));
  return folders;
}

}  // namespace kiln::host
