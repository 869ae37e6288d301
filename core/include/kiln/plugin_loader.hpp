// PluginLoader: finds plugins by name, checks them, tests unknown ones in kiln-probe, and loads the valid ones.
//
// Plugin NAME is the file NAME.so in the first folder of the path that has this file. The loader never searches the current
// directory. If a plugin fails, the loader continues with the other plugins. The Status of the failed plugin has the file,
// the expected and the found value. The loader opens no device. docs/plugin-contract.md describes the checks.
// Thread-safety: none; load from one thread before the registry is used. Ownership: libraries remain loaded until the
// process ends, also after the loader is destroyed. The registry must outlive objects made by plugins.
//
//   kiln::PluginLoader loader;
//   kiln::PluginLoaderOptions options;
//   options.path = kiln::PluginLoader::default_path();
//   auto reports = loader.load(config.plugins.load, config.plugins.required, registry, options);
#pragma once

#include <kiln/log.hpp>
#include <kiln/registry.hpp>
#include <kiln/status.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

// How a plugin file was checked before it was loaded into this process.
enum class PluginTrial : std::uint8_t {
  invalid = 0,
  none,        // rejected by its file alone
  remembered,  // by the stored result of an earlier start
  probed,      // tested in kiln-probe
};

struct PluginReport {
  std::string name;
  std::filesystem::path path;  // empty if not found
  bool loaded = false;
  std::string version;  // version of the plugin; empty if its note could not be read
  Status why_not;       // ok if loaded
  bool required = false;
  PluginTrial trial = PluginTrial::none;
};

struct PluginLoaderOptions {
  std::vector<std::filesystem::path> path;  // absolute folders, searched first to last; empty: default_path()
  std::filesystem::path verdict_file;       // empty: results are not stored
  bool verdicts_read_only = false;          // the verdict file is read, and not written
  std::filesystem::path probe;              // the program kiln-probe; empty: default_probe()
  std::chrono::nanoseconds probe_timeout = std::chrono::seconds(5);
  Log log;
};

class PluginLoader {
 public:
  PluginLoader();
  PluginLoader(const PluginLoader&) = delete;
  PluginLoader& operator=(const PluginLoader&) = delete;
  ~PluginLoader();

  // Return paths relative to libkiln_core.so: lib/kiln/plugins and libexec/kiln/kiln-probe, in the build and the installed
  // tree. If the path of libkiln_core.so is unknown, the results do not have these paths. first: folders that are searched
  // first, such as PluginsConfig::path.
  static std::vector<std::filesystem::path> default_path(std::vector<std::filesystem::path> first = {});
  static std::filesystem::path default_probe();

  // Loads plugins and returns one report per name, in order. Loads required names that are not in `names` last. Loads a
  // duplicate name once. The caller decides what happens if a required plugin is not loaded.
  std::vector<PluginReport> load(std::span<const std::string> names, std::span<const std::string> required,
                                 Registry& registry, const PluginLoaderOptions& options);

 private:
  struct Libraries;
  std::unique_ptr<Libraries> libraries_;
};

}  // namespace kiln
