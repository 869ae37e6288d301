#include "cache/tiered_cache.hpp"
#include "executor/ring_executor.hpp"
#include "runtime/device_table.hpp"
#include "runtime/runtime_state.hpp"
#include "selector/selectors.hpp"

#include <execinfo.h>

#include <kiln/config_reader.hpp>
#include <kiln/open_program_cache.hpp>
#include <kiln/plugin_loader.hpp>
#include <kiln/process_limits.hpp>
#include <kiln/runtime.hpp>
#include <kiln/traced_work.hpp>

#include <algorithm>
#include <utility>

namespace kiln {
namespace {

// Somebody asks for the generator; false: it is the default, which may be absent like its plugin.
bool names_generator(const Config& config) {
  const auto origin = config.origins.find("generator.name");
  if (origin != config.origins.end()) return origin->second.kind != OriginKind::built_in;
  return config.generator.name != GeneratorConfig{}.name;
}

// libc loads what it unwinds with at the first need, and ends the process where there is no memory for it then.
void load_unwinder() {
  void* frame = nullptr;
  (void)backtrace(&frame, 1);
}

}  // namespace

Runtime::Runtime(std::unique_ptr<RuntimeState> state) : state_(std::move(state)) {}
Runtime::~Runtime() = default;
void Runtime::leave_devices() noexcept { state_->parts->leaves_devices = true; }

RuntimeParts::~RuntimeParts() { end_selector(); }

// The selector writes its file while the devices close. Both take milliseconds.
void RuntimeParts::end_selector() {
  if (selector == nullptr) return;
  auto ends = start_thread([held = std::move(selector)]() mutable { held.reset(); });
  if (ends) selector_end.thread = std::move(*ends);
}

void RuntimeParts::end_without_devices() noexcept {
  selector.reset();
  executor.reset();
  cache.reset();
  builds.reset();
  driver_folder.reset();
}

void EndOfParts::operator()(RuntimeParts* parts) const noexcept {
  const CacheStats made = parts->cache == nullptr ? CacheStats() : parts->cache->stats();
  if (parts->leaves_devices && made.builds + made.prepared + made.failed_builds == 0) {
    parts->end_without_devices();
  } else {
    delete parts;
  }
}

RuntimeState::RuntimeState(std::unique_ptr<RuntimeParts> made)
    : parts(made.release()),
      planner(std::move(parts->generators), parts->prefers_first_generator, parts->devices, parts->history,
              parts->trace),
      programs(parts->config, parts->log, parts->trace, *parts->cache, planner, parts->devices, parts->resources,
               parts->history),
      router(parts->config, parts->trace, parts->devices, *parts->executor, *parts->selector, planner, programs,
             parts->history, parts->metrics),
      runner(parts->config, parts->trace, *parts->executor, parts->resources, parts->history, parts->metrics),
      learner(parts->config, parts->log, parts->devices, *parts->cache, *parts->selector, programs, autotuner,
              parts->metrics),
      autotuner(parts->config, parts->log, parts->devices, planner, programs) {}

Result<std::unique_ptr<Runtime>> Runtime::create(const Config& config, const Registry& registry, Log log,
                                                 TraceSink* trace) try {
  load_unwinder();
  auto parts = std::make_unique<RuntimeParts>(config, registry, log, trace);
  auto make_cache = registry.cache(config.cache.name);
  if (!make_cache) return std::move(make_cache).error().within("[cache] name");
  auto make_executor = registry.executor(config.executor.name);
  if (!make_executor) return std::move(make_executor).error().within("[executor] name");
  auto make_selector = registry.selector(config.selector.name);
  if (!make_selector) return std::move(make_selector).error().within("[selector] name");
  auto chosen_generators = registry.generators(config.generator.name);
  if (!chosen_generators && !names_generator(config) && !registry.generators().empty()) {
    log.write(LogLevel::info, "runtime", chosen_generators.error().message);
    chosen_generators = registry.generators();
    parts->prefers_first_generator = false;
  }
  if (!chosen_generators) return std::move(chosen_generators).error().within("[generator] name");

  CacheContext context{log, config.cache, OwnThreads::yes, trace};
  for (const auto& [scheme, remote] : registry.remotes()) context.remote_stores.emplace(scheme, remote.make);
  const std::filesystem::path probe = PluginLoader::default_probe();
  std::error_code not_there;
  if (std::filesystem::exists(probe, not_there)) {
    parts->builds = std::make_unique<BuildProcesses>(
        config.cache, probe, [&all = *parts](const std::string& device) { return all.devices.build_setup(device); },
        log);
    context.try_in_child = [&builds = *parts->builds](const ProgramKey& key, const ProgramBinary& stored,
                                                      const DeviceInfo& device) {
      return builds.try_stored(key, stored, device);
    };
    if (config.cache.build_in == "child") {
      context.build_apart = [&builds = *parts->builds](const ProgramKey& key, const KernelSource& source,
                                                       const Device& device) {
        return builds.build(key, source, device);
      };
    }
  }
  auto cache = make_cache.value()(context);
  if (!cache) return std::move(cache).error().within("cache '" + config.cache.name + "'");
  parts->cache = std::move(cache).value();
  auto executor = make_executor.value()({log, config.executor, &parts->counters, trace});
  if (!executor) return std::move(executor).error().within("executor '" + config.executor.name + "'");
  parts->executor = std::move(executor).value();
  auto selector = make_selector.value()(
      {log, config.selector, config.device, config.cache.directory, config.cache.read_only, trace});
  if (!selector) return std::move(selector).error().within("selector '" + config.selector.name + "'");
  parts->selector = std::move(selector).value();
  for (const RegisteredGenerator* registered : *chosen_generators) {
    const auto keys = registry.config_keys().find(registered->plugin);
    PluginSettings settings;
    if (keys != registry.config_keys().end()) settings = plugin_settings(config, registered->plugin, keys->second);
    auto generator =
        registered->make({log, config.cache.directory, config.cache.read_only, std::move(settings), trace});
    if (!generator) return std::move(generator).error().within("generator of plugin '" + registered->plugin + "'");
    parts->generators.push_back({registered->plugin, registered->dialects, std::move(generator).value()});
  }
  auto state = std::make_unique<RuntimeState>(std::move(parts));
  if (config.cache.warm != "none") {
    state->warming = std::make_unique<BackgroundWarming>(
        config.cache, [&all = *state] { return all.open_preferred(); }, *state->parts->cache, WarmingRules{},
        [&planner = state->planner](const Device& device) { return planner.tuned_programs(device); }, trace);
    if (const Status& started = state->warming->started(); !started.ok()) {
      log.write(LogLevel::warning, "warming", "[cache] warm: nothing is warmed: " + started.message);
    }
  }
  if (config.generator.background) {
    const Status started = state->autotuner.start_background([&all = *state] {
      return all.programs.is_building_ahead() || (all.warming != nullptr && all.warming->state().running);
    });
    if (!started.ok()) {
      log.write(LogLevel::warning, "tuning", "[generator] background: nothing is tuned: " + started.message);
    }
  }
  return std::unique_ptr<Runtime>(new Runtime(std::move(state)));
} catch (...) {
  return caught();
}

RunReport RuntimeState::run(const RunRequest& request) {
  const JobScope background_waits(*this);
  Job job(request, parts->trace);
  if (job.report.status.ok()) job.report.status = check_on_host(request);
  while (const auto device = router.next(job)) {
    const auto plan = planner.plan(job, *device);
    const auto acquired = programs.acquire(job, *device, plan);
    const auto outcome = runner.run(job, device, acquired);
    learner.record(job, *device, acquired, outcome);
    if (router.settled(job, *device, outcome)) break;
  }
  return learner.finish(job);
}

RunReport RuntimeState::check(const RunRequest& request) {
  const JobScope background_waits(*this);
  Job job(request);
  if (job.report.status.ok()) job.report.status = check_on_host(request);
  while (const auto device = router.next(job)) {
    const auto plan = planner.plan(job, *device);
    const auto acquired = programs.acquire(job, *device, plan);
    if (router.settled(job, *device, outcome_of(acquired))) break;
  }
  return std::move(job.report);
}

namespace {

// The report of a request that ended by an exception.
RunReport report_of(const RunRequest& request, Status status) {
  RunReport report;
  report.name = request.name;
  report.status = std::move(status);
  return report;
}

}  // namespace

RunReport Runtime::run(const RunRequest& request) try {
  state_->parts->cache->trim_memory();  // a job that only hits would not
  return state_->run(request);
} catch (...) {
  return report_of(request, caught());
}

RunReport Runtime::check(const RunRequest& request) try { return state_->check(request); } catch (...) {
  return report_of(request, caught());
}

std::vector<std::shared_ptr<Device>> RuntimeState::open_preferred() {
  const std::string& wanted = parts->config.device.prefer;
  DeviceTable& devices = parts->devices;
  std::vector<std::shared_ptr<Device>> opened;
  for (const DeviceInfo& info : wanted == "auto" ? devices.open_all() : devices.enumerate_for(wanted)) {
    if (!info.usable || (wanted != "auto" && info.id != wanted)) continue;
    if (auto device = devices.open(info.id)) opened.push_back(std::move(*device));  // its job reports a failure
  }
  return opened;
}

Result<Explanation> Runtime::explain(const RunRequest& request) try {
  if (Status status = validate(request.spec); !status.ok()) return status;
  Job job(request);
  return state_->router.explain(job);
} catch (...) {
  return caught();
}

std::vector<DeviceInfo> Runtime::devices() { return state_->parts->devices.open_all(); }
Status Runtime::check_device(std::string_view id) try {
  return id.empty() || id == "auto" ? Status{} : state_->parts->devices.check_name(id);
} catch (...) {
  return caught();
}
std::vector<DeviceInfo> Runtime::known_devices() const { return state_->parts->devices.known(); }

void Runtime::open_ahead(std::string_view device) try {
  DeviceTable& devices = state_->parts->devices;
  if (device.empty() || device == "auto") {
    (void)devices.open_all();
  } else {
    (void)devices.open(device);
  }
} catch (...) {
  // The job that asks for the device reports what fails.
}

Result<WarmReport> Runtime::warm(const WarmRequest& request) try {
  return state_->programs.warm(request);
} catch (...) {
  return caught();
}

Result<WarmReport> Runtime::warm(const WarmRequest& request, Device& device) try {
  return state_->programs.warm(request, device);
} catch (...) {
  return caught();
}

Result<TuneOutcome> Runtime::tune(const KernelSpec& spec, std::string_view id, VariantBench& bench,
                                  const TuneOptions& options) try {
  return state_->autotuner.tune(spec, std::string(id), bench, options);
} catch (...) {
  return caught();
}

Result<std::vector<KernelSpec>> Runtime::tuned(std::string_view id) try {
  auto device = state_->parts->devices.open(std::string(id));
  if (!device) return std::move(device).error();
  TuningStore* const store = state_->planner.tuning_for((*device)->info());
  if (store == nullptr) return std::vector<KernelSpec>();
  return store->tuned((*device)->info());
} catch (...) {
  return caught();
}

TuningStore* Runtime::tuning() noexcept { return state_->planner.tuning(); }

WarmingState Runtime::warming() const { return state_->warming == nullptr ? WarmingState{} : state_->warming->state(); }

BackgroundTuningState Runtime::background_tuning() const {
  const BackgroundTuning* const tuning = state_->autotuner.background();
  return tuning == nullptr ? BackgroundTuningState{} : tuning->state();
}

CacheStats Runtime::cache_stats() const { return state_->parts->cache->stats(); }
std::string Runtime::metrics() const { return state_->learner.metrics_text(); }
const WorkCounters& Runtime::counters() const noexcept { return state_->parts->counters; }
Result<std::uint64_t> Runtime::persist() try {
  state_->parts->selector->save();
  auto* const warmable = dynamic_cast<WarmableCache*>(state_->parts->cache.get());
  return warmable == nullptr ? Result<std::uint64_t>(std::uint64_t{0}) : warmable->persist();
} catch (...) {
  return caught();
}

Status register_core(Registry& registry) {
  if (Status status = register_tiered_cache(registry); !status.ok()) return status;
  if (Status status = register_ring_executor(registry); !status.ok()) return status;
  return register_selectors(registry);
}

Result<std::unique_ptr<ProgramCache>> open_program_cache(const CacheConfig& config, Log log, const CacheWaits& waits,
                                                         const RemoteStores* stores) {
  if (config.name != "tiered") {
    return unsupported("cache '" + config.name + "': not available without a Runtime, expected 'tiered'");
  }
  ProcessSharing sharing;
  sharing.flight_patience = waits.thread;
  sharing.patience = waits.process;
  CacheContext context{log, config, stores == nullptr ? OwnThreads::no : OwnThreads::yes};
  if (stores != nullptr) context.remote_stores = *stores;
  auto cache = TieredCache::create(context, std::move(sharing));
  if (!cache) return cache.error();
  return std::unique_ptr<ProgramCache>(std::move(cache).value());
}

Result<std::unique_ptr<ProgramCache>> open_program_cache(const ConfigSources& sources, Log log) {
  const ConfigReading reading = read_config(sources);
  for (const ConfigProblem& warning : reading.warnings) log.write(LogLevel::warning, "config", warning.text());
  if (reading.problems.empty()) return open_program_cache(reading.config.cache, log);
  std::string all;
  for (const ConfigProblem& problem : reading.problems) all += (all.empty() ? "" : "\n") + problem.text();
  return invalid_argument(std::move(all));
}

std::unique_ptr<DriverNotes> open_driver_notes(const CacheConfig& config, std::string driver) {
  return std::make_unique<NoteStore>(config, std::move(driver));
}

}  // namespace kiln
