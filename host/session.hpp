// Session: what the verbs share: configuration read, driver environment set, plugins loaded, runtime made.
//
// Thread-safety: main thread only. Ownership: owns the registry, the loader and the runtime, and destroys the runtime
// first.
#pragma once

#include "console.hpp"
#include "options.hpp"
#include "trace/chrome_trace.hpp"

#include <kiln/plugin_loader.hpp>
#include <kiln/runtime.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kiln::host {

class Session {
 public:
  explicit Session(const Options& options) : options_(options) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Each answers the exit status to end with after having complained, or nullopt to go on.
  // Reads the configuration, sets the environment that drivers read, loads the plugins and checks their sections.
  std::optional<int> open_plugins();
  // The same, and further: every plugin that the configuration requires is there, and the runtime is made.
  std::optional<int> open_runtime();
  // After open_plugins(), where a required plugin that is missing is no matter.
  std::optional<int> create_runtime();

  const Options& options() const noexcept { return options_; }
  const Config& config() const noexcept { return config_; }
  Registry& registry() noexcept { return registry_; }
  Runtime& runtime() noexcept { return *runtime_; }
  // What --trace asked for goes to its file; nothing where it did not.
  Status write_trace() const;
  // The keys that loaded plugins published; a loaded plugin without keys stands with none.
  std::map<std::string, std::vector<ConfigKey>> plugin_keys() const;
  const std::vector<PluginReport>& plugins() const noexcept { return plugins_; }

 private:
  std::optional<int> read();
  std::optional<int> load_plugins();
  std::optional<int> require_plugins();

  const Options& options_;
  ConsoleLog sink_;
  Log log_;
  Config config_;
  Registry registry_;
  PluginLoader loader_;
  std::vector<PluginReport> plugins_;
  ChromeTrace trace_;
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace kiln::host
