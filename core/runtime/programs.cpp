#include "runtime/programs.hpp"

#include <kiln/kernel_parameters.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace kiln {
namespace {

// A program that reports no interface binds by position alone.
Status check_positions(const UserKernelSpec& kernel) {
  const auto by_position = [](const UserKernelSpec::Binding& binding) {
    return has_tensor(binding.kind) && binding.name.empty() && !binding.number;
  };
  if (kernel.uniforms.empty() && std::ranges::all_of(kernel.bindings, by_position)) return {};
  return unsupported(
      "kernel " + kernel.path +
      ": the device does not report the interface of a program, so uniforms, local memory and bindings by name "
      "or number are not supported");
}

// Finds what of the request provides each resource of its programs.
Status match(const KernelSpec& spec, AcquiredPrograms& programs) {
  const auto* kernel = std::get_if<UserKernelSpec>(&spec);
  if (kernel == nullptr) return {};
  const KernelPlan& plan = *programs.plan.keyed->plan;
  for (std::size_t i = 0; i < programs.passes.size(); ++i) {
    const ProgramInterface* declared = programs.passes[i].get()->interface(plan.passes[i].source);
    if (declared == nullptr) return check_positions(*kernel);
    auto sources = provide(*declared, *kernel);
    if (!sources) return std::move(sources).error().within("kernel " + kernel->path);
    programs.sources.push_back(std::move(*sources));
  }
  return {};
}

// The kernel of a job whose variant the runtime chooses; nullptr: there is nothing to choose.
const UserKernelSpec* with_open_parameters(const RunRequest& request) {
  const auto* kernel = std::get_if<UserKernelSpec>(&request.spec);
  return kernel == nullptr || kernel->parameters.empty() || !request.variant.empty() ? nullptr : kernel;
}

// Another variant may not have this failure.
bool is_of_the_variant(const Status& status) {
  return status.code == StatusCode::invalid_argument || status.code == StatusCode::unsupported;
}

}  // namespace

Programs::Programs(const Config& config, Log log, TraceSink* trace, ProgramCache& cache, Planner& planner,
                   DeviceTable& devices, ResourceUse& resources, WorkHistory& history)
    : config_(config),
      log_(log),
      trace_(trace),
      cache_(cache),
      planner_(planner),
      devices_(devices),
      resources_(resources),
      history_(history) {}

Result<AcquiredPrograms> Programs::acquire(Job& job, Device& device, const Result<Plan>& plan) {
  auto programs = plan ? acquire(job, device, *plan) : Result<AcquiredPrograms>(plan.error());
  const UserKernelSpec* const kernel = with_open_parameters(job.request);
  if (programs || kernel == nullptr || !is_of_the_variant(programs.error())) return programs;
  if (!planner_.check_reads(device.info(), job.request.spec).ok() || !check_parameters(*kernel).ok()) return programs;
  return acquire_another_variant(job, *kernel, device, programs.error());
}

Result<AcquiredPrograms> Programs::acquire_another_variant(Job& job, const UserKernelSpec& kernel, Device& device,
                                                           const Status& failure) {
  FailedVariants failed;
  const std::string preferred = job.report.variant;
  if (!preferred.empty()) failed.add(preferred, failure);
  for (const std::string& variant : variants_of(kernel)) {
    if (failed.contains(variant)) continue;
    auto plan = planner_.plan(job.request, device, variant);
    auto programs = plan ? acquire(job, device, std::move(*plan)) : Result<AcquiredPrograms>(plan.error());
    if (programs) {
      const std::string& id = device.info().id;
      job.report.notes.push_back(id + ": runs " + variant + ", these variants cannot run here: " + failed.text());
      history_.set_fallback_variant(job.request.spec, id, programs->plan.generator->revision(), variant);
      return programs;
    }
    if (!is_of_the_variant(programs.error())) return programs;
    failed.add(variant, programs.error());
  }
  job.report.variant = preferred;
  if (failed.size() == 1) return failure;
  return Status{failure.code,
                "none of the " + std::to_string(failed.size()) + " variants can run here: " + failed.text()};
}

Result<AcquiredPrograms> Programs::acquire(Job& job, Device& device, Plan plan) {
  RunReport& report = job.report;
  auto generic = generic_plan(job.request, device, plan);
  const bool is_generic = generic.has_value();
  if (is_generic) {
    plan = std::move(*generic);
    report.notes.push_back(device.info().id + ": runs generic programs while the specialized programs are built");
  }
  report.variant = plan.keyed->plan->variant;
  auto programs = from_cache(std::move(plan), device);
  if (!programs) return programs;
  if (Status status = match(job.request.spec, *programs); !status.ok()) return status;
  programs->generic = is_generic;
  report.tier = programs->tier;
  report.build_ns = programs->build_ns;
  report.keys.clear();
  report.prepare_keys.clear();
  for (const ProgramKey& key : programs->plan.keyed->passes) report.keys.push_back(key.digest.hex());
  for (const ProgramKey& key : programs->plan.keyed->prepare) report.prepare_keys.push_back(key.digest.hex());
  job.plan_notes = programs->plan.keyed->plan->notes;
  return programs;
}

Result<AcquiredPrograms> Programs::from_cache(Plan plan, Device& device) {
  AcquiredPrograms programs;
  const auto add = [&](const std::vector<Pass>& passes, const std::vector<ProgramKey>& keys,
                       std::vector<ProgramHandle>& to) -> Status {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      auto acquired = cache_.get_or_build(keys[i], passes[i].source, device);
      if (!acquired) return std::move(acquired).error();
      to.push_back(std::move(acquired->program));
      programs.tier = std::min(programs.tier, acquired->tier);  // Tier is ordered from the slowest
      programs.build_ns += acquired->build_ns;
    }
    return {};
  };
  const KeyedPlan& keyed = *plan.keyed;
  if (Status status = add(keyed.plan->prepare, keyed.prepare, programs.prepare); !status.ok()) return status;
  if (Status status = add(keyed.plan->passes, keyed.passes, programs.passes); !status.ok()) return status;
  programs.plan = std::move(plan);
  return programs;
}

bool Programs::are_stored(const KeyedPlan& keyed, const Device& device) {
  const auto stored = [&](const ProgramKey& key) { return cache_.holds(key, device); };
  return std::ranges::all_of(keyed.prepare, stored) && std::ranges::all_of(keyed.passes, stored);
}

std::optional<Plan> Programs::generic_plan(const RunRequest& request, const Device& device, const Plan& own) {
  const std::string& id = device.info().id;
  if (!config_.generator.serve_while_building || !request.variant.empty()) return std::nullopt;
  if (history_.is_ready(request.spec, id) || history_.failed_ahead(request.spec, id)) return std::nullopt;
  if (are_stored(*own.keyed, device)) return std::nullopt;
  for (Plan& generic : planner_.generic_plans(request, device, own)) {
    if (!are_stored(*generic.keyed, device)) continue;
    build_ahead(request, id);
    return std::move(generic);
  }
  return std::nullopt;
}

void Programs::build_ahead(const RunRequest& request, const std::string& id) {
  ahead_.ask(work_name(request.spec, id), [this, id, job = WarmJob{request.name, request.spec}] {
    const auto failed = [&](const Status& status) {
      log_.write(LogLevel::info, "runtime", "building ahead for " + id + " failed: " + status.message);
      history_.set_failed_ahead(job.spec, id);
    };
    auto device = devices_.open(id);
    if (!device) return failed(device.error());
    auto programs = planner_.programs_of(std::span(&job, 1), **device);
    if (!programs) return failed(programs.error());
    const WarmReport report = warm_all(*programs, **device, {}, 1);
    if (report.failed != 0) return failed(report.first_failure);
    history_.set_ready(job.spec, id);
  });
}

void Programs::build_generic_ahead(const RunRequest& request, const std::string& id) {
  if (!config_.generator.serve_while_building || !request.variant.empty()) return;
  const std::string name = "generic: " + work_name(request.spec, id);
  ahead_.ask(name, [this, id, job = WarmJob{request.name, request.spec}] {
    auto device = devices_.open(id);
    if (!device) return;
    RunRequest next;
    next.name = job.name;
    next.spec = job.spec;
    const auto [generator, dialect] = planner_.generator_for((*device)->info());
    std::set<Digest> seen;
    std::vector<KeptProgram> programs;
    for (const Plan& plan : planner_.generic_plans(next, **device, {generator, dialect, nullptr})) {
      add_programs(*plan.keyed, seen, programs);
    }
    std::erase_if(programs, [&](const KeptProgram& program) { return cache_.holds(program.key, **device); });
    if (programs.empty()) return;
    const WarmReport report = warm_all(programs, **device, {}, 1);
    if (report.failed == 0) return;
    log_.write(LogLevel::info, "runtime",
               "building generic programs ahead for " + id + " failed: " + report.first_failure.message);
  });
}

Status Programs::publish(const RunRequest& request, const std::string& variant, Device& device, unsigned threads) {
  auto plan = planner_.plan(request, device, variant);
  if (!plan) return std::move(plan).error();
  std::set<Digest> seen;
  std::vector<KeptProgram> programs;
  add_programs(*plan->keyed, seen, programs);
  return warm_all(programs, device, {}, threads).first_failure;
}

Result<WarmReport> Programs::warm(const WarmRequest& request) {
  auto device = devices_.open(request.device);
  if (!device) return std::move(device).error();
  return warm(request, **device);
}

Result<WarmReport> Programs::warm(const WarmRequest& request, Device& device) {
  if (request.jobs.empty()) {
    const auto programs = kept_programs(cache_, device, request.most, planner_.tuned_programs(device));
    return warm_all(programs, device, request, building_threads());
  }
  auto programs = planner_.programs_of(request.jobs, device);
  if (!programs) return std::move(programs).error();
  if (programs->size() > request.most) programs->resize(request.most);
  WarmReport report = warm_all(*programs, device, request, building_threads());
  for (const WarmJob& job : request.jobs) {
    if (planner_.generator_for(device.info(), &job.spec).first == nullptr) report.unfitted.push_back(job.name);
  }
  return report;
}

WarmReport Programs::warm_all(const std::vector<KeptProgram>& programs, Device& device, const WarmRequest& request,
                              unsigned threads) {
  const StopScope stop(request.stop != nullptr ? request.stop : current_stop());
  const auto use = resources_.begin(device.info(), device.info().id + ", building");
  return warm_programs(programs, device, cache_, request, threads, {}, most_for_first_dispatch, trace_);
}

}  // namespace kiln
