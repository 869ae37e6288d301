#include "session.hpp"

#include "console.hpp"
#include "verbs/job_check.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/config_reader.hpp>
#include <kiln/config_text.hpp>
#include <kiln/data.hpp>
#include <kiln/driver_cache.hpp>
#include <kiln/process_limits.hpp>
#include <kiln/result_files.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iterator>
#include <set>
#include <thread>

namespace kiln::host {
namespace {

constexpr std::string_view component = "cache";

std::vector<const JobConfig*> jobs_and_pipelines(const Config& config) {
  std::vector<const JobConfig*> all;
  for (const JobConfig& job : config.jobs) all.push_back(&job);
  for (const PipelineConfig& pipeline : config.pipelines) all.push_back(&pipeline.job);
  return all;
}

}  // namespace

Session::~Session() = default;

std::optional<int> Session::open_plugins() {
  read();
  only_read_cache_where_needed();
  load_plugins();
  return report_problems();
}

std::optional<int> Session::check() {
  read();
  std::ranges::move(check_jobs(config_.jobs), std::back_inserter(problems_));
  std::ranges::move(check_pipelines(config_), std::back_inserter(problems_));
  only_read_cache_where_needed();
  load_plugins();
  for (const PluginReport& plugin : plugins_) {
    if (plugin.loaded || !plugin.required) continue;
    problems_.push_back({config_.place_of("plugins.required"),
                         "plugins.required: plugin '" + plugin.name + "' is not loaded: " + plugin.why_not.message});
  }
  check_names();
  check_driver(config_.device.prefer, config_.place_of("device.prefer"));
  std::set<std::string> checked;  // rows of a table name the same one
  for (const JobConfig* job : jobs_and_pipelines(config_)) {
    if (checked.insert(job->device).second) check_driver(job->device, job->place_of("device"));
  }
  return report_problems();
}

std::optional<int> Session::open_runtime(MissingPlugins missing, JobFiles files,
                                         const std::function<void(Runtime&)>& meanwhile) {
  read();
  const auto check_files = [&] {
    if (files == JobFiles::ignore) return;
    settle_results();
    std::ranges::move(check_jobs(config_.jobs), std::back_inserter(problems_));
    std::ranges::move(check_pipelines(config_), std::back_inserter(problems_));
  };
  // What is wrong leaves nothing behind: a folder is made for jobs that can run.
  std::error_code error;
  const bool makes_folder = !std::filesystem::exists(config_.cache.directory, error);
  if (makes_folder) check_files();
  if (problems_.empty()) {
    make_cache_ready();
  } else {
    only_reads_cache_ = true;
  }
  const auto end = open_with_plugins(missing);
  if (!end && meanwhile) meanwhile(*runtime_);
  if (!makes_folder) check_files();
  return problems_.empty() ? end : report_problems();
}

std::optional<int> Session::open_with_plugins(MissingPlugins missing) {
  load_plugins();
  if (!problems_.empty()) return exit_usage;
  if (missing == MissingPlugins::end) {
    if (const auto end = require_plugins()) return end;
  }
  check_names();
  if (!problems_.empty()) return exit_usage;
  return create_runtime();
}

// The verdicts on plugins go to the folder where that is possible, and nothing else needs it. What is wrong leaves
// nothing behind.
void Session::only_read_cache_where_needed() {
  only_reads_cache_ = only_reads_cache_ || !problems_.empty() || !check_cache_folder(config_.cache).ok();
}

// What a run that was killed left of its results, before anything reads them.
void Session::settle_results() {
  std::set<std::filesystem::path> folders;
  for (const JobConfig* job : jobs_and_pipelines(config_)) {
    for (const std::filesystem::path& output : data::outputs_of(*job)) {
      std::error_code error;
      const auto file = followed(output);
      if (file) folders.insert(std::filesystem::absolute(*file, error).parent_path());
    }
  }
  const std::vector<std::filesystem::path> all(folders.begin(), folders.end());
  const SettledCommits settled = settle_commits(user_state_folder(), all);
  for (const std::string& note : settled.notes) log_.write(LogLevel::info, "results", note);
  for (const std::string& problem : settled.problems) log_.write(LogLevel::warning, "results", problem);
}

// Sorted by their places.
std::optional<int> Session::report_problems() {
  if (problems_.empty()) return std::nullopt;
  sort_problems(problems_, options_.sources.file.value_or("").string());
  for (const ConfigProblem& problem : problems_) complain(problem.text());
  return exit_usage;
}

// What the plugins that are loaded do not bring.
void Session::check_names() {
  const auto check = [&](const std::string& key, const Status& status) {
    if (!status.ok()) problems_.push_back({config_.place_of(key), key + ": " + status.message});
  };
  const auto status_of = [](const auto& result) { return result ? Status{} : result.error(); };
  check("cache.name", status_of(registry_.cache(config_.cache.name)));
  check("executor.name", status_of(registry_.executor(config_.executor.name)));
  check("selector.name", status_of(registry_.selector(config_.selector.name)));
  // The default generator may be absent like its plugin.
  const auto origin = config_.origins.find("generator.name");
  if (origin != config_.origins.end() && origin->second.kind != OriginKind::built_in) {
    check("generator.name", status_of(registry_.generators(config_.generator.name)));
  }
}

// An id begins with the name of its driver: as much as can be known of it without a driver.
void Session::check_driver(const std::string& id, const ConfigPlace& place) {
  const std::string driver = id.substr(0, id.find(':'));
  if (id.empty() || id == "auto" || registry_.drivers().contains(driver)) return;
  std::string drivers;
  std::vector<std::string_view> names;
  for (const auto& entry : registry_.drivers()) {
    drivers += (drivers.empty() ? "" : ", ") + entry.first;
    names.push_back(entry.first);
  }
  std::string message = "device '" + id + "': no such device (drivers: " + (drivers.empty() ? "none" : drivers) + ")";
  if (const auto nearest = config::close_word(driver, names)) message += "; nearest: " + std::string(*nearest);
  problems_.push_back({place, std::move(message)});
}

void Session::check_device(const std::string& id, const ConfigPlace& place) {
  Status status = runtime_->check_device(id);
  if (status.ok()) return;
  for (const PluginReport& plugin : plugins_) {
    if (!plugin.loaded) status.message += "; plugin '" + plugin.name + "' is not loaded: " + plugin.why_not.message;
  }
  refuse({place, status.message});
}

std::optional<int> Session::check_devices() {
  const std::size_t before = problems_.size();
  if (!options_.device.empty()) {
    check_device(options_.device, {"--device"});
  } else {
    check_device(config_.device.prefer, config_.place_of("device.prefer"));
    std::set<std::string> checked;  // rows of a table name the same one
    for (const JobConfig* job : jobs_and_pipelines(config_)) {
      if (!checked.insert(job->device).second) continue;
      check_device(job->device, job->place_of("device"));
    }
  }
  return problems_.size() == before ? std::nullopt : std::optional<int>(exit_usage);
}

std::vector<DeviceInfo> Session::devices_named(const std::string& id) {
  std::vector<DeviceInfo> devices = runtime_->devices();
  if (id.empty() || id == "auto") return devices;
  const std::string driver = id.substr(0, id.find(':'));
  std::erase_if(devices, [&](const DeviceInfo& one) { return one.id != id && one.id != driver; });
  return devices;
}

void Session::close(std::chrono::milliseconds patience) {
  std::promise<void> closed;
  const auto done = closed.get_future();
  Runtime* const runtime = runtime_.release();  // the process ends next: where there is no thread, it ends with it
  auto closing = start_thread([runtime, closed = std::move(closed)]() mutable {
    delete runtime;
    closed.set_value();
  });
  if (!closing) return;
  closing->detach();
  (void)done.wait_for(patience);
}

int Session::end(int status) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (runtime_ == nullptr) return status;
  runtime_->leave_devices();
  runtime_.reset();
  std::fflush(nullptr);
  _exit(status);
#endif
  return status;
}

int Session::refuse(ConfigProblem problem) {
  complain(problem.text());
  problems_.push_back(std::move(problem));
  return exit_usage;
}

int Session::refuse(std::string why, const std::string& file) {
  ConfigProblem problem;
  problem.place.file = file;
  problem.message = std::move(why);
  return refuse(std::move(problem));
}

void Session::read() {
  ConfigReading reading = read_config(options_.sources);
  problems_ = std::move(reading.problems);
  warnings_ = std::move(reading.warnings);
  config_ = std::move(reading.config);
  log_ = {&sink_, config_.log_level};
  for (const ConfigProblem& warning : warnings_) log_.write(LogLevel::warning, "config", warning.text());
  only_reads_cache_ = config_.cache.read_only;
}

// What cannot be written is told once, before each part of Kiln and the driver would tell it in words of their own.
void Session::make_cache_ready() {
  if (const Status status = check_cache_folder(config_.cache); !status.ok()) {
    only_read_cache(status);
  }
  set_driver_environment();
}

void Session::set_driver_environment() {
  for (const auto& [name, value] : driver_environment(config_for_runtime())) {
    std::string chosen = value;
    if (name == "MESA_SHADER_CACHE_DIR" && value != no_driver_cache) {
      const Status status = prepare_driver_cache(value);
      if (!status.ok()) chosen = no_driver_cache;
      const std::string& around = config_.cache.directory.native();
      if (status.code == StatusCode::io && !around.empty() && value.starts_with(around + "/")) {
        only_read_cache(status);
      } else if (!status.ok() && (config_.cache.read_only || !only_reads_cache_)) {
        warn_of_cache("the driver's cache is disabled: " + status.message);
      }
    }
    setenv(name.c_str(), chosen.c_str(), 1);
  }
}

// One warning, whatever else follows from it.
void Session::only_read_cache(const Status& why) {
  only_reads_cache_ = true;
  std::string text = "nothing is stored: " + why.message;
  CacheConfig only_read = config_.cache;
  only_read.read_only = true;
  const Status readable = why.code == StatusCode::io ? check_cache_folder(only_read) : why;
  trusts_cache_ = readable.ok();
  if (const auto exists = cache_exists(only_read); trusts_cache_ && exists && *exists) {
    const Status no_key = check_cache_key(config_.cache);
    has_key_ = no_key.ok();
    if (!has_key_ && holds_programs(config_.cache)) text += "; nothing is loaded from it: " + no_key.message;
  }
  warn_of_cache(text);
}

// The list of devices needs nothing that was kept.
void Session::warn_of_cache(const std::string& text) {
  log_.write(options_.verb == "devices" ? LogLevel::info : LogLevel::warning, component, text);
}

void Session::load_plugins() {
  if (Status status = register_core(registry_); !status.ok()) problems_.emplace_back().message = status.text();
  PluginLoaderOptions options;
  options.path = PluginLoader::default_path(config_.plugins.path);
  options.verdicts_read_only = only_reads_cache_;
  // A retry where the file cannot be removed: it is not looked at.
  if (!config_.cache.directory.empty() && !(only_reads_cache_ && options_.retry)) {
    options.verdict_file = config_.cache.directory / "probe_verdicts.json";
  }
  if (options_.retry && !options.verdict_file.empty()) {
    std::error_code error;
    std::filesystem::remove(options.verdict_file, error);
    if (error) problems_.emplace_back().message = options.verdict_file.string() + ": " + error.message();
  }
  options.log = log_;
  plugins_ = loader_.load(config_.plugins.load, config_.plugins.required, registry_, options);
  std::ranges::move(check_plugin_sections(config_, plugin_keys()), std::back_inserter(problems_));
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

OfflineContext Session::offline_context(const std::string& plugin) const {
  const auto keys = plugin_keys();
  const auto found = keys.find(plugin);
  if (found == keys.end()) return {log_, {}};
  return {log_, plugin_settings(config_, plugin, found->second)};
}

Config Session::config_for_runtime() const {
  Config config = config_;
  config.cache.read_only = only_reads_cache_;
  if (!trusts_cache_) config.cache.directory.clear();
  if (!has_key_) config.cache.key_file.clear();
  if (options_.verb != "run") {  // what is done in the background is for those who run jobs
    config.cache.warm = "none";
    config.generator.background = false;
  }
  // A baked layer is made from this user's own cache, which does not store what other layers hold.
  if (options_.verb == "cache bake") config.cache.layers.clear();
  return config;
}

std::optional<int> Session::create_runtime() {
  auto runtime = Runtime::create(config_for_runtime(), registry_, log_, options_.trace ? &trace_ : nullptr);
  if (!runtime) {
    problems_.emplace_back().message = runtime.error().message;
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
