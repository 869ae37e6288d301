// From a request and its device to programs: plan, keys, cache.
#include "runtime/job/program_purpose.hpp"
#include "runtime/parts.hpp"
#include "runtime/warming/warming.hpp"

#include <kiln/digest.hpp>
#include <kiln/kernel_parameters.hpp>
#include <kiln/traced_work.hpp>

#include <algorithm>

namespace kiln {
namespace {

// A program that reports no interface binds by position alone.
Status check_positions(const UserKernelSpec& kernel) {
  const auto by_position = [](const UserKernelSpec::Binding& binding) {
    return binding.kind != BindingKind::local && binding.name.empty() && !binding.number;
  };
  if (kernel.uniforms.empty() && std::ranges::all_of(kernel.bindings, by_position)) return {};
  return unsupported(
      "kernel " + kernel.path +
      ": the device reports no interface of its programs, so uniforms, local memory and bindings by name "
      "or number cannot be provided");
}

}  // namespace

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
  TracedWork planning(trace, TraceArea::runtime, "plan");
  auto plan = request.variant.empty()
                  ? generator.generate(request.spec, device.info(), dialect)
                  : generator.generate_variant(request.spec, device.info(), dialect, request.variant);
  if (!plan) return std::move(plan).error();
  auto keyed = with_keys(request, device, std::move(*plan));
  if (!keyed) return keyed;
  planning.figure("variant", (*keyed)->plan->variant);
  planning.figure("programs", (*keyed)->prepare.size() + (*keyed)->passes.size());
  planning.end();
  return keyed;
}

Result<std::shared_ptr<const KeyedPlan>> Runtime::Parts::with_keys(const RunRequest& request, const Device& device,
                                                                   KernelPlan plan) {
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

void add_programs(const KeyedPlan& keyed, std::set<Digest>& seen, std::vector<KeptProgram>& programs) {
  const auto add = [&](const std::vector<Pass>& passes, const std::vector<ProgramKey>& keys) {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      if (seen.insert(keys[i].digest).second) programs.push_back({keys[i], passes[i].source, 0});
    }
  };
  add(keyed.plan->prepare, keyed.prepare);
  add(keyed.plan->passes, keyed.passes);
}

Result<std::vector<KeptProgram>> Runtime::Parts::programs_of(const std::vector<WarmJob>& jobs, const Device& device) {
  std::vector<KeptProgram> programs;
  std::set<Digest> seen;
  for (const WarmJob& job : jobs) {
    const auto [generator, dialect] = generator_for(device.info(), &job.spec);
    if (generator == nullptr) continue;  // the job never runs on this device
    RunRequest request;
    request.name = job.name;
    request.spec = job.spec;
    auto keyed = plan(request, device, *generator, dialect);
    if (!keyed) return std::move(keyed).error().within("job '" + job.name + "'");
    add_programs(**keyed, seen, programs);
  }
  return programs;
}

Status Runtime::Parts::publish(const RunRequest& variant, Device& device, unsigned threads) {
  if (Status status = check_reads(device.info(), variant.spec); !status.ok()) return status;
  const auto [generator, dialect] = generator_for(device.info(), &variant.spec);
  auto keyed = plan(variant, device, *generator, dialect);
  if (!keyed) return std::move(keyed).error();
  std::set<Digest> seen;
  std::vector<KeptProgram> programs;
  add_programs(**keyed, seen, programs);
  const auto use = resources.begin(device.info(), device.info().id + ", building");
  return warm_programs(programs, device, *cache, {}, threads).first_failure;
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

Status Runtime::Parts::match(const KernelSpec& spec, const KernelPlan& plan, PlannedPrograms& programs) {
  const auto* kernel = std::get_if<UserKernelSpec>(&spec);
  if (kernel == nullptr) return {};
  for (std::size_t i = 0; i < programs.passes.size(); ++i) {
    const ProgramInterface* declared = programs.passes[i].get()->interface(plan.passes[i].source);
    if (declared == nullptr) return check_positions(*kernel);
    auto sources = provide(*declared, *kernel);
    if (!sources) return std::move(sources).error().within("kernel " + kernel->path);
    programs.sources.push_back(std::move(*sources));
  }
  return {};
}

Result<Service> Runtime::Parts::prepare(const RunRequest& request, const std::shared_ptr<Device>& device,
                                        RunReport& report) {
  report.device = device->info();
  if (Status status = check_reads(report.device, request.spec); !status.ok()) return status;
  const auto [generator, dialect] = generator_for(report.device, &request.spec);
  const auto* kernel = std::get_if<UserKernelSpec>(&request.spec);
  if (kernel != nullptr && !kernel->parameters.empty() && request.variant.empty()) {
    return prepare_any_variant(request, *kernel, device, *generator, dialect, report);
  }
  return prepare_variant(request, device, *generator, dialect, report);
}

Result<Service> Runtime::Parts::prepare_any_variant(const RunRequest& request, const UserKernelSpec& kernel,
                                                    const std::shared_ptr<Device>& device, KernelGenerator& generator,
                                                    Dialect dialect, RunReport& report) {
  const auto work = [&] {
    return work_name(request, device->info().id) + ", revision " + std::to_string(generator.revision());
  };
  std::string known;  // empty: the generator's
  {
    const std::lock_guard lock(warm_mutex);
    if (!serving_variants.empty()) {
      if (const auto at = serving_variants.find(work()); at != serving_variants.end()) known = at->second;
    }
  }
  const auto prepare_as = [&](const std::string& variant) {
    RunRequest one = request;
    one.variant = variant;
    return prepare_variant(one, device, generator, dialect, report);
  };
  auto service = known.empty() ? prepare_variant(request, device, generator, dialect, report) : prepare_as(known);
  const auto is_its_own = [](const Status& status) {
    return status.code == StatusCode::invalid_argument || status.code == StatusCode::unsupported;
  };
  if (service || !is_its_own(service.error()) || !check_parameters(kernel).ok()) return service;
  FailedVariants failed;
  const std::string preferred = report.variant;
  if (!preferred.empty()) failed.add(preferred, service.error());
  const Status first_failure = service.error();
  for (const std::string& variant : variants_of(kernel)) {
    if (failed.contains(variant)) continue;
    auto other = prepare_as(variant);
    if (other) {
      report.notes.push_back(device->info().id + ": runs " + variant +
                             ", these variants cannot run here: " + failed.text());
      const std::lock_guard lock(warm_mutex);
      serving_variants[work()] = variant;
      return other;
    }
    if (!is_its_own(other.error())) return other;
    failed.add(variant, other.error());
  }
  report.variant = preferred;
  if (failed.size() == 1) return first_failure;
  return Status{first_failure.code,
                "none of its " + std::to_string(failed.size()) + " variants can run here: " + failed.text()};
}

Result<Service> Runtime::Parts::prepare_variant(const RunRequest& request, const std::shared_ptr<Device>& device,
                                                KernelGenerator& generator, Dialect dialect, RunReport& report) {
  const std::string& id = report.device.id;
  report.variant.clear();
  auto keyed = plan(request, *device, generator, dialect);
  if (!keyed) return std::move(keyed).error();
  bool stands_in = false;
  if (auto other = stand_in_for(request, *device, **keyed, generator, dialect)) {
    keyed = std::move(other);
    stands_in = true;
    report.notes.push_back(id + ": served by programs for any shape, its own are being built");
  }
  report.variant = (*keyed)->plan->variant;
  auto programs = acquire(**keyed, *device);
  if (!programs) return std::move(programs).error();
  if (Status status = match(request.spec, *(*keyed)->plan, *programs); !status.ok()) return status;
  report.tier = programs->tier;
  report.build_ns = programs->build_ns;
  report.keys.clear();
  for (const ProgramKey& key : (*keyed)->passes) report.keys.push_back(key.digest.hex());
  Service service{device, &generator, std::move(*keyed), std::move(*programs)};
  service.stands_in = stands_in;
  return service;
}

}  // namespace kiln
