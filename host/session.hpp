// Session: the common setup of the verbs: reads the configuration, prepares the cache folder and the driver environment,
// loads the plugins, creates the runtime.
//
// Thread-safety: main thread only. Ownership: owns the registry, the loader and the runtime, and destroys the runtime
// first.
#pragma once

#include "console.hpp"
#include "options.hpp"

#include <kiln/chrome_trace.hpp>
#include <kiln/config_reader.hpp>
#include <kiln/plugin_loader.hpp>
#include <kiln/runtime.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace kiln::host {

enum class MissingPlugins { invalid = 0, end, pass };
enum class JobFiles { invalid = 0, ignore, check };

class Session {
 public:
  explicit Session(const Options& options) : options_(options) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Each prints all problems and returns the exit status, or nullopt to continue.
  // Reads the configuration, loads the plugins and checks their sections: for verbs that open no device.
  std::optional<int> open_plugins();
  // The same; also checks the jobs' files, the names in the configuration and the required plugins.
  std::optional<int> check();
  // As open_plugins(); then prepares the cache folder, sets the environment of the drivers and creates the runtime.
  // MissingPlugins::end: a missing required plugin is an error. JobFiles::check: for verbs that use the jobs' tensors.
  // meanwhile: called after the runtime was created, before the jobs' files are checked if the cache folder exists.
  std::optional<int> open_runtime(MissingPlugins missing = MissingPlugins::end, JobFiles files = JobFiles::ignore,
                                  const std::function<void(Runtime&)>& meanwhile = {});
  // Prints an error for every unknown device id: --device, or those of the configuration that it does not replace.
  // REQUIRES: open_runtime() succeeded.
  std::optional<int> check_devices();
  // Returns all devices for "auto" or an empty id, else the device with that id. If its driver could not start, the
  // entry has the reason in `why_not`. REQUIRES: open_runtime() succeeded; the id exists.
  std::vector<DeviceInfo> devices_named(const std::string& id);
  // Call it before the process ends early: destroys the runtime, so that cache and selector store their data. Waits a
  // limited time for a driver call that does not return.
  void close(std::chrono::milliseconds patience);
  // The last call of a verb: destroys the runtime and ends the process with the status, open devices with it. Returns
  // the status where a sanitizer looks for leaks or there is no runtime.
  int end(int status);

  const Options& options() const noexcept { return options_; }
  const Config& config() const noexcept { return config_; }
  Registry& registry() noexcept { return registry_; }
  Runtime& runtime() noexcept { return *runtime_; }
  ConsoleLog& console() noexcept { return sink_; }
  // Writes the trace to the file of --trace, if given.
  Status write_trace() const;
  // Returns the context for a plugin's offline tools.
  OfflineContext offline_context(const std::string& plugin) const;
  // Returns the keys of the loaded plugins; a plugin without keys has an empty list.
  std::map<std::string, std::vector<ConfigKey>> plugin_keys() const;
  const std::vector<PluginReport>& plugins() const noexcept { return plugins_; }
  // Problems of the request; all were printed.
  const std::vector<ConfigProblem>& problems() const noexcept { return problems_; }
  // Values of earlier versions in the configuration; all were logged.
  const std::vector<ConfigProblem>& warnings() const noexcept { return warnings_; }
  // Prints one more problem and returns the exit status.
  int refuse(ConfigProblem problem);
  int refuse(std::string why, const std::string& file = {});

 private:
  void read();
  // Adds problems to problems_ without printing them.
  std::optional<int> open_with_plugins(MissingPlugins missing);
  void settle_results();
  void make_cache_ready();
  void set_driver_environment();
  void only_read_cache(const Status& why);
  void warn_of_cache(const std::string& text);
  void only_read_cache_where_needed();
  void load_plugins();
  void check_names();
  void check_driver(const std::string& id, const ConfigPlace& place);
  std::optional<int> report_problems();
  std::optional<int> require_plugins();
  std::optional<int> create_runtime();
  Config config_for_runtime() const;
  void check_device(const std::string& id, const ConfigPlace& place);

  const Options& options_;
  ConsoleLog sink_;
  Log log_;
  Config config_;
  bool only_reads_cache_ = false;  // requested, or the folder is not writable
  bool trusts_cache_ = true;       // false: none, or others can change it, so it is not read
  bool has_key_ = true;            // false: stored programs cannot be authenticated
  std::vector<ConfigProblem> problems_;
  std::vector<ConfigProblem> warnings_;
  Registry registry_;
  PluginLoader loader_;
  std::vector<PluginReport> plugins_;
  ChromeTrace trace_;
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace kiln::host
