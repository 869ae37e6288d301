#include <kiln/runtime.hpp>

#include "runtime/parts.hpp"
#include "runtime/tuning/asked_tuning.hpp"
#include "runtime/warming/warming.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/plugin_loader.hpp>
#include <kiln/traced_work.hpp>

#include <execinfo.h>

#include <algorithm>

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

Runtime::Runtime(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Runtime::~Runtime() {
  parts_->metrics_file.write([this] { return parts_->metrics_text(); });
}

Result<std::unique_ptr<Runtime>> Runtime::create(const Config& config, const Registry& registry, Log log,
                                                 TraceSink* trace) try {
  load_unwinder();
  auto parts = std::make_unique<Parts>(config, registry, log, trace);
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
  if (config.cache.warm != "none") {
    parts->warming = std::make_unique<BackgroundWarming>(
        parts->config.cache, [&all = *parts] { return all.devices_to_warm(); }, *parts->cache, WarmingRules{},
        [&all = *parts](const Device& device) { return all.tuned_programs(device); }, trace);
    if (const Status& started = parts->warming->started(); !started.ok()) {
      log.write(LogLevel::warning, "warming", "[cache] warm: nothing is warmed: " + started.message);
    }
  }
  if (config.generator.background) {
    auto tuning = parts->tune_in_background();
    if (!tuning) {
      log.write(LogLevel::warning, "tuning", "[generator] background: nothing is tuned: " + tuning.error().message);
    } else {
      parts->tuning = std::move(*tuning);
    }
  }
  return std::unique_ptr<Runtime>(new Runtime(std::move(parts)));
} catch (...) {
  return caught();
}

RunReport Runtime::run(const RunRequest& request) {
  RunReport report;
  try {
    const Parts::JobScope job(*parts_);
    parts_->cache->heed_pressure();  // a job that only hits would not
    const std::string_view name = request.name.empty() ? std::string_view("job") : std::string_view(request.name);
    TracedWork serving(parts_->trace, TraceArea::runtime, name);
    parts_->serve(request, Parts::Until::end, report);
    serving.figure("op", report.op);
    serving.figure("device", report.device.id);
    serving.figure("tier", to_string(report.tier));
    serving.figure("status", to_string(report.status.code));
    serving.figure("runs", std::uint64_t{report.runs});
    serving.end();
    parts_->count(report);
  } catch (...) {
    report.status = caught();
  }
  return report;
}

RunReport Runtime::check(const RunRequest& request) {
  RunReport report;
  try {
    const Parts::JobScope job(*parts_);
    parts_->serve(request, Parts::Until::programs, report);
  } catch (...) {
    report.status = caught();
  }
  return report;
}

void Runtime::Parts::count(const RunReport& report) {
  metrics.ended(report.device.id, report.op, to_string(report.status.code));
  metrics_file.write_if_due([this] { return metrics_text(); });
}

std::string Runtime::Parts::metrics_text() const { return runtime_metrics(metrics, devices.known(), cache->stats()); }

std::vector<std::shared_ptr<Device>> Runtime::Parts::devices_to_warm() {
  const std::string& wanted = config.device.prefer;
  std::vector<std::shared_ptr<Device>> opened;
  for (const DeviceInfo& info : wanted == "auto" ? devices.enumerate_all() : devices.enumerate_for(wanted)) {
    if (!info.usable || (wanted != "auto" && info.id != wanted)) continue;
    if (auto device = devices.open(info.id)) opened.push_back(std::move(*device));  // what failed is told to its job
  }
  return opened;
}

Result<Explanation> Runtime::explain(const RunRequest& request) try { return parts_->explain(request); } catch (...) {
  return caught();
}

std::vector<DeviceInfo> Runtime::devices() { return parts_->devices.enumerate_all(); }
Status Runtime::check_device(std::string_view id) try {
  return id.empty() || id == "auto" ? Status{} : parts_->devices.check_name(id);
} catch (...) {
  return caught();
}
std::vector<DeviceInfo> Runtime::known_devices() const { return parts_->devices.known(); }

void Runtime::open_ahead(std::string_view device) try {
  if (device.empty() || device == "auto") {
    for (const DeviceInfo& info : parts_->devices.enumerate_all()) {
      if (info.usable) (void)parts_->devices.open(info.id);
    }
  } else {
    (void)parts_->devices.open(device);
  }
} catch (...) {
  // What fails is told to the job that asks for the device.
}

Result<WarmReport> Runtime::warm(const WarmRequest& request) try {
  auto device = parts_->devices.open(request.device);
  if (!device) return std::move(device).error();
  const auto use = parts_->resources.begin((*device)->info(), request.device + ", building");
  if (request.jobs.empty()) {
    const auto programs = kept_programs(*parts_->cache, **device, request.most, parts_->tuned_programs(**device));
    return warm_programs(programs, **device, *parts_->cache, request, building_threads(), {}, most_for_first_dispatch,
                         parts_->trace);
  }
  auto programs = parts_->programs_of(request.jobs, **device);
  if (!programs) return std::move(programs).error();
  if (programs->size() > request.most) programs->resize(request.most);
  return warm_programs(*programs, **device, *parts_->cache, request, building_threads(), {}, most_for_first_dispatch,
                       parts_->trace);
} catch (...) {
  return caught();
}

Result<TuneOutcome> Runtime::tune(const KernelSpec& spec, std::string_view id, VariantBench& bench,
                                  const TuneOptions& options) try {
  const BackgroundTuning::Job job(parts_->tuning.get());  // two that measure would disturb one another
  const CacheConfig& kept = parts_->config.cache;
  const auto turn =
      take_asked_turn(kept.read_only ? std::filesystem::path() : kept.directory, options.stop, parts_->log);
  if (!turn) return turn.error();
  TuneOptions how = options;
  if (!how.publish) {
    how.publish = [&](const std::string& variant) -> Status {
      auto device = parts_->devices.open(std::string(id));
      if (!device) return std::move(device).error();
      RunRequest winner;
      winner.name = options.name;
      winner.spec = spec;
      winner.variant = variant;
      return parts_->publish(winner, **device, building_threads());
    };
  }
  return parts_->tune(spec, std::string(id), bench, how);
} catch (...) {
  return caught();
}

Result<std::vector<KernelSpec>> Runtime::tuned(std::string_view id) try {
  auto device = parts_->devices.open(std::string(id));
  if (!device) return std::move(device).error();
  KernelGenerator* generator = parts_->generator_for((*device)->info()).first;
  TuningStore* store = generator == nullptr ? nullptr : generator->tuning();
  if (store == nullptr) return std::vector<KernelSpec>();
  return store->tuned((*device)->info());
} catch (...) {
  return caught();
}

TuningStore* Runtime::tuning() noexcept {
  for (const auto& one : parts_->generators) {
    if (TuningStore* store = one.generator->tuning()) return store;
  }
  return nullptr;
}

WarmingState Runtime::warming() const { return parts_->warming == nullptr ? WarmingState{} : parts_->warming->state(); }

BackgroundTuningState Runtime::background_tuning() const {
  return parts_->tuning == nullptr ? BackgroundTuningState{} : parts_->tuning->state();
}

CacheStats Runtime::cache_stats() const { return parts_->cache->stats(); }
std::string Runtime::metrics() const { return parts_->metrics_text(); }
const WorkCounters& Runtime::counters() const noexcept { return parts_->counters; }
Result<std::uint64_t> Runtime::persist() try { return parts_->cache->persist(); } catch (...) {
  return caught();
}

}  // namespace kiln
