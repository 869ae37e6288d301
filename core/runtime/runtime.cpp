#include <kiln/runtime.hpp>

#include "runtime/device_table.hpp"
#include "runtime/plan_memo.hpp"
#include "runtime/run_statistics.hpp"
#include "runtime/verification.hpp"
#include "runtime/warming.hpp"

#include <kiln/config_reader.hpp>

#include <algorithm>
#include <cstring>
#include <set>

namespace kiln {
namespace {

// How long a wait lasts before the request's stop flag is looked at again.
constexpr std::chrono::milliseconds stop_poll{50};

// A failure that another device may not have.
bool another_device_may_serve(const Status& status) {
  return status.code == StatusCode::unavailable || status.code == StatusCode::device_lost ||
         status.code == StatusCode::unsupported;
}

bool stop_requested(const RunRequest& request) { return request.stop != nullptr && request.stop->load(); }

Status check_tensors(const RunRequest& request) {
  const std::vector<TensorDecl> declared = tensors_of(request.spec);
  if (declared.size() != request.tensors.size()) {
    return invalid_argument(std::to_string(request.tensors.size()) + " tensors given, expected " +
                            std::to_string(declared.size()));
  }
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const TensorArgument& given = request.tensors[i];
    const bool constant = declared[i].role == TensorRole::constant;
    if (constant ? given.constant == nullptr : given.host == nullptr) {
      return invalid_argument("tensor " + declared[i].name + ": expected a " + (constant ? "Constant" : "host tensor"));
    }
    const std::size_t bytes = constant ? given.constant->tensor().bytes().size() : given.host->bytes().size();
    if (bytes != declared[i].bytes) {
      return invalid_argument("tensor " + declared[i].name + ": " + std::to_string(bytes) + " bytes, expected " +
                              std::to_string(declared[i].bytes));
    }
  }
  return {};
}

// The contents of a request's inout tensors before its first run, so that every run does the same work.
class InoutSnapshot {
 public:
  explicit InoutSnapshot(const RunRequest& request) : request_(request) {
    const std::vector<TensorDecl> declared = tensors_of(request.spec);
    for (std::size_t i = 0; i < declared.size(); ++i) {
      if (declared[i].role != TensorRole::inout) continue;
      const std::span<const std::byte> bytes = request.tensors[i].host->bytes();
      saved_.emplace_back(i, std::vector<std::byte>(bytes.begin(), bytes.end()));
    }
  }

  void restore() const {
    for (const auto& [index, bytes] : saved_) {
      std::memcpy(request_.tensors[index].host->bytes().data(), bytes.data(), bytes.size());
    }
  }

 private:
  const RunRequest& request_;
  std::vector<std::pair<std::size_t, std::vector<std::byte>>> saved_;
};

// How far a rate may pass the roof: Winograd's F(4,3) does a quarter of the direct multiplications.
double roof_of(const KernelSpec& spec, const DeviceInfo& device) {
  const auto* conv = std::get_if<Conv2dSpec>(&spec);
  return device.roof_gflops * (conv != nullptr && conv->accuracy == Accuracy::winograd ? 4.0 : 1.0);
}

struct PlannedPrograms {
  std::vector<ProgramHandle> passes;
  std::vector<ProgramHandle> prepare;
  Tier tier = Tier::memory;
  std::uint64_t build_ns = 0;
};

struct OneGenerator {
  std::vector<Dialect> dialects;
  std::unique_ptr<KernelGenerator> generator;
};

struct Service {  // what serves one request on one device
  std::shared_ptr<Device> device;
  KernelGenerator* generator = nullptr;
  std::shared_ptr<const KeyedPlan> keyed;
  PlannedPrograms programs;
};

}  // namespace

struct Runtime::Parts {
  // In order of construction; destroyed from the last to the first.
  Config config;
  Log log;
  WorkCounters counters;
  DeviceTable devices;
  std::unique_ptr<ProgramCache> cache;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<DeviceSelector> selector;
  std::vector<OneGenerator> generators;  // preferred first
  PlanMemo memo;
  std::mutex warm_mutex;
  std::set<std::string> warm;  // "device|variant-independent spec" that ran in this process

  Parts(const Config& chosen, const Registry& registry, Log to)
      : config(chosen), log(to), devices(config, registry, log, counters) {}

  std::pair<KernelGenerator*, Dialect> generator_for(const DeviceInfo& device) const;
  Result<std::vector<DeviceInfo>> candidates(const RunRequest& request, const std::set<std::string>& refused,
                                             RunReport& report);
  Result<std::string> choose(const RunRequest& request, const std::set<std::string>& refused, RunReport& report);
  Result<std::shared_ptr<const KeyedPlan>> plan(const RunRequest& request, const Device& device,
                                                KernelGenerator& generator, Dialect dialect);
  Result<std::shared_ptr<const KeyedPlan>> keyed_plan(const RunRequest& request, const Device& device,
                                                      KernelGenerator& generator, Dialect dialect);
  Result<std::vector<KeptProgram>> programs_of(const std::vector<WarmJob>& jobs, const Device& device);
  Result<PlannedPrograms> acquire(const KeyedPlan& keyed, Device& device);
  Result<Service> prepare(const RunRequest& request, const std::string& device, RunReport& report);
  Result<Measurement> run_once(const RunRequest& request, const Service& service, bool poisoned);
  Status run_all(const RunRequest& request, const Service& service, RunReport& report);
  Status compare(const RunRequest& request, RunReport& report);
  void learn(const RunRequest& request, const Service& service, const Measurement& measurement);
  bool is_warm(const RunRequest& request, const std::string& device, bool now_warm);
};

Runtime::Runtime(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Runtime::~Runtime() = default;

Result<std::unique_ptr<Runtime>> Runtime::create(const Config& config, const Registry& registry, Log log,
                                                 TraceSink* trace) {
  auto parts = std::make_unique<Parts>(config, registry, log);
  auto make_cache = registry.cache(config.cache.name);
  if (!make_cache) return std::move(make_cache).error().within("[cache] name");
  auto make_executor = registry.executor(config.executor.name);
  if (!make_executor) return std::move(make_executor).error().within("[executor] name");
  auto make_selector = registry.selector(config.selector.name);
  if (!make_selector) return std::move(make_selector).error().within("[selector] name");
  auto chosen_generators = registry.generators(config.generator.name);
  if (!chosen_generators) return std::move(chosen_generators).error().within("[generator] name");

  auto cache = make_cache.value()({log, config.cache});
  if (!cache) return std::move(cache).error().within("cache '" + config.cache.name + "'");
  parts->cache = std::move(cache).value();
  auto executor = make_executor.value()({log, config.executor, &parts->counters, trace});
  if (!executor) return std::move(executor).error().within("executor '" + config.executor.name + "'");
  parts->executor = std::move(executor).value();
  auto selector = make_selector.value()({log, config.selector, config.device, config.cache.directory});
  if (!selector) return std::move(selector).error().within("selector '" + config.selector.name + "'");
  parts->selector = std::move(selector).value();
  for (const RegisteredGenerator* registered : *chosen_generators) {
    const auto keys = registry.config_keys().find(registered->plugin);
    PluginSettings settings;
    if (keys != registry.config_keys().end()) settings = plugin_settings(config, registered->plugin, keys->second);
    auto generator = registered->make({log, config.cache.directory, std::move(settings)});
    if (!generator) return std::move(generator).error().within("generator of plugin '" + registered->plugin + "'");
    parts->generators.push_back({registered->dialects, std::move(generator).value()});
  }
  return std::unique_ptr<Runtime>(new Runtime(std::move(parts)));
}

RunReport Runtime::run(const RunRequest& request) {
  RunReport report;
  report.name = request.name;
  report.op = operation(request.spec);
  report.flops = flops(request.spec);
  if (Status status = validate(request.spec); !status.ok()) {
    report.status = std::move(status);
    return report;
  }
  if (Status status = check_tensors(request); !status.ok()) {
    report.status = std::move(status);
    return report;
  }
  std::set<std::string> refused;  // devices that turned out not to be able to serve this request
  for (;;) {
    auto device = parts_->choose(request, refused, report);
    if (!device) {
      report.status = std::move(device).error();
      return report;
    }
    auto service = parts_->prepare(request, *device, report);
    Status status = service ? parts_->run_all(request, *service, report) : std::move(service).error();
    if (status.ok() || !another_device_may_serve(status) || stop_requested(request)) {
      report.status = std::move(status);
      return report;
    }
    if (status.code != StatusCode::unsupported) parts_->devices.set_aside(*device, status);
    if (parts_->config.device.fallback == Fallback::never) {
      report.status = status.within("fallback = \"never\"");
      return report;
    }
    report.notes.push_back(*device + " cannot serve: " + status.message);
    report.device = {};
    refused.insert(*device);
  }
}

std::pair<KernelGenerator*, Dialect> Runtime::Parts::generator_for(const DeviceInfo& device) const {
  for (const Dialect dialect : device.dialects) {
    for (const OneGenerator& one : generators) {
      if (std::find(one.dialects.begin(), one.dialects.end(), dialect) != one.dialects.end()) {
        return {one.generator.get(), dialect};
      }
    }
  }
  return {nullptr, Dialect::invalid};
}

// The devices that may serve: the one that was asked for while it can, else all that are usable.
Result<std::vector<DeviceInfo>> Runtime::Parts::candidates(const RunRequest& request,
                                                           const std::set<std::string>& refused, RunReport& report) {
  std::string wanted = request.device.empty() ? config.device.prefer : request.device;
  if (wanted == "auto") wanted.clear();
  if (!wanted.empty() && !refused.contains(wanted)) {
    Status why;
    for (const DeviceInfo& device : devices.enumerate_for(wanted)) {
      if (device.id != wanted) continue;
      if (device.usable) return std::vector<DeviceInfo>{device};
      why = unavailable("device " + wanted + ": " + device.why_not);
    }
    if (why.ok()) {
      std::string there;
      for (const DeviceInfo& device : devices.enumerate_all()) there += (there.empty() ? "" : ", ") + device.id;
      why = unavailable("device " + wanted + ": there is no such device; there is " + (there.empty() ? "none" : there));
    }
    if (config.device.fallback == Fallback::never) return why.within("fallback = \"never\"");
    report.notes.push_back(why.message);
  }
  std::vector<DeviceInfo> usable;
  for (DeviceInfo& device : devices.enumerate_all()) {
    if (device.usable && !refused.contains(device.id) && device.id != wanted) usable.push_back(std::move(device));
  }
  return usable;
}

Result<std::string> Runtime::Parts::choose(const RunRequest& request, const std::set<std::string>& refused,
                                           RunReport& report) {
  auto able = candidates(request, refused, report);
  if (!able) return std::move(able).error();
  std::vector<Candidate> offered;
  for (const DeviceInfo& device : *able) {
    if (generator_for(device).first == nullptr) {
      report.notes.push_back(device.id + " cannot serve: no generator writes its dialect");
      continue;
    }
    std::uint64_t wait_ns = 0;
    if (devices.is_open(device.id)) {
      if (auto opened = devices.open(device.id)) wait_ns = executor->backlog_ns(**opened);
    }
    offered.push_back({&device, wait_ns, !is_warm(request, device.id, false)});
  }
  if (offered.empty()) {
    std::string reasons;
    for (const std::string& note : report.notes) reasons += (reasons.empty() ? "" : "; ") + note;
    return unavailable("no device can serve" + (reasons.empty() ? ": there is none" : ": " + reasons));
  }
  if (offered.size() == 1) {
    const bool asked = offered[0].device->id == request.device || offered[0].device->id == config.device.prefer;
    report.selected_because = asked ? "asked for" : "the only device that can serve";
    return offered[0].device->id;
  }
  auto choice = selector->select(request.spec, offered);
  if (!choice) return std::move(choice).error();
  report.selected_because = choice->because;
  return offered[choice->candidate].device->id;
}

Result<std::shared_ptr<const KeyedPlan>> Runtime::Parts::plan(const RunRequest& request, const Device& device,
                                                              KernelGenerator& generator, Dialect dialect) {
  const std::uint64_t revision = generator.revision();
  if (!request.variant.empty()) return keyed_plan(request, device, generator, dialect);
  // The memo owns it as long as the runtime lives: a pointer that owns nothing is enough.
  if (const KeyedPlan* known = memo.find(request.spec, device, revision))
    return std::shared_ptr<const KeyedPlan>(std::shared_ptr<const KeyedPlan>(), known);
  auto keyed = keyed_plan(request, device, generator, dialect);
  if (!keyed) return keyed;
  return memo.keep(request.spec, device, revision, **keyed);
}

Result<std::shared_ptr<const KeyedPlan>> Runtime::Parts::keyed_plan(const RunRequest& request, const Device& device,
                                                                    KernelGenerator& generator, Dialect dialect) {
  auto plan = request.variant.empty()
                  ? generator.generate(request.spec, device.info(), dialect)
                  : generator.generate_variant(request.spec, device.info(), dialect, request.variant);
  if (!plan) return std::move(plan).error();
  if (Status status = validate(*plan); !status.ok()) return status;
  KeyedPlan keyed{std::make_shared<const KernelPlan>(std::move(*plan)), {}, {}};
  const std::string label = request.name + "/" + keyed.plan->variant;
  for (const Pass& pass : keyed.plan->prepare) keyed.prepare.push_back(key_of(pass.source, device.info(), label));
  for (const Pass& pass : keyed.plan->passes) keyed.passes.push_back(key_of(pass.source, device.info(), label));
  return std::make_shared<const KeyedPlan>(std::move(keyed));
}

// Each once, in the order of the jobs.
Result<std::vector<KeptProgram>> Runtime::Parts::programs_of(const std::vector<WarmJob>& jobs, const Device& device) {
  std::vector<KeptProgram> programs;
  std::set<Digest> seen;
  const auto [generator, dialect] = generator_for(device.info());
  if (generator == nullptr) return unsupported("device " + device.info().id + ": no generator writes its dialect");
  for (const WarmJob& job : jobs) {
    RunRequest request;
    request.name = job.name;
    request.spec = job.spec;
    auto keyed = plan(request, device, *generator, dialect);
    if (!keyed) return std::move(keyed).error().within("job '" + job.name + "'");
    const auto add = [&](const std::vector<Pass>& passes, const std::vector<ProgramKey>& keys) {
      for (std::size_t i = 0; i < passes.size(); ++i) {
        if (seen.insert(keys[i].digest).second) programs.push_back({keys[i], passes[i].source, 0});
      }
    };
    add((*keyed)->plan->prepare, (*keyed)->prepare);
    add((*keyed)->plan->passes, (*keyed)->passes);
  }
  return programs;
}

Result<PlannedPrograms> Runtime::Parts::acquire(const KeyedPlan& keyed, Device& device) {
  PlannedPrograms programs;
  const auto add = [&](const std::vector<Pass>& passes, const std::vector<ProgramKey>& keys,
                       std::vector<ProgramHandle>& to) -> Status {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      auto acquired = cache->get_or_build(keys[i], passes[i].source, device);
      if (!acquired) return std::move(acquired).error();
      to.push_back(acquired->program);
      programs.tier = std::min(programs.tier, acquired->tier);  // Tier is ordered from the slowest
      programs.build_ns += acquired->build_ns;
    }
    return {};
  };
  if (Status status = add(keyed.plan->prepare, keyed.prepare, programs.prepare); !status.ok()) return status;
  if (Status status = add(keyed.plan->passes, keyed.passes, programs.passes); !status.ok()) return status;
  return programs;
}

Result<Service> Runtime::Parts::prepare(const RunRequest& request, const std::string& id, RunReport& report) {
  auto device = devices.open(id);
  if (!device) return std::move(device).error();
  report.device = (*device)->info();
  const auto [generator, dialect] = generator_for(report.device);
  if (generator == nullptr) return unsupported("device " + id + ": no generator writes its dialect");
  auto keyed = plan(request, **device, *generator, dialect);
  if (!keyed) return std::move(keyed).error();
  report.variant = (*keyed)->plan->variant;
  auto programs = acquire(**keyed, **device);
  if (!programs) return std::move(programs).error();
  report.tier = programs->tier;
  report.build_ns = programs->build_ns;
  report.keys.clear();
  for (const ProgramKey& key : (*keyed)->passes) report.keys.push_back(key.digest.hex());
  return Service{*device, generator, std::move(*keyed), std::move(*programs)};
}

Result<Measurement> Runtime::Parts::run_once(const RunRequest& request, const Service& service, bool poisoned) {
  const Deadline deadline = Deadline::after(request.timeout.value_or(config.executor.timeout));
  auto fence = executor->submit({service.device, service.keyed->plan, service.programs.passes, service.programs.prepare,
                                 request.tensors, deadline, poisoned});
  if (!fence) return std::move(fence).error();
  for (;;) {
    const Deadline slice = Deadline{std::min(deadline.at, Deadline::after(stop_poll).at)};
    auto measurement = executor->wait(*fence, request.stop == nullptr ? deadline : slice);
    if (measurement) return measurement;
    if (measurement.error().code != StatusCode::timeout || deadline.passed()) return measurement;
    if (stop_requested(request)) return unavailable("stopped on request");
  }
}

// All runs of a request: the first and the last are compared, outside the clock, with their outputs poisoned before.
Status Runtime::Parts::run_all(const RunRequest& request, const Service& service, RunReport& report) {
  RunStatistics statistics;
  const InoutSnapshot snapshot(request);
  const std::uint32_t runs = std::max(request.repeat, 1u);
  for (std::uint32_t run = 0; run < runs; ++run) {
    if (stop_requested(request)) return unavailable("stopped on request after " + std::to_string(run) + " runs");
    const bool compared = request.verify && (run == 0 || run + 1 == runs);
    if (run != 0) snapshot.restore();
    if (compared) poison_outputs(request);
    const bool ran_before = is_warm(request, report.device.id, true);
    auto measurement = run_once(request, service, compared);
    if (!measurement) return std::move(measurement).error();
    if (run == 0) {
      report.first_output_ns = now_ns();
      measurement->build_ns += service.programs.build_ns;
    }
    measurement->tier = service.programs.tier;
    measurement->first_run = !ran_before;
    if (compared) {
      if (Status status = compare(request, report); !status.ok()) return status;
      measurement->verified = report.verified;
    }
    statistics.add(*measurement);
    learn(request, service, *measurement);
    report.runs = run + 1;
  }
  report.median = statistics.median();
  report.wall_min_ns = statistics.wall_min_ns();
  report.wall_max_ns = statistics.wall_max_ns();
  const double roof = roof_of(request.spec, report.device);
  const auto rate = [&](std::uint64_t ns) { return ns == 0 ? 0.0 : report.flops / static_cast<double>(ns); };
  const double fastest = std::max(rate(report.wall_min_ns), rate(report.median.device_ns));
  if (roof > 0 && fastest > roof) {
    return internal_error("measured " + std::to_string(fastest) + " GFLOP/s on " + report.device.id +
                          ", whose roof is " + std::to_string(roof) + ": the time is invalid");
  }
  for (const ProgramKey& key : service.keyed->passes) cache->record(key, report.median, rate(report.median.wall_ns));
  return {};
}

Status Runtime::Parts::compare(const RunRequest& request, RunReport& report) {
  const auto compared = verify_outputs(request);
  if (!compared) return compared.error().within("the output could not be compared");
  if (!compared->has_value()) return {};
  const std::optional<Verdict>& verdict = *compared;
  report.verified = verdict->within && report.verified.value_or(true);
  report.max_rel_error = std::max(report.max_rel_error, verdict->max_rel_error);
  report.error_bound = verdict->error_bound;
  if (verdict->within) return {};
  char text[160];
  std::snprintf(text, sizeof text, "output differs from the reference: relative error %.3g, bound %.3g",
                verdict->max_rel_error, verdict->error_bound);
  return internal_error(report.device.id + ": " + text);
}

void Runtime::Parts::learn(const RunRequest& request, const Service& service, const Measurement& measurement) {
  selector->record(request.spec, service.device->info(), measurement);
  service.generator->record(request.spec, service.device->info(), service.keyed->plan->variant, measurement);
}

bool Runtime::Parts::is_warm(const RunRequest& request, const std::string& device, bool now_warm) {
  std::string which = device + "|" + canonical_text(request.spec);
  const std::lock_guard lock(warm_mutex);
  if (now_warm) return !warm.insert(std::move(which)).second;
  return warm.contains(which);
}

std::vector<DeviceInfo> Runtime::devices() { return parts_->devices.enumerate_all(); }
std::vector<DeviceInfo> Runtime::known_devices() const { return parts_->devices.known(); }

void Runtime::open_ahead(std::string_view device) {
  if (device.empty() || device == "auto") {
    for (const DeviceInfo& info : parts_->devices.enumerate_all()) {
      if (info.usable) (void)parts_->devices.open(info.id);
    }
  } else {
    (void)parts_->devices.open(device);
  }
}

Result<WarmReport> Runtime::warm(const WarmRequest& request) {
  auto device = parts_->devices.open(request.device);
  if (!device) return std::move(device).error();
  if (request.jobs.empty()) {
    return warm_programs(parts_->cache->kept(**device, request.most), **device, *parts_->cache, request);
  }
  auto programs = parts_->programs_of(request.jobs, **device);
  if (!programs) return std::move(programs).error();
  if (programs->size() > request.most) programs->resize(request.most);
  return warm_programs(*programs, **device, *parts_->cache, request);
}

Result<TuneOutcome> Runtime::tune(const KernelSpec& spec, std::string_view id, VariantBench& bench,
                                  const TuneOptions& options) {
  if (Status status = validate(spec); !status.ok()) return status;
  auto device = parts_->devices.open(std::string(id));
  if (!device) return std::move(device).error();
  const auto [generator, dialect] = parts_->generator_for((*device)->info());
  if (generator == nullptr) return unsupported("device " + std::string(id) + ": no generator writes its dialect");
  return generator->tune(spec, (*device)->info(), dialect, bench, options);
}

CacheStats Runtime::cache_stats() const { return parts_->cache->stats(); }
const WorkCounters& Runtime::counters() const noexcept { return parts_->counters; }
Result<std::uint64_t> Runtime::persist() { return parts_->cache->persist(); }

}  // namespace kiln
