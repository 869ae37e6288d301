#define XXH_INLINE_ALL  // from the header alone: no library to bind at start
#include "runtime/planner.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include <xxhash.h>

#include <kiln/digest.hpp>
#include <kiln/kernel_parameters.hpp>
#include <kiln/operation.hpp>
#include <kiln/tuning.hpp>

namespace kiln {
namespace {

std::string revised(const KernelSpec& spec, const std::string& device, std::uint64_t revision) {
  return work_name(spec, device) + ", revision " + std::to_string(revision);
}

std::string work_name(const KernelSpec& spec, const std::string& device, const std::string& variant) {
  return work_name(spec, device) + (variant.empty() ? "" : ", variant " + variant);
}

std::string work_name(const ShapeBucket& pipeline, const std::string& device) {
  return device + "|pipeline " + pipeline.shape;
}

}  // namespace

std::string work_name(const KernelSpec& spec, const std::string& device) { return device + "|" + canonical_text(spec); }

bool WorkHistory::begin_run(const KernelSpec& spec, const std::string& device, const std::string& variant) {
  const std::lock_guard lock(mutex_);
  return !ran_.insert(work_name(spec, device, variant)).second;
}

bool WorkHistory::begin_run(const ShapeBucket& pipeline, const std::string& device) {
  const std::lock_guard lock(mutex_);
  return !ran_.insert(work_name(pipeline, device)).second;
}

void WorkHistory::undo_run(const KernelSpec& spec, const std::string& device, const std::string& variant) {
  const std::lock_guard lock(mutex_);
  ran_.erase(work_name(spec, device, variant));
}

bool WorkHistory::is_ready(const KernelSpec& spec, const std::string& device) const {
  return is_ready(work_name(spec, device));
}

bool WorkHistory::is_ready(const ShapeBucket& pipeline, const std::string& device) const {
  return is_ready(work_name(pipeline, device));
}

bool WorkHistory::is_ready(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return ready_.contains(name) || ran_.contains(name);
}

void WorkHistory::set_ready(const KernelSpec& spec, const std::string& device) {
  const std::lock_guard lock(mutex_);
  ready_.insert(work_name(spec, device));
}

bool WorkHistory::failed_ahead(const KernelSpec& spec, const std::string& device) const {
  const std::lock_guard lock(mutex_);
  return failed_ahead_.contains(work_name(spec, device));
}

void WorkHistory::set_failed_ahead(const KernelSpec& spec, const std::string& device) {
  const std::lock_guard lock(mutex_);
  failed_ahead_.insert(work_name(spec, device));
}

std::optional<std::string> WorkHistory::fallback_variant(const KernelSpec& spec, const std::string& device,
                                                         std::uint64_t revision) const {
  const std::lock_guard lock(mutex_);
  if (variants_.empty()) return std::nullopt;
  const auto at = variants_.find(revised(spec, device, revision));
  return at == variants_.end() ? std::nullopt : std::optional(at->second);
}

void WorkHistory::set_fallback_variant(const KernelSpec& spec, const std::string& device, std::uint64_t revision,
                                       std::string variant) {
  const std::lock_guard lock(mutex_);
  variants_[revised(spec, device, revision)] = std::move(variant);
}

namespace {

constexpr std::size_t most_plans = 4096;

// The bytes of a spec up to the end of its last field: plain values without gaps between them, gaps only behind.
std::uint64_t bytes_hash(const void* spec, std::size_t bytes) noexcept { return XXH3_64bits(spec, bytes); }

template <class Spec>
constexpr std::size_t plain_bytes = 0;  // 0: the spec is not plain
template <>
constexpr std::size_t plain_bytes<Conv2dSpec> = offsetof(Conv2dSpec, accuracy) + sizeof(Conv2dSpec::accuracy);
template <>
constexpr std::size_t plain_bytes<GemmSpec> = offsetof(GemmSpec, activation) + sizeof(GemmSpec::activation);
template <>
constexpr std::size_t plain_bytes<Pool2dSpec> = offsetof(Pool2dSpec, kind) + sizeof(Pool2dSpec::kind);
template <>
constexpr std::size_t plain_bytes<AddSpec> = offsetof(AddSpec, activation) + sizeof(AddSpec::activation);
template <>
constexpr std::size_t plain_bytes<SoftmaxSpec> = offsetof(SoftmaxSpec, dtype) + sizeof(SoftmaxSpec::dtype);
template <>
constexpr std::size_t plain_bytes<ActivationSpec> = offsetof(ActivationSpec, activation) +
                                                    sizeof(ActivationSpec::activation);
constexpr std::size_t word_bytes = sizeof(std::int64_t);
static_assert(plain_bytes<Conv2dSpec> == 14 * word_bytes + 4 && plain_bytes<GemmSpec> == 3 * word_bytes + 3 &&
                  plain_bytes<Pool2dSpec> == 10 * word_bytes + 2 && plain_bytes<AddSpec> == 4 * word_bytes + 2 &&
                  plain_bytes<SoftmaxSpec> == 4 * word_bytes + 1 && plain_bytes<ActivationSpec> == 4 * word_bytes + 2,
              "a field was added or a gap has come in");

std::uint64_t word(const void* bytes, std::size_t at) noexcept {
  std::uint64_t value;
  std::memcpy(&value, static_cast<const char*>(bytes) + at, sizeof value);
  return value;
}

// As memcmp() == 0, in line: a call of it costs as much as the rest of a lookup. The last word may overlap the one
// before it.
template <std::size_t bytes>
bool same_bytes(const void* a, const void* b) noexcept {
  std::uint64_t differ = word(a, bytes - 8) ^ word(b, bytes - 8);
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) differ |= word(a, at) ^ word(b, at);
  return differ == 0;
}

// Calls `use` with the spec as its own type, without the table of std::visit.
template <std::size_t at = 0, class Use>
auto with_spec(const KernelSpec& spec, const Use& use) noexcept {
  if constexpr (at + 1 == std::variant_size_v<KernelSpec>) {
    return use(*std::get_if<at>(&spec));
  } else {
    return spec.index() == at ? use(*std::get_if<at>(&spec)) : with_spec<at + 1>(spec, use);
  }
}

// As ==. REQUIRES: the specs have a hash.
bool same(const KernelSpec& a, const KernelSpec& b) noexcept {
  if (a.index() != b.index()) return false;
  return with_spec(a, [&b]<class Spec>(const Spec& one) {
    static_assert(!std::is_constructible_v<LayerSpec, Spec> || plain_bytes<Spec> != 0, "its plans would not be kept");
    if constexpr (plain_bytes<Spec> != 0) return same_bytes<plain_bytes<Spec>>(&one, std::get_if<Spec>(&b));
    return false;
  });
}

bool same_programs(const KeyedPlan& a, const KeyedPlan& b) {
  const auto same_keys = [](const std::vector<ProgramKey>& these, const std::vector<ProgramKey>& those) {
    return std::ranges::equal(these, those, {}, &ProgramKey::digest, &ProgramKey::digest);
  };
  return a.plan->variant == b.plan->variant && same_keys(a.prepare, b.prepare) && same_keys(a.passes, b.passes);
}

std::uint64_t with_device(std::uint64_t hash, const Device& device) noexcept {
  return hash ^ (reinterpret_cast<std::uintptr_t>(&device) * 0x9e3779b97f4a7c15u);  // 2^64 ÷ the golden ratio
}

}  // namespace

std::optional<std::uint64_t> spec_hash(const KernelSpec& spec) noexcept {
  if (spec.valueless_by_exception()) return std::nullopt;
  return with_spec(spec, [&spec]<class Spec>(const Spec& one) -> std::optional<std::uint64_t> {
    if constexpr (plain_bytes<Spec> == 0) return std::nullopt;
    return bytes_hash(&one, plain_bytes<Spec>) ^ spec.index() * 0x9e3779b97f4a7c15u;
  });
}

// flatten: hashes of a constant length are a few instructions in line, and calls otherwise.
[[gnu::flatten]] const KeyedPlan* PlanMemo::find(const KernelSpec& spec, const Device& device,
                                                 std::uint64_t revision) const noexcept {
  const auto hash = spec_hash(spec);
  if (!hash) return nullptr;
  return table_.find(with_device(*hash, device), [&](const Entry& each) {
    return each.device == &device && each.revision.load(std::memory_order_acquire) == revision && same(each.spec, spec);
  });
}

std::shared_ptr<const KeyedPlan> PlanMemo::insert(const KernelSpec& spec, const Device& device, std::uint64_t revision,
                                                  std::shared_ptr<const KeyedPlan> plan) {
  const auto hash = spec_hash(spec);
  if (!hash) return plan;
  const std::uint64_t hash_of_both = with_device(*hash, device);
  const std::lock_guard lock(mutex_);
  const Entry* const known = table_.find(hash_of_both, [&](const Entry& each) {
    return each.device == &device && same(each.spec, spec) && same_programs(each, *plan);
  });
  if (known != nullptr) {
    if (known->revision.load(std::memory_order_relaxed) < revision) {
      known->revision.store(revision, std::memory_order_release);
    }
    return known->shared_from_this();
  }
  if (entries_.size() >= most_plans || find(spec, device, revision) != nullptr) return plan;
  entries_.push_back(std::make_shared<const Entry>(*plan, device, revision, hash_of_both, spec));
  if (auto cells = table_.insert(*entries_.back())) outgrown_.push_back(std::move(cells));
  return entries_.back();
}

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
    if (const auto* known = memo_.find(request.spec, device, revision)) {
      return Plan{generator, dialect, known->shared_from_this()};
    }
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
    return unsupported("device " + device.id + ": no loaded generator writes a language of the device (" + read + ")");
  }
  const auto reads = std::ranges::find(device.dialects, kernel->dialect) != device.dialects.end();
  const bool spirv = kernel->dialect == Dialect::code_object && kernel->path.ends_with(".spv");
  const std::string dialect(spirv ? "SPIR-V" : to_string(kernel->dialect));
  if (reads)
    return unsupported("device " + device.id + " cannot run kernel " + kernel->path +
                       ": no loaded plugin prepares kernels in " + dialect + ". Load one such as dynamic_shaders");
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
