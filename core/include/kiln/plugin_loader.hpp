// PluginLoader: finds plugins by name, checks them, tries unknown ones in kiln-probe, loads the good and says why not
// of others.
//
// A plugin NAME is the file NAME.so in the first folder of the path that has it; the current directory is never
// searched. Each failure is a Status of its own that names the file and both sides, and never stops the other plugins.
// No plugin opens a device here. The checks and their order: docs/plugin-contract.md. Thread-safety: none; one thread
// loads, before the registry is used. Ownership: libraries stay loaded until the process exits; the loader may die
// before, the registry outlives what the plugins make.
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

namespace kiln {

// How a plugin's file was judged before it was loaded into this process.
enum class PluginTrial : std::uint8_t {
  invalid = 0,
  none,        // turned down by its file alone
  remembered,  // by a verdict of an earlier start
  probed,      // kiln-probe was started for it
};

struct PluginReport {
  std::string name;
  std::filesystem::path path;  // empty where no folder has it
  bool loaded = false;
  std::string version;  // the plugin's own; empty where its note could not be read
  Status why_not;       // ok where loaded
  bool required = false;
  PluginTrial trial = PluginTrial::none;
};

struct PluginLoaderOptions {
  std::vector<std::filesystem::path> path;  // absolute folders, searched first to last; empty: default_path()
  std::filesystem::path verdict_file;       // empty: verdicts are not remembered
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

  // By the place of libkiln_core.so, whose tree is laid out alike where it is built and where it is installed:
  // lib/kiln/plugins and libexec/kiln/kiln-probe. Empty where that place is unknown.
  static std::vector<std::filesystem::path> default_path();
  static std::filesystem::path default_probe();

  // One report a name, in order; a required name that `names` lacks is loaded too, after them. A name given twice is
  // loaded once. Whether a required plugin that is not loaded ends the program is the caller's decision.
  std::vector<PluginReport> load(std::span<const std::string> names, std::span<const std::string> required,
                                 Registry& registry, const PluginLoaderOptions& options);

 private:
  struct Libraries;
  std::unique_ptr<Libraries> libraries_;
};

}  // namespace kiln
