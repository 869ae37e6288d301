#include "dynamic_shaders/generator.hpp"

#include <kiln/clock.hpp>
#include <kiln/kernel_parameters.hpp>
#include <kiln/program.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>

#include "dynamic_shaders/families/depthwise/depthwise.hpp"
#include "dynamic_shaders/families/direct_blocked.hpp"
#include "dynamic_shaders/families/direct_plain.hpp"
#include "dynamic_shaders/families/product/gemm_blocked.hpp"
#include "dynamic_shaders/families/product/gemm_plain.hpp"
#include "dynamic_shaders/families/product/implicit.hpp"
#include "dynamic_shaders/families/user_kernel.hpp"
#include "dynamic_shaders/families/winograd/winograd.hpp"
#include "dynamic_shaders/limits.hpp"
#include "dynamic_shaders/space/conv_space.hpp"
#include "dynamic_shaders/space/gemm_space.hpp"
#include "dynamic_shaders/space/stand_in.hpp"
#include "dynamic_shaders/tuner/nearest.hpp"
#include "dynamic_shaders/tuner/samples.hpp"
#include "dynamic_shaders/tuner/tuner.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr Dialect written[] = {Dialect::glsl, Dialect::opencl_c};
constexpr std::string_view blocked_family = "direct/blocked:";
constexpr std::string_view winograd_family = "winograd/f";
constexpr std::string_view any_shape = "@any";  // behind the id of a variant whose programs serve any shape

Status check_dialect(Dialect dialect) {
  if (std::ranges::find(written, dialect) != std::end(written)) return {};
  return unsupported("dynamic_shaders: asked for dialect " + std::string(to_string(dialect)) +
                     ", writes glsl and opencl_c");
}

Status unknown_variant(std::string_view op, std::string_view variant) {
  return not_found(std::string(op) + ": there is no variant '" + std::string(variant) + "'");
}

Result<std::shared_ptr<const Constant>> constant_of(const NumberTable& table) {
  auto tensor = HostTensor::create(DType::i32, {static_cast<std::int64_t>(table.size())});
  if (!tensor) return std::move(tensor).error();
  std::ranges::copy(table, (*tensor)->as<std::int32_t>().begin());
  return Constant::create(std::move(*tensor));
}

using MakePlan = std::function<Result<KernelPlan>(std::string_view variant, const Form& form)>;

// The plan of a variant for one shape or, where its id ends so, the plan whose programs serve any.
Result<KernelPlan> in_its_form(std::string_view variant, const DeviceInfo& device, Dialect dialect,
                               const MakePlan& make) {
  if (!variant.ends_with(any_shape)) return make(variant, dialect);
  variant.remove_suffix(any_shape.size());
  std::vector<NumberTable> tables;
  auto plan = make(variant, Form(dialect, &tables));
  if (!plan) return plan;
  plan->variant += any_shape;
  for (const NumberTable& table : tables) {
    auto constant = constant_of(table);
    if (!constant) return std::move(constant).error();
    plan->constants.push_back(std::move(*constant));
  }
  if (Status status = check_bindings(*plan, device); !status.ok()) return status;
  return plan;
}

Result<KernelPlan> conv_in_form(const Conv2dSpec& spec, const DeviceInfo& device, std::string_view variant,
                                const Form& form) {
  if (variant == "direct/plain") return direct_plain(spec, device, form);
  if (variant.starts_with(blocked_family)) {
    const auto blocking = blocking_of(variant.substr(blocked_family.size()));
    if (blocking) return direct_blocked(spec, *blocking, device, form);
  }
  if (const auto tile = implicit_of(variant)) return implicit_product(spec, *tile, device, form);
  if (const auto choice = depthwise_of(variant)) return depthwise(spec, *choice, device, form);
  if (variant.starts_with(winograd_family) && variant.size() > winograd_family.size() + 2) {
    const char m = variant[winograd_family.size()];
    const auto blocking = blocking_of(variant.substr(winograd_family.size() + 2));
    if (blocking && (m == '2' || m == '4')) return winograd(spec, m - '0', *blocking, device, form);
  }
  return unknown_variant("conv2d", variant);
}

Result<KernelPlan> conv_variant(const Conv2dSpec& spec, const DeviceInfo& device, Dialect dialect,
                                std::string_view variant) {
  return in_its_form(variant, device, dialect,
                     [&](std::string_view id, const Form& form) { return conv_in_form(spec, device, id, form); });
}

Result<KernelPlan> gemm_plan(const GemmSpec& spec, const DeviceInfo& device, Dialect dialect,
                             std::string_view variant) {
  return in_its_form(variant, device, dialect, [&](std::string_view id, const Form& form) -> Result<KernelPlan> {
    if (id == "gemm/plain") return gemm_plain(spec, device, form);
    if (const auto blocking = gemm_blocking_of(id)) return gemm_blocked(spec, *blocking, device, form);
    return unknown_variant("gemm", id);
  });
}

constexpr double farthest = 4;        // doublings to a shape whose winner may serve
constexpr double model_slack = 1.25;  // what the model may see against it
constexpr std::uint32_t audit_runs = 9;
constexpr double audit_slack = 1.25;  // a machine has its moods: what is slower than that, and clearly so, is stale
constexpr std::chrono::nanoseconds audit_limit = std::chrono::seconds(20);

double median_ms(const std::vector<std::uint64_t>& ns) {
  return ns.empty() ? 0 : static_cast<double>(interval_of(ns).median) / 1e6;
}

std::string in_ms(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(ns) / 1e6);
  return text;
}

std::string source_digest(const KernelPlan& plan, const DeviceInfo& device) {
  std::string digest;
  for (const Pass& pass : plan.passes) digest += key_of(pass.source, device, {}).digest.hex().substr(0, 16);
  return digest;
}

}  // namespace

Generator::Generator(const std::filesystem::path& cache_directory, bool read_only, TraceSink* trace,
                     std::chrono::nanoseconds drift)
    : database_(cache_directory.empty() ? std::filesystem::path() : cache_directory / "tuning.tsv", read_only),
      trace_(trace),
      drift_watch_(drift) {}

void Generator::tell(std::string_view by, const KernelSpec& spec, std::string_view variant,
                     std::initializer_list<TraceFigure> figures) const {
  if (trace_ == nullptr) return;
  const std::string shape = canonical_text(spec);
  std::vector<TraceFigure> all = {{"variant", variant}, {"by", by}, {"spec", shape}};
  all.insert(all.end(), figures.begin(), figures.end());
  trace_->add_event({TraceArea::tuner, "choose variant", now_ns(), std::nullopt, all});
}

std::span<const Dialect> Generator::dialects() const noexcept { return written; }

Result<KernelPlan> Generator::generate(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) noexcept {
  if (Status status = check_dialect(dialect); !status.ok()) return status;
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) {
    auto plan = conv_variant(*conv, device, dialect, choose(*conv, device, dialect));
    // A grid or a buffer that the blocked form would need and the device has not: the plain one asks for the least.
    return plan ? std::move(plan) : direct_plain(*conv, device, dialect);
  }
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) {
    auto plan = gemm_plan(*gemm, device, dialect, choose(*gemm, device, dialect));
    return plan ? std::move(plan) : gemm_plain(*gemm, device, dialect);
  }
  if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) {
    return user_kernel(*kernel, choose(*kernel, device), device);
  }
  return invalid_argument("dynamic_shaders: the spec holds nothing");
}

Result<KernelPlan> Generator::generate_variant(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                               std::string_view variant) noexcept {
  if (Status status = check_dialect(dialect); !status.ok()) return status;
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) return conv_variant(*conv, device, dialect, variant);
  if (const auto* kernel = std::get_if<UserKernelSpec>(&spec)) return user_kernel(*kernel, variant, device);
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) return gemm_plan(*gemm, device, dialect, variant);
  return invalid_argument("dynamic_shaders: the spec holds nothing");
}

std::vector<KernelPlan> Generator::stand_ins(const KernelSpec& spec, const DeviceInfo& device,
                                             Dialect dialect) noexcept {
  std::vector<KernelPlan> plans;
  for (std::string& variant : stand_in_variants(spec, device, dialect)) {
    auto plan = generate_variant(spec, device, dialect, variant += any_shape);
    if (plan) plans.push_back(std::move(*plan));
  }
  return plans;
}

std::string Generator::choose(const UserKernelSpec& kernel, const DeviceInfo& device) {
  if (kernel.parameters.empty()) return "user";
  for (const auto& parameter : kernel.parameters) {
    if (parameter.texts.empty()) return "user";  // refused in words by whoever makes the plan
  }
  const auto winner = database_.winner(device_digest(device), canonical_text(kernel));
  if (winner && settled(kernel, winner->variant)) {
    tell("tuned", kernel, winner->variant, {{"tuned_wall_ms", median_ms(winner->wall_ns)}});
    return winner->variant;
  }
  std::string choice = variants_of(kernel).front();
  tell("the first of its parameters", kernel, choice, {});
  return choice;
}

std::string Generator::choose(const GemmSpec& spec, const DeviceInfo& device, Dialect dialect) {
  if (const auto winner = database_.winner(device_digest(device), canonical_text(spec))) {
    if (gemm_plan(spec, device, dialect, winner->variant)) {
      tell("tuned", spec, winner->variant, {{"tuned_wall_ms", median_ms(winner->wall_ns)}});
      return winner->variant;
    }
  }
  std::string choice = default_variant(spec, device);
  tell("cost model", spec, choice, {});
  return choice;
}

std::string Generator::choose(const Conv2dSpec& spec, const DeviceInfo& device, Dialect dialect) {
  const std::string machine = device_digest(device);
  if (const auto winner = database_.winner(machine, canonical_text(spec))) {
    if (conv_variant(spec, device, dialect, winner->variant)) {
      tell("tuned", spec, winner->variant, {{"tuned_wall_ms", median_ms(winner->wall_ns)}});
      return winner->variant;
    }
  }
  std::string choice = default_variant(spec, device);
  double least = farthest;
  double predicted_now = predicted_run(spec, device, choice).value_or(0);
  const double predicted_default = predicted_now;
  const double allowed = model_slack * predicted_default;
  for (const TuningRecord& winner : database_.winners(machine)) {
    const auto shape = conv_of(winner.spec);
    const auto apart = shape ? distance(spec, *shape) : std::nullopt;
    if (!apart || *apart >= least) continue;
    const auto predicted = predicted_run(spec, device, winner.variant);
    if (!predicted || *predicted > allowed) continue;
    least = *apart;
    choice = winner.variant;
    predicted_now = *predicted;
  }
  if (least < farthest) {
    tell("the nearest tuned shape", spec, choice,
         {{"doublings_apart", least},
          {"model_cost", predicted_now},
          {"model_cost_of_its_own_choice", predicted_default}});
  } else {
    tell("cost model", spec, choice, {{"model_cost", predicted_now}});
  }
  return choice;
}

// What was measured of the spec's variants with the sources that they have today.
std::vector<TuningRecord> Generator::fresh_records(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) {
  std::vector<TuningRecord> fresh;
  for (TuningRecord& record : database_.of(device_digest(device), canonical_text(spec))) {
    const auto plan = generate_variant(spec, device, dialect, record.variant);
    if (!plan) continue;
    if (record.verdict != Verdict::rejected && record.source != source_digest(*plan, device)) continue;
    fresh.push_back(std::move(record));
  }
  return fresh;
}

Result<TuneOutcome> Generator::tune(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                    VariantBench& bench, const TuneOptions& options) noexcept {
  if (Status status = check_dialect(dialect); !status.ok()) return status;
  if (Status status = validate(spec); !status.ok()) return status;
  if (database_.read_only())
    return unavailable("the tuning database is only read (cache.read_only): nothing is measured");
  TuneTask task;
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) {
    if (options.audit) return audit(spec, device, dialect, bench);
    task.candidates = conv_space(*conv, device);
    task.incumbent = choose(*conv, device, dialect);
    task.baseline = "direct/plain";
  } else if (const auto* gemm = std::get_if<GemmSpec>(&spec)) {
    if (options.audit) return audit(spec, device, dialect, bench);
    task.candidates = gemm_space(*gemm, device);
    task.incumbent = choose(*gemm, device, dialect);
    task.baseline = "gemm/plain";
  } else if (const auto* kernel = std::get_if<UserKernelSpec>(&spec);
             kernel != nullptr && !kernel->parameters.empty()) {
    if (options.audit) return unsupported("kernel " + kernel->path + ": its winner is audited by tuning its job again");
    for (std::string& variant : variants_of(*kernel)) task.candidates.push_back({std::move(variant)});
    task.incumbent = choose(*kernel, device);
    task.baseline = task.candidates.front().variant;
    // No model says which is the better: where time does not reach for all, what is met is spread over the space.
    task.ranked = false;
    std::shuffle(task.candidates.begin(), task.candidates.end(), std::mt19937(1));
  } else {
    return unsupported(std::string(operation(spec)) + ": dynamic_shaders writes one variant of it");
  }
  refresh();
  task.known = fresh_records(spec, device, dialect);
  task.trace = trace_;
  task.form.device = device_digest(device);
  task.form.spec = canonical_text(spec);
  Status kept;
  task.keep = [&](const TuningRecord& record) {
    if (Status status = database_.put({record}); !status.ok() && kept.ok()) kept = std::move(status);
  };
  auto outcome = dynamic_shaders::tune(task, bench, options);
  revision_.fetch_add(1, std::memory_order_acq_rel);
  if (outcome && !kept.ok()) return kept;
  return outcome;
}

Result<TuneOutcome> Generator::audit(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                     VariantBench& bench) {
  auto winner = database_.winner(device_digest(device), canonical_text(spec));
  if (!winner || winner->wall_ns.empty()) return not_found(canonical_text(spec) + ": nothing was tuned for it");
  const Interval then = interval_of(winner->wall_ns);
  TuneOutcome outcome;
  outcome.variant = winner->variant;
  outcome.recorded_wall_ns = then.median;
  const auto plan = generate_variant(spec, device, dialect, winner->variant);
  if (!plan) {
    outcome.stale = "can no longer be made: " + plan.error().message;
  } else if (source_digest(*plan, device) != winner->source) {
    outcome.stale = "its sources have changed";
  } else if (auto samples = bench.measure(winner->variant, audit_runs, audit_limit)) {
    const Interval now = interval_of(samples->wall_ns);
    outcome.wall_ns = now.median;
    if (!samples->device_ns.empty()) outcome.device_ns = interval_of(samples->device_ns).median;
    const bool slower = static_cast<double>(now.median) > audit_slack * static_cast<double>(then.median);
    if (slower && !now.overlaps(then))
      outcome.stale = "takes " + in_ms(now.median) + ", when tuned " + in_ms(then.median);
  } else if (tells_of_variant(samples.error().code)) {
    outcome.stale = "measured again: " + samples.error().text();
  } else {
    return std::move(samples).error();
  }
  if (outcome.stale != winner->why) {
    winner->why = outcome.stale;
    if (Status status = database_.put({*winner}); !status.ok()) return status;
  }
  return outcome;
}

std::vector<KernelSpec> Generator::tuned(const DeviceInfo& device) noexcept {
  std::vector<KernelSpec> specs;
  for (const TuningRecord& winner : database_.winners(device_digest(device))) {
    if (const auto conv = conv_of(winner.spec)) specs.emplace_back(*conv);
    if (const auto gemm = gemm_of(winner.spec)) specs.emplace_back(*gemm);
  }
  return specs;
}

TuningState Generator::state(const KernelSpec& spec, const DeviceInfo& device) noexcept {
  const auto* kernel = std::get_if<UserKernelSpec>(&spec);
  if (kernel != nullptr && kernel->parameters.empty()) return TuningState::fixed;
  refresh();
  const auto winner = database_.winner(device_digest(device), canonical_text(spec));
  if (!winner) return TuningState::untuned;
  return winner->stale() ? TuningState::stale : TuningState::tuned;
}

void Generator::refresh() {
  if (database_.refresh()) revision_.fetch_add(1, std::memory_order_acq_rel);
}

Result<MergedTuning> Generator::merge(std::string_view text) noexcept {
  auto merged = database_.merge(text);
  revision_.fetch_add(1, std::memory_order_acq_rel);
  return merged;
}

void Generator::record(const KernelSpec& spec, const DeviceInfo& device, std::string_view variant,
                       const Measurement& measurement) noexcept {
  // A batch's time is that of all its jobs; what ran beside other work was slowed by that.
  const bool tells = !measurement.first_run && !measurement.contended && measurement.batch == 1;
  if (!tells || measurement.device_ns == 0 || !database_.has_winners()) return;
  std::optional<DriftWatch::Spec> watched;
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) watched = *conv;
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) watched = *gemm;
  if (!watched) return;
  const auto find = [&] { return database_.winner(device_digest(device), canonical_text(spec)); };
  const auto timed = [&] {
    const auto winner = find();
    if (!winner || winner->device_ns.empty()) return DriftWatch::Winner{};
    return DriftWatch::Winner{winner->variant, interval_of(winner->device_ns).median};
  };
  if (!drift_watch_.drifts(device.id, *watched, revision(), variant, measurement.device_ns, now_ns(), timed)) return;
  auto winner = find();
  if (!winner || winner->variant != variant) return;
  winner->why = "runs in a row took " + std::to_string(measurement.device_ns) + " ns and the like, when tuned " +
                std::to_string(interval_of(winner->device_ns).median);
  (void)database_.put({*winner});  // a folder that cannot be written costs nobody a result
}

}  // namespace kiln::dynamic_shaders
