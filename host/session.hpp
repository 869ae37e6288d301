// Session: what the verbs share: configuration read, cache folder and driver environment made ready, plugins loaded,
// runtime made.
//
// Thread-safety: main thread only. Ownership: owns the registry, the loader and the runtime, and destroys the runtime
// first.
#pragma once

#include "console.hpp"
#include "options.hpp"
#include "base/chrome_trace.hpp"

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

  // Each answers the exit status to end with after having complained of every problem, or nullopt to go on.
  // Reads the configuration, loads the plugins and checks their sections: for verbs that open no device.
  std::optional<int> open_plugins();
  // The same, and also looks at the jobs' files, at the names of the configuration, and for the plugins that it
  // requires.
  std::optional<int> check();
  // As open_plugins(), and further: the cache folder is made ready, the environment that drivers read is set, and the
  // runtime is made. MissingPlugins::end: only where every plugin that the configuration requires is there.
  // JobFiles::check: for verbs that take the jobs' tensors. meanwhile: called once the runtime is made, while the jobs'
  // files are still looked at.
  std::optional<int> open_runtime(MissingPlugins missing = MissingPlugins::end, JobFiles files = JobFiles::ignore,
                                  const std::function<void(Runtime&)>& meanwhile = {});
  // Complains of every device id that does not exist: --device, or those of the configuration that it does not replace.
  // REQUIRES: open_runtime() succeeded.
  std::optional<int> check_devices();
  // Every device for "auto" and for no id; else the one of that id. Where its driver could not start, what stands for
  // the driver's devices. REQUIRES: open_runtime() succeeded; the id exists.
  std::vector<DeviceInfo> devices_named(const std::string& id);
  // Before the process ends early: lets go of the runtime, which leaves what the cache and the selector have to tell
  // the next process. A driver call that does not return is waited for so long and no longer.
  void close(std::chrono::milliseconds patience);

  const Options& options() const noexcept { return options_; }
  const Config& config() const noexcept { return config_; }
  Registry& registry() noexcept { return registry_; }
  Runtime& runtime() noexcept { return *runtime_; }
  ConsoleLog& console() noexcept { return sink_; }
  // What --trace asked for goes to its file; nothing where it did not.
  Status write_trace() const;
  // What the makers of a plugin's offline tools are given.
  OfflineContext offline_context(const std::string& plugin) const;
  // The keys that loaded plugins published; a loaded plugin without keys stands with none.
  std::map<std::string, std::vector<ConfigKey>> plugin_keys() const;
  const std::vector<PluginReport>& plugins() const noexcept { return plugins_; }
  // What is wrong with what was asked for; each has been complained of.
  const std::vector<ConfigProblem>& problems() const noexcept { return problems_; }
  // What the configuration has of earlier versions; each has been logged.
  const std::vector<ConfigProblem>& warnings() const noexcept { return warnings_; }
  // Complains of one more, and answers the exit status to end with.
  int refuse(ConfigProblem problem);
  int refuse(std::string why, const std::string& file = {});

 private:
  void read();
  // Adds what is wrong to problems_ without complaining of it.
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
  bool only_reads_cache_ = false;  // it was asked for, or nothing can be written
  bool trusts_cache_ = true;       // false: there is none, or others can change it, so that it is not even read
  bool has_key_ = true;            // false: what is in it cannot be authenticated
  std::vector<ConfigProblem> problems_;
  std::vector<ConfigProblem> warnings_;
  Registry registry_;
  PluginLoader loader_;
  std::vector<PluginReport> plugins_;
  ChromeTrace trace_;
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace kiln::host
