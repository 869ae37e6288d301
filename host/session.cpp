#include "session.hpp"

#include "exit_status.hpp"

#include <cstdlib>

#include <sys/stat.h>

namespace kiln::host {
namespace {

int complain_of(const std::vector<ConfigProblem>& problems) {
  for (const ConfigProblem& problem : problems) complain(problem.text());
  return exit_usage;
}

// Makes the folder and the ones above it, for this user alone. A folder that cannot be made is not an error: the driver
// and the cache then work without it.
void make_private_folder(const std::filesystem::path& folder) {
  std::filesystem::path so_far;
  for (const std::filesystem::path& part : folder) {
    so_far /= part;
    mkdir(so_far.c_str(), 0700);
  }
}

}  // namespace

Session::~Session() = default;

std::optional<int> Session::open_plugins() {
  if (const auto end = read()) return end;
  return load_plugins();
}

std::optional<int> Session::open_runtime() {
  if (const auto end = open_plugins()) return end;
  if (const auto end = require_plugins()) return end;
  return create_runtime();
}

std::optional<int> Session::read() {
  ConfigReading reading = read_config(options_.sources);
  if (!reading.problems.empty()) return complain_of(reading.problems);
  config_ = std::move(reading.config);
  log_ = {&sink_, config_.log_level};
  for (const auto& [name, value] : driver_environment(config_)) {
    if (name == "MESA_SHADER_CACHE_DIR" && !config_.cache.read_only) make_private_folder(value);
    setenv(name.c_str(), value.c_str(), 0);  // what the user has set stays
  }
  return std::nullopt;
}

std::optional<int> Session::load_plugins() {
  if (Status status = register_core(registry_); !status.ok()) {
    complain(status.text());
    return exit_usage;
  }
  PluginLoaderOptions options;
  options.path = config_.plugins.path.empty() ? PluginLoader::default_path() : config_.plugins.path;
  if (!config_.cache.read_only) options.verdict_file = config_.cache.directory / "probe_verdicts.json";
  options.log = log_;
  plugins_ = loader_.load(config_.plugins.load, config_.plugins.required, registry_, options);
  const auto problems = check_plugin_sections(config_, plugin_keys());
  if (!problems.empty()) return complain_of(problems);
  return std::nullopt;
}

std::map<std::string, std::vector<ConfigKey>> Session::plugin_keys() const {
  auto keys = registry_.config_keys();
  for (const PluginReport& plugin : plugins_) {
    if (plugin.loaded) keys.try_emplace(plugin.name);
  }
  return keys;
}

std::optional<int> Session::require_plugins() {
  bool all = true;
  for (const PluginReport& plugin : plugins_) {
    if (plugin.loaded || !plugin.required) continue;
    complain("required plugin '" + plugin.name + "': " + plugin.why_not.message);
    all = false;
  }
  if (all) return std::nullopt;
  return exit_no_device;
}

std::optional<int> Session::create_runtime() {
  Config config = config_;
  if (options_.verb != Verb::run) config.cache.warm = "none";  // what [cache] warm asks for is for those who run jobs
  auto runtime = Runtime::create(config, registry_, log_, options_.trace ? &trace_ : nullptr);
  if (!runtime) {
    complain(runtime.error().message);
    return exit_usage;
  }
  runtime_ = std::move(runtime).value();
  return std::nullopt;
}

Status Session::write_trace() const {
  if (!options_.trace) return {};
  return emit(trace_.json(), options_.trace).within("--trace");
}

}  // namespace kiln::host
