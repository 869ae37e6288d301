#include "c_interface/runtime.hpp"

#include "c_interface/reports.hpp"
#include "c_interface/status.hpp"

#include <filesystem>

using namespace kiln;
using namespace kiln::c_interface;

namespace {

Status open(kiln_runtime& opened) {
  if (Status status = register_core(opened.registry); !status.ok()) return status;
  PluginLoaderOptions options;
  options.path = PluginLoader::default_path(opened.config.plugins.path);
  std::error_code ignored;
  const std::filesystem::path& folder = opened.config.cache.directory;
  if (std::filesystem::is_directory(folder, ignored)) options.verdict_file = folder / "probe_verdicts.json";
  options.verdicts_read_only = opened.config.cache.read_only;
  options.log = opened.log.log();
  const PluginsConfig& plugins = opened.config.plugins;
  auto keys = opened.registry.config_keys();
  for (const PluginReport& plugin : opened.loader.load(plugins.load, plugins.required, opened.registry, options)) {
    if (plugin.loaded) keys.try_emplace(plugin.name);
    if (plugin.loaded) continue;
    if (plugin.required) {
      return unavailable("required plugin '" + plugin.name + "' is not loaded: " + plugin.why_not.message);
    }
    options.log.write(LogLevel::info, "plugins",
                      "plugin '" + plugin.name + "' is not loaded: " + plugin.why_not.message);
  }
  for (const auto& [name, published] : opened.registry.config_keys()) keys[name] = published;
  const std::vector<ConfigProblem> problems = check_plugin_sections(opened.config, keys);
  if (!problems.empty()) return invalid_argument(problems.front().text());
  TraceSink* trace = opened.is_traced ? &opened.trace : nullptr;
  auto runtime = Runtime::create(opened.config, opened.registry, opened.log.log(), trace);
  if (!runtime) return std::move(runtime).error();
  opened.runtime = std::move(*runtime);
  return {};
}

}  // namespace

kiln_runtime::kiln_runtime(Config config_read, const kiln_cache_options& options)
    : config(std::move(config_read)),
      log(open_log(options.log, options.log_user, options.log_level, config.log_level)),
      is_traced(options.trace != 0) {}

Status kiln::c_interface::check_runtime(const char* function, const kiln_runtime* runtime) {
  if (runtime == nullptr) return null_argument(function, "runtime");
  if (Status status = runtime->process.check(function, "runtime"); !status.ok()) return status;
  return runtime->log.check(function);
}

kiln_status* kiln_open(const kiln_cache_options* options, kiln_runtime** runtime) {
  constexpr const char* function = "kiln_open";
  return guarded([&]() -> Status {
    if (runtime == nullptr) return null_argument(function, "runtime");
    *runtime = nullptr;
    kiln_cache_options copy = kiln_cache_options_default();
    if (options != nullptr) {
      if (Status status = copy_struct(function, "options", options, &copy, sizeof copy); !status.ok()) return status;
    }
    Result<Config> config = config_of(function, copy);
    if (!config) return std::move(config).error();
    auto opened = std::make_unique<kiln_runtime>(std::move(*config), copy);
    if (Status status = open(*opened); !status.ok()) return status.within(function);
    *runtime = opened.release();
    return {};
  });
}

void kiln_close(kiln_runtime* runtime) {
  if (runtime == nullptr || runtime->log.runs_here()) return;
  if (!runtime->process.is_this()) return;  // in a forked child there are no threads to join
  if (JobScope::runs_here(*runtime)) {
    runtime->log.log().write(LogLevel::error, "runtime",
                             "kiln_close was called in a callback of a job: the runtime stays open");
    return;
  }
  delete runtime;
}

kiln_status* kiln_runtime_devices(kiln_runtime* runtime, char** json) {
  constexpr const char* function = "kiln_runtime_devices";
  return guarded([&]() -> Status {
    if (json == nullptr) return null_argument(function, "json");
    *json = nullptr;
    if (Status status = check_runtime(function, runtime); !status.ok()) return status;
    *json = copied_text(devices_text(runtime->runtime->devices()));
    return {};
  });
}

kiln_status* kiln_runtime_metrics(kiln_runtime* runtime, char** text) {
  constexpr const char* function = "kiln_runtime_metrics";
  return guarded([&]() -> Status {
    if (text == nullptr) return null_argument(function, "text");
    *text = nullptr;
    if (Status status = check_runtime(function, runtime); !status.ok()) return status;
    *text = copied_text(runtime->runtime->metrics());
    return {};
  });
}

kiln_status* kiln_runtime_trace(kiln_runtime* runtime, char** json) {
  constexpr const char* function = "kiln_runtime_trace";
  return guarded([&]() -> Status {
    if (json == nullptr) return null_argument(function, "json");
    *json = nullptr;
    if (Status status = check_runtime(function, runtime); !status.ok()) return status;
    if (!runtime->is_traced) return unsupported(std::string(function) + ": the runtime was opened without `trace`");
    *json = copied_text(runtime->trace.take_json());
    return {};
  });
}

kiln_status* kiln_runtime_get_stats(kiln_runtime* runtime, kiln_cache_stats* stats) {
  constexpr const char* function = "kiln_runtime_get_stats";
  return guarded([&]() -> Status {
    if (Status status = check_runtime(function, runtime); !status.ok()) return status;
    if (stats == nullptr) return null_argument(function, "stats");
    if (Status status = check_size(function, "stats", stats->size, 2 * sizeof(size_t)); !status.ok()) return status;
    fill(runtime->runtime->cache_stats(), *stats);
    return {};
  });
}

kiln_status* kiln_runtime_explain(kiln_runtime* runtime, const char* which, char** json) {
  constexpr const char* function = "kiln_runtime_explain";
  return guarded([&]() -> Status {
    if (json == nullptr) return null_argument(function, "json");
    *json = nullptr;
    if (Status status = check_runtime(function, runtime); !status.ok()) return status;
    if (which == nullptr) return null_argument(function, "which");
    const Result<std::string> text = explanation(runtime->config.cache, which);
    if (!text) return text.error();
    *json = copied_text(*text);
    return {};
  });
}

kiln_status* kiln_runtime_warm(kiln_runtime* runtime, const char* device, size_t most, size_t* loaded) {
  constexpr const char* function = "kiln_runtime_warm";
  return guarded([&]() -> Status {
    if (loaded != nullptr) *loaded = 0;
    if (Status status = check_runtime(function, runtime); !status.ok()) return status;
    if (device == nullptr) return null_argument(function, "device");
    WarmRequest request;
    request.device = device;
    request.most = most;
    const Result<WarmReport> report = runtime->runtime->warm(request);
    if (!report) return report.error();
    if (loaded != nullptr) *loaded = report->linked;
    return {};
  });
}
