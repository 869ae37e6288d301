#include "c_interface/cache.hpp"

#include "c_interface/reports.hpp"
#include "c_interface/status.hpp"

#include <kiln/clock.hpp>
#include <kiln/driver_cache.hpp>
#include <kiln/host_processor.hpp>
#include <kiln/runtime.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

namespace kiln::c_interface {
namespace {

namespace fs = std::filesystem;

CacheWaits waits_of(const kiln_cache_options& options) {
  CacheWaits waits;
  if (options.thread_wait_ms != 0) waits.thread = std::chrono::milliseconds(options.thread_wait_ms);
  if (options.process_wait_ms != 0) waits.process = std::chrono::milliseconds(options.process_wait_ms);
  return waits;
}

// The stores of the configured remotes, from their plugins.
RemoteStores open_stores(kiln_cache& cache) {
  PluginLoaderOptions options;
  options.path = PluginLoader::default_path(cache.config.plugins.path);
  options.log = cache.log.log();
  std::vector<std::string> wanted = cache.config.plugins.load;
  std::erase_if(wanted, [](const std::string& name) { return !name.starts_with("remote_"); });
  for (const PluginReport& plugin : cache.loader.load(wanted, {}, cache.registry, options)) {
    if (plugin.loaded) continue;
    options.log.write(
        LogLevel::warning, "cache",
        "plugin '" + plugin.name + "' is not loaded, so its remotes are not used: " + plugin.why_not.message);
  }
  RemoteStores stores;
  for (const auto& [scheme, remote] : cache.registry.remotes()) stores.emplace(scheme, remote.make);
  return stores;
}

// The log functions that this thread is in.
struct RunningLog {
  const CallbackLog& log;
  const RunningLog* const outer;
};
// initial-exec: found without a call.
[[gnu::tls_model("initial-exec")]] thread_local constinit const RunningLog* innermost_log = nullptr;

// What would be ignored, or would end elsewhere with an error that does not name it.
Status check_options(const char* function, const kiln_cache_options& options) {
  const auto wrong = [&](const char* member, const std::string& found, const std::string& expected) {
    return invalid_argument(std::string(function) + ": options." + member + ": found " + found + ", expected " +
                            expected);
  };
  const int level = static_cast<int>(options.log_level);
  if (level < KILN_LOG_DEFAULT || level > KILN_LOG_OFF) {
    return wrong("log_level", std::to_string(level),
                 "a kiln_log_level, 0 to " + std::to_string(static_cast<int>(KILN_LOG_OFF)));
  }
  if (options.reserved != 0) return wrong("reserved", std::to_string(options.reserved), "0");
  const auto is_empty = [](const char* text) { return text != nullptr && *text == '\0'; };
  if (is_empty(options.config)) return wrong("config", "an empty name", "a file, or NULL");
  if (is_empty(options.key_file)) return wrong("key_file", "an empty name", "a file, or NULL for the default key file");
  return {};
}

}  // namespace

void CallbackLog::write(LogLevel level, std::string_view component, std::string_view message) noexcept {
  const RunningLog running{*this, innermost_log};
  innermost_log = &running;
  try {
    write_(user_, static_cast<kiln_log_level>(level), std::string(component).c_str(), std::string(message).c_str());
  } catch (...) {  // a log line must not end what it is about
  }
  innermost_log = running.outer;
}

bool CallbackLog::runs_here(const CallbackLog* log) noexcept {
  const RunningLog* running = innermost_log;
  while (running != nullptr && &running->log != log) running = running->outer;
  return running != nullptr;
}

Status OpenedLog::called_by_log(const char* function) {
  return unavailable(std::string(function) +
                     ": called by `log`, where the caller may hold a lock that the function needs. Call the function "
                     "after `log` has returned");
}

OpenedLog open_log(kiln_log_function function, void* user, kiln_log_level least, LogLevel configured) {
  OpenedLog log;
  if (function != nullptr) log.sink = std::make_unique<CallbackLog>(function, user);
  log.least = least == KILN_LOG_DEFAULT ? configured : static_cast<LogLevel>(least);
  return log;
}

Result<Config> config_of(const char* function, const kiln_cache_options& options, ConfigSources sources) {
  if (Status status = check_options(function, options); !status.ok()) return status;
  if (options.config != nullptr) sources.file = options.config;
  ConfigReading reading = read_config(sources);
  if (!reading.problems.empty()) {
    std::string all;
    for (const ConfigProblem& problem : reading.problems) all += (all.empty() ? "" : "\n") + problem.text();
    return invalid_argument(std::string(function) + ": " + all);
  }
  CacheConfig& cache = reading.config.cache;
  if (options.directory != nullptr) {
    cache.directory = *options.directory == '\0' ? fs::path() : fs::absolute(options.directory).lexically_normal();
  }
  if (options.key_file != nullptr) cache.key_file = fs::absolute(options.key_file).lexically_normal();
  if (options.max_disk != 0) cache.max_disk = options.max_disk;
  if (options.max_memory != 0) cache.max_memory = options.max_memory;
  if (options.max_programs != 0) cache.max_programs = options.max_programs;
  if (options.read_only != 0) cache.read_only = true;
  return std::move(reading.config);
}

}  // namespace kiln::c_interface

using namespace kiln;
using namespace kiln::c_interface;

static_assert(static_cast<int>(LogLevel::debug) == KILN_LOG_DEBUG && static_cast<int>(LogLevel::off) == KILN_LOG_OFF,
              "kiln_log_level has the values of LogLevel");

kiln_cache::kiln_cache(Config config_read, const kiln_cache_options& options)
    : id(now_ns() ^ reinterpret_cast<std::uintptr_t>(this)),
      config(std::move(config_read)),
      log(open_log(options.log, options.log_user, options.log_level, config.log_level)) {}

std::shared_ptr<CallbackDevice> kiln_cache::device(DeviceInfo info, const void* context) {
  KeyEncoder identity;
  for (const auto& [name, value] : info.device_identity) identity.field("device." + name, value);
  for (const auto& [name, value] : info.driver_identity) identity.field("driver." + name, value);
  const std::pair place(identity.material(), context);
  const std::lock_guard lock(mutex);
  if (const auto known = devices.find(place); known != devices.end()) return known->second;
  if (devices.size() >= most_devices) sort_out_devices();
  const auto spare = spare_devices.find(place.first);
  if (spare == spare_devices.end()) {
    return devices.emplace(place, std::make_shared<CallbackDevice>(std::move(info), context, running)).first->second;
  }
  std::shared_ptr<CallbackDevice> device = devices.emplace(place, spare->second).first->second;
  device->set_context(context);
  spare_devices.erase(spare);
  return device;
}

void kiln_cache::requested(CallbackDevice& device) {
  if (device.was_requested()) return;
  const std::lock_guard lock(mutex);  // so that sort_out_devices() sees it once the key is freed
  device.set_requested();
}

void kiln_cache::sort_out_devices() {
  for (auto at = devices.begin(); at != devices.end();) {
    if (at->second.use_count() != 1 || at->second->programs() != 0) {
      ++at;
      continue;
    }
    // Without a folder `programs` knows devices by their programs alone, and this one has none.
    const bool is_known = at->second->was_requested() && !config.cache.directory.empty();
    if (is_known) spare_devices.emplace(at->first.first, at->second);
    at = devices.erase(at);
  }
  most_devices = std::max<std::size_t>(64, 2 * devices.size());
}

namespace kiln::c_interface {

Status check_cache(const char* function, const kiln_cache* cache) {
  if (cache == nullptr) return null_argument(function, "cache");
  if (Status status = cache->process.check(function, "cache"); !status.ok()) return status;
  return cache->log.check(function);
}

}  // namespace kiln::c_interface

kiln_status* kiln_cache_open(const kiln_cache_options* options, kiln_cache** cache) {
  constexpr const char* function = "kiln_cache_open";
  return guarded([&]() -> Status {
    if (cache == nullptr) return null_argument(function, "cache");
    *cache = nullptr;
    kiln_cache_options copy = kiln_cache_options_default();
    if (options != nullptr) {
      if (Status status = copy_struct(function, "options", options, &copy, sizeof copy); !status.ok()) return status;
    }
    if (copy.trace != 0) return invalid_argument(std::string(function) + ": options.trace is set, expected 0");
    Result<Config> config = config_of(function, copy);
    if (!config) return std::move(config).error();
    auto opened = std::make_unique<kiln_cache>(std::move(*config), copy);
    const std::vector<RemoteConfig>& remotes = opened->config.cache.remotes;
    RemoteStores stores;
    if (!remotes.empty()) stores = open_stores(*opened);
    opened->writes_remotes = std::ranges::any_of(remotes, &RemoteConfig::writes);
    auto programs = open_program_cache(opened->config.cache, opened->log.log(), waits_of(copy),
                                       remotes.empty() ? nullptr : &stores);
    if (!programs) return std::move(programs).error().within(function);
    opened->programs = std::move(*programs);
    *cache = opened.release();
    return {};
  });
}

void kiln_cache_close(kiln_cache* cache) {
  if (cache == nullptr || cache->log.runs_here()) return;  // without a line, which the log would answer the same way
  if (cache->running.on_this_thread()) {
    cache->log.log().write(LogLevel::error, "cache",
                           "kiln_cache_close was called in a callback of the cache: the cache stays open");
    return;
  }
  if (!cache->process.is_this()) return;  // its threads cannot be joined
  cache->calls.wait_until_none();
  delete cache;
}

kiln_status* kiln_cache_warm(kiln_cache* cache, const kiln_identity* identity, const kiln_compiler* compiler,
                             size_t most, uint32_t threads, size_t* loaded) {
  constexpr const char* function = "kiln_cache_warm";
  return guarded([&]() -> Status {
    if (loaded != nullptr) *loaded = 0;
    if (Status status = check_cache(function, cache); !status.ok()) return status;
    const RunningCalls::Scope scope(cache->calls);
    kiln_identity copy;
    if (Status status = copy_struct(function, "identity", identity, &copy, sizeof copy); !status.ok()) return status;
    Result<DeviceInfo> info = device_of(function, copy);
    if (!info) return std::move(info).error();
    kiln_compiler given;
    const Result<const kiln_compiler*> callbacks = compiler_of(function, compiler, given);
    if (!callbacks) return callbacks.error();
    kiln_compiler loader = **callbacks;
    loader.build = nullptr;
    auto* warmable = dynamic_cast<WarmableCache*>(cache->programs.get());
    if (warmable == nullptr) {
      return unsupported(std::string(function) + ": the cache '" + cache->config.cache.name + "' cannot warm programs");
    }
    const std::shared_ptr<CallbackDevice> device = cache->device(std::move(*info), copy.context);
    cache->requested(*device);
    const std::vector<KeptProgram> stored = warmable->kept(*device, most);
    std::vector<CallbackSource> sources;
    sources.reserve(stored.size());
    for (const KeptProgram& program : stored) sources.emplace_back(program.key, loader);
    std::vector<ProgramRequest> requests;
    for (std::size_t at = 0; at < stored.size(); ++at) {
      requests.push_back({&stored[at].key, &sources[at], device.get(), true});
    }
    std::size_t count = 0;
    const unsigned used = threads == 0 ? host_cores() : threads;
    warmable->get_or_build_all(requests, std::min(used, 64u), [&](std::size_t, const Result<Acquired>& answer) {
      count += answer.has_value() && is_of_kind(*answer->program, loader) ? 1 : 0;
      return true;
    });
    if (loaded != nullptr) *loaded = count;
    return {};
  });
}

namespace {

Result<RemovableCache*> removable(const char* function, kiln_cache& cache) {
  if (auto* programs = dynamic_cast<RemovableCache*>(cache.programs.get())) return programs;
  return unsupported(std::string(function) + ": the cache '" + cache.config.cache.name + "' cannot remove programs");
}

}  // namespace

kiln_status* kiln_cache_remove(kiln_cache* cache, const kiln_key* key) {
  constexpr const char* function = "kiln_cache_remove";
  return guarded([&]() -> Status {
    if (Status status = check_request(function, cache, key); !status.ok()) return status;
    const RunningCalls::Scope scope(cache->calls);
    const Result<RemovableCache*> programs = removable(function, *cache);
    if (!programs) return programs.error();
    return (*programs)->remove(key->key, *key->device).within(function);
  });
}

kiln_status* kiln_cache_drop_context(kiln_cache* cache, const void* context) {
  constexpr const char* function = "kiln_cache_drop_context";
  return guarded([&]() -> Status {
    if (Status status = check_cache(function, cache); !status.ok()) return status;
    const RunningCalls::Scope scope(cache->calls);
    const Result<RemovableCache*> programs = removable(function, *cache);
    if (!programs) return programs.error();
    std::size_t in_use = 0;
    const std::lock_guard lock(cache->mutex);
    for (const auto& [place, device] : cache->devices) {
      if (device->context() != context) continue;
      (*programs)->forget(*device);
      in_use += device->programs();
    }
    if (in_use == 0) return {};
    return unavailable(std::string(function) + ": programs of the context that are in use: " + std::to_string(in_use) +
                       ", expected 0. Free them, leave the guards, and call the function "
                       "again");
  });
}

kiln_status* kiln_cache_get_stats(kiln_cache* cache, kiln_cache_stats* stats) {
  constexpr const char* function = "kiln_cache_get_stats";
  return guarded([&]() -> Status {
    if (Status status = check_cache(function, cache); !status.ok()) return status;
    if (stats == nullptr) return null_argument(function, "stats");
    if (Status status = check_size(function, "stats", stats->size, 2 * sizeof(size_t)); !status.ok()) return status;
    fill(cache->programs->stats(), *stats);
    return {};
  });
}

kiln_status* kiln_cache_explain(kiln_cache* cache, const char* which, char** json) {
  constexpr const char* function = "kiln_cache_explain";
  return guarded([&]() -> Status {
    if (json == nullptr) return null_argument(function, "json");
    *json = nullptr;
    if (Status status = check_cache(function, cache); !status.ok()) return status;
    if (which == nullptr) return null_argument(function, "which");
    const Result<std::string> text = explanation(cache->config.cache, which);
    if (!text) return text.error();
    *json = copied_text(*text);
    return {};
  });
}

kiln_status* kiln_cache_persist(kiln_cache* cache, uint64_t* stored) {
  constexpr const char* function = "kiln_cache_persist";
  return guarded([&]() -> Status {
    if (stored != nullptr) *stored = 0;
    if (Status status = check_cache(function, cache); !status.ok()) return status;
    auto* warmable = dynamic_cast<WarmableCache*>(cache->programs.get());
    if (warmable == nullptr) {
      return unsupported(std::string(function) + ": the cache '" + cache->config.cache.name +
                         "' stores no pending programs");
    }
    const Result<std::uint64_t> count = warmable->persist();
    if (!count) return count.error();
    if (stored != nullptr) *stored = *count;
    return {};
  });
}

void kiln_cache_trim_memory(kiln_cache* cache) {
  if (cache != nullptr && cache->process.is_this() && !cache->log.runs_here()) cache->programs->trim_memory();
}

kiln_status* kiln_driver_environment(const kiln_cache_options* options,
                                     void (*each)(void* user, const char* name, const char* value), void* user) {
  constexpr const char* function = "kiln_driver_environment";
  return guarded([&]() -> Status {
    if (each == nullptr) return null_argument(function, "each");
    kiln_cache_options copy = kiln_cache_options_default();
    if (options != nullptr) {
      if (Status status = copy_struct(function, "options", options, &copy, sizeof copy); !status.ok()) return status;
    }
    const Result<Config> config = config_of(function, copy);
    if (!config) return config.error();
    for (const auto& [name, value] : driver_environment(*config)) {
      const bool unfit =
          name == "MESA_SHADER_CACHE_DIR" && value != no_driver_cache && !prepare_driver_cache(value).ok();
      each(user, name.c_str(), unfit ? no_driver_cache : value.c_str());
    }
    return {};
  });
}
