#include "runtime/planner.hpp"

#include <kiln/digest.hpp>
#include <kiln/kernel_parameters.hpp>
#include <kiln/operation.hpp>
#include <kiln/tuning.hpp>

#include <algorithm>
#include <optional>

namespace kiln {
namespace {

// Its grid may follow from what the variant chooses.
std::string shape_of(const KernelSpec& spec, std::string_view variant) {
  if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) {
    if (const auto one = settled(*kernel, variant)) return operation_of(spec).shape(*one);
  }
  return operation_of(spec).shape(spec);
}

}  // namespace

ProgramPurpose purpose_of(const KernelSpec& spec, std::string variant) {
  std::string shape = shape_of(spec, variant);
  return {std::string(operation(spec)), std::move(shape), std::move(variant)};
}

Planner::Planner(std::vector<LoadedGenerator> generators, bool prefers_first, const DeviceTable& devices,
                 const WorkHistory& history, TraceSink* trace)
    : generators_(std::move(generators)),
      prefers_first_(prefers_first),
      devices_(devices),
      history_(history),
      trace_(trace) {}

Result<Plan> Planner::plan(Job& job, const Device& device) {
  RunReport& report = job.report;
  report.device = device.info();
  report.variant.clear();
  if (Status status = check_reads(report.device, job.request.spec); !status.ok()) return status;
  const auto* const kernel = std::get_if<UserKernelSpec>(&job.request.spec);
  std::string variant = job.request.variant;
  if (variant.empty() && kernel != nullptr && !kernel->parameters.empty()) {
    const std::uint64_t revision = generator_for(report.device, &job.request.spec).first->revision();
    variant = history_.fallback_variant(job.request.spec, report.device.id, revision).value_or("");
  }
  auto plan = this->plan(job.request, device, variant);
  if (plan) report.variant = plan->keyed->plan->variant;
  return plan;
}

Result<Plan> Planner::plan(const RunRequest& request, const Device& device, const std::string& variant) {
  if (Status status = check_reads(device.info(), request.spec); !status.ok()) return status;
  const auto [generator, dialect] = generator_for(device.info(), &request.spec);
  const std::uint64_t revision = generator->revision();
  if (variant.empty()) {
    if (auto known = memo_.find(request.spec, device, revision)) return Plan{generator, dialect, std::move(known)};
  }
  auto keyed = generate(request, device, *generator, dialect, variant);
  if (!keyed) return std::move(keyed).error();
  if (!variant.empty()) return Plan{generator, dialect, std::move(*keyed)};
  return Plan{generator, dialect, memo_.insert(request.spec, device, revision, std::move(*keyed))};
}

namespace {

Result<std::shared_ptr<const KeyedPlan>> with_keys(const RunRequest& request, const Device& device, KernelPlan plan) {
  if (Status status = validate(plan); !status.ok()) return status;
  KeyedPlan keyed{std::make_shared<const KernelPlan>(std::move(plan)), {}, {}};
  const std::string label = request.name + "/" + keyed.plan->variant;
  const ProgramPurpose purpose = purpose_of(request.spec, keyed.plan->variant);
  const auto key_for = [&](const Pass& pass) {
    ProgramKey key = key_of(pass.source, device.info(), label);
    key.purpose = purpose;
    return key;
  };
  for (const Pass& pass : keyed.plan->prepare) keyed.prepare.push_back(key_for(pass));
  for (const Pass& pass : keyed.plan->passes) keyed.passes.push_back(key_for(pass));
  return std::make_shared<const KeyedPlan>(std::move(keyed));
}

}  // namespace

Result<std::shared_ptr<const KeyedPlan>> Planner::generate(const RunRequest& request, const Device& device,
                                                           KernelGenerator& generator, Dialect dialect,
                                                           const std::string& variant) {
  TracedWork planning(trace_, TraceArea::runtime, "plan");
  auto plan = variant.empty() ? generator.generate(request.spec, device.info(), dialect)
                              : generator.generate_variant(request.spec, device.info(), dialect, variant);
  if (!plan) return std::move(plan).error();
  auto keyed = with_keys(request, device, std::move(*plan));
  if (!keyed) return keyed;
  planning.figure("variant", (*keyed)->plan->variant);
  planning.figure("programs", (*keyed)->prepare.size() + (*keyed)->passes.size());
  planning.end();
  return keyed;
}

std::vector<Plan> Planner::generic_plans(const RunRequest& request, const Device& device, const Plan& own) {
  std::vector<Plan> plans;
  for (KernelPlan& plan : own.generator->generic_plans(request.spec, device.info(), own.dialect)) {
    auto keyed = with_keys(request, device, std::move(plan));
    if (keyed) plans.push_back({own.generator, own.dialect, std::move(*keyed)});
  }
  return plans;
}

Result<std::vector<KeptProgram>> Planner::programs_of(std::span<const WarmJob> jobs, const Device& device) {
  std::vector<KeptProgram> programs;
  std::set<Digest> seen;
  for (const WarmJob& job : jobs) {
    if (generator_for(device.info(), &job.spec).first == nullptr) continue;
    RunRequest request;
    request.name = job.name;
    request.spec = job.spec;
    auto plan = this->plan(request, device, "");
    if (!plan) return std::move(plan).error().within("job '" + job.name + "'");
    add_programs(*plan->keyed, seen, programs);
  }
  return programs;
}

std::pair<KernelGenerator*, Dialect> Planner::generator_for(const DeviceInfo& device, const KernelSpec* spec) const {
  const auto* const kernel = spec == nullptr ? nullptr : std::get_if<UserKernelSpec>(spec);
  std::optional<std::string> plugin;  // looked up only where several generators write the dialect
  for (const Dialect dialect : device.dialects) {
    if (kernel != nullptr && dialect != kernel->dialect) continue;
    const LoadedGenerator* chosen = nullptr;
    for (const LoadedGenerator& one : generators_) {
      if (std::ranges::find(one.dialects, dialect) == one.dialects.end()) continue;
      if (chosen == nullptr) {
        chosen = &one;
        if (prefers_first_ && chosen == &generators_.front()) break;
        continue;
      }
      if (!plugin) plugin = devices_.plugin_of(device.id);
      if (one.plugin == *plugin && chosen->plugin != *plugin) chosen = &one;
    }
    if (chosen != nullptr) return {chosen->generator.get(), dialect};
  }
  return {nullptr, Dialect::invalid};
}

Status Planner::check_reads(const DeviceInfo& device, const KernelSpec& spec) const {
  if (generator_for(device, &spec).first != nullptr) return {};
  std::string read;
  for (const Dialect dialect : device.dialects) read += (read.empty() ? "" : " or ") + std::string(to_string(dialect));
  if (read.empty()) read = "nothing";
  const auto* const kernel = std::get_if<UserKernelSpec>(&spec);
  if (kernel == nullptr) {
    return unsupported("device " + device.id + ": no loaded generator writes what it reads (" + read + ")");
  }
  const auto reads = std::ranges::find(device.dialects, kernel->dialect) != device.dialects.end();
  const std::string dialect(to_string(kernel->dialect));
  if (reads)
    return unsupported("device " + device.id + " cannot run kernel " + kernel->path +
                       ": no loaded plugin prepares kernels in " + dialect + ", expected one as dynamic_shaders");
  return unsupported("device " + device.id + " cannot run kernel " + kernel->path + ": written in " + dialect +
                     ", expected " + read);
}

TuningStore* Planner::tuning_for(const DeviceInfo& device) const {
  auto* const tunable = dynamic_cast<TunableGenerator*>(generator_for(device).first);
  return tunable == nullptr ? nullptr : tunable->tuning();
}

TuningStore* Planner::tuning() const noexcept {
  for (const LoadedGenerator& one : generators_) {
    auto* const tunable = dynamic_cast<TunableGenerator*>(one.generator.get());
    if (TuningStore* const store = tunable == nullptr ? nullptr : tunable->tuning()) return store;
  }
  return nullptr;
}

TunedPrograms Planner::tuned_programs(const Device& device) {
  TunedPrograms tuned;
  const auto [generator, dialect] = generator_for(device.info());
  TuningStore* const store = tuning_for(device.info());
  if (store == nullptr) return tuned;
  for (const KernelSpec& spec : store->tuned(device.info())) {
    RunRequest request;
    request.spec = spec;
    // Not remembered: its programs have no job's name.
    const auto keyed = generate(request, device, *generator, dialect, "");
    if (!keyed) continue;
    for (const auto* const keys : {&(*keyed)->prepare, &(*keyed)->passes}) {
      for (const ProgramKey& key : *keys) {
        tuned.shapes.emplace(key.purpose.operation, key.purpose.shape);
        tuned.winners.insert(key.digest);
      }
    }
  }
  return tuned;
}

void add_programs(const KeyedPlan& keyed, std::set<Digest>& seen, std::vector<KeptProgram>& programs) {
  const auto add = [&](const std::vector<Pass>& passes, const std::vector<ProgramKey>& keys) {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      if (seen.insert(keys[i].digest).second) programs.push_back({keys[i], passes[i].source, 0});
    }
  };
  add(keyed.plan->prepare, keyed.prepare);
  add(keyed.plan->passes, keyed.passes);
}

}  // namespace kiln
