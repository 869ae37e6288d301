#include "dynamic_shaders/generator.hpp"

#include <kiln/clock.hpp>
#include <kiln/kernel_parameters.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <random>

#include "dynamic_shaders/families/simple_layers.hpp"
#include "dynamic_shaders/space/variant_space.hpp"
#include "dynamic_shaders/tuner/rounds.hpp"
#include "dynamic_shaders/tuner/tuner.hpp"
#include "dynamic_shaders/variants.hpp"

namespace kiln::dynamic_shaders {

std::size_t DriftWatch::Hash::operator()(const Key& key) const noexcept {
  std::size_t hash = std::hash<std::string>{}(key.device_id);
  const auto mix = [&](std::initializer_list<std::int64_t> extents) {
    for (const std::int64_t each : extents) {
      hash = (hash ^ static_cast<std::size_t>(each)) * 0x9e3779b97f4a7c15u;  // 2^64 ÷ the golden ratio
      hash ^= hash >> 32;
    }
  };
  if (const auto* s = std::get_if<Conv2dSpec>(&key.spec)) {
    mix({s->n, s->c, s->h, s->w, s->k, s->r, s->s, s->stride_y, s->pad_y, s->groups});
  } else if (const auto* product = std::get_if<GemmSpec>(&key.spec)) {
    mix({product->m, product->n, product->k});
  } else if (const auto* text = std::get_if<std::string>(&key.spec)) {
    mix({static_cast<std::int64_t>(std::hash<std::string>{}(*text))});
  }
  return hash;
}

bool DriftWatch::drifts(const std::string& device_id, const Spec& spec, std::uint64_t revision,
                        std::string_view variant, std::uint64_t device_ns, std::uint64_t now_ns,
                        const std::function<Winner()>& find) {
  const std::lock_guard lock(mutex_);
  if (revision != revision_ || watched_.size() >= most_specs) watched_.clear();
  revision_ = revision;
  const auto [at, is_new] = watched_.try_emplace({device_id, spec});
  Watched& watched = at->second;
  if (is_new) watched.winner = find();
  const Winner& winner = watched.winner;
  if (winner.device_ns == 0 || winner.variant != variant) return false;
  const bool slow = static_cast<double>(device_ns) > slow_factor * static_cast<double>(winner.device_ns);
  watched.slow = slow ? watched.slow + 1 : 0;
  if (watched.slow == 1) watched.slow_since_ns = now_ns;
  if (watched.told || watched.slow < slow_runs || now_ns - watched.slow_since_ns < span_ns_) return false;
  watched.told = true;
  return true;
}

namespace {

// code_object: users' kernels alone, which are compiled already.
constexpr Dialect written[] = {Dialect::glsl, Dialect::opencl_c, Dialect::code_object};
Status check_dialect(Dialect dialect, const KernelSpec& spec) {
  const bool compiled = dialect == Dialect::code_object && !std::holds_alternative<UserKernelSpec>(spec);
  if (!compiled && std::ranges::find(written, dialect) != std::end(written)) return {};
  return unsupported("dynamic_shaders: dialect is " + std::string(to_string(dialect)) + ", expected glsl or opencl_c");
}

// Of those written here, in the order in which the runtime asks. invalid: none.
Dialect dialect_read_by(const DeviceInfo& device) {
  const auto read = std::ranges::find_first_of(device.dialects, written);
  return read == device.dialects.end() ? Dialect::invalid : *read;
}

constexpr std::uint32_t audit_runs = 9;
constexpr double audit_slack = 1.25;  // a machine has its moods: what is slower than that, and clearly so, is stale
constexpr std::chrono::nanoseconds audit_limit = std::chrono::seconds(20);

std::string in_ms(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(ns) / 1e6);
  return text;
}

}  // namespace

Generator::Generator(const std::filesystem::path& cache_directory, bool read_only, TraceSink* trace,
                     std::chrono::nanoseconds drift)
    : database_(cache_directory.empty() ? std::filesystem::path() : cache_directory / "tuning.tsv", read_only),
      trace_(trace),
      drift_watch_(drift) {}

Result<Choice> Generator::choose(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) {
  auto choice = dynamic_shaders::choose(spec, device, dialect, database_);
  if (!choice || trace_ == nullptr || choice->by.empty()) return choice;
  const std::string shape = canonical_text(spec);
  std::vector<TraceFigure> figures = {{"variant", choice->plan.variant}, {"by", choice->by}, {"spec", shape}};
  for (const auto& [name, value] : choice->figures) figures.push_back({name, value});
  trace_->add_event({TraceArea::tuner, "choose variant", now_ns(), std::nullopt, figures});
  return choice;
}

std::span<const Dialect> Generator::dialects() const noexcept { return written; }

Result<KernelPlan> Generator::generate(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) noexcept try {
  if (Status status = check_dialect(dialect, spec); !status.ok()) return status;
  auto choice = choose(spec, device, dialect);
  if (!choice) return std::move(choice).error();
  return std::move(choice->plan);
} catch (...) {
  return caught();
}

Result<KernelPlan> Generator::generate_variant(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                               std::string_view variant) noexcept try {
  if (Status status = check_dialect(dialect, spec); !status.ok()) return status;
  return plan_of(spec, device, dialect, variant);
} catch (...) {
  return caught();
}

std::vector<KernelPlan> Generator::generic_plans(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) {
  std::vector<KernelPlan> plans;
  for (std::string& variant : stand_in_variants(spec, device, dialect)) {
    auto plan = generate_variant(spec, device, dialect, variant += any_shape);
    if (plan) plans.push_back(std::move(*plan));
  }
  return plans;
}

// What was measured of the spec's variants with the sources that they have today, and judged as `basis` says.
std::vector<TuningRecord> Generator::fresh_records(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                                   const std::string& basis) {
  std::vector<TuningRecord> fresh;
  for (TuningRecord& record : database_.of(device_digest(device), record_spec(spec))) {
    if (record.verdict == Verdict::foreign) continue;  // its times are another machine's
    if (record.basis == basis && is_of_today(record, spec, device, dialect)) fresh.push_back(std::move(record));
  }
  return fresh;
}

Result<TuneOutcome> Generator::tune(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                    VariantBench& bench, const TuneOptions& options) noexcept try {
  if (Status status = check_dialect(dialect, spec); !status.ok()) return status;
  if (Status status = validate(spec); !status.ok()) return status;
  if (database_.read_only())
    return unavailable("cannot tune: the tuning database is not written because cache.read_only is true");
  TuneTask task;
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) {
    task.candidates = conv_space(*conv, device);
    task.baseline = "direct/plain";
  } else if (const auto* gemm = std::get_if<GemmSpec>(&spec)) {
    task.candidates = gemm_space(*gemm, device);
    task.baseline = "gemm/plain";
  } else if (const auto* kernel = std::get_if<UserKernelSpec>(&spec);
             kernel != nullptr && !kernel->parameters.empty()) {
    for (std::string& variant : variants_of(*kernel)) task.candidates.push_back({std::move(variant)});
    task.baseline = task.candidates.front().variant;
    // No model says which is the better: where time does not reach for all, what is met is spread over the space.
    task.ranked = false;
    std::shuffle(task.candidates.begin(), task.candidates.end(), std::mt19937(1));
  } else {
    return unsupported(std::string(operation(spec)) + ": nothing to tune, dynamic_shaders has only one variant");
  }
  refresh();
  if (Status status = database_.usable(); !status.ok()) return status;  // sooner than when all is measured
  if (options.audit) return audit(spec, device, dialect, bench);
  const auto serving = choose(spec, device, dialect);
  task.incumbent = serving ? serving->plan.variant : task.baseline;
  task.won = serving && serving->by == by_tuning;
  task.known = fresh_records(spec, device, dialect, options.basis);
  task.trace = trace_;
  task.form.device = device_digest(device);
  task.form.spec = record_spec(spec);
  task.form.basis = options.basis;
  Status kept;
  task.keep = [&](std::vector<TuningRecord> records) {
    for (TuningRecord& record : records) {
      if (!record.source.empty())
        continue;  // what failed told no digest; its record ends with its sources all the same
      if (const auto plan = plan_of(spec, device, dialect, record.variant))
        record.source = source_digest(*plan, device);
    }
    if (Status status = database_.put(records); !status.ok() && kept.ok()) kept = std::move(status);
  };
  auto outcome = dynamic_shaders::tune(task, bench, options);
  revision_.fetch_add(1, std::memory_order_acq_rel);
  if (outcome && !kept.ok()) return kept;
  return outcome;
} catch (...) {
  return caught();
}

Result<TuneOutcome> Generator::audit(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                     VariantBench& bench) {
  auto winner = database_.winner(device_digest(device), record_spec(spec));
  if (!winner) {
    if (auto foreign = database_.foreign(device_digest(device), record_spec(spec));
        foreign && !foreign->wall_ns.empty())
      return try_foreign(spec, device, dialect, bench, std::move(*foreign));
  }
  if (!winner || winner->wall_ns.empty()) return not_found(canonical_text(spec) + ": no winner is stored");
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
    outcome.stale = contradiction(spec, device, dialect, *winner, samples->agreement, bench);
    const Interval now = interval_of(samples->wall_ns);
    outcome.wall_ns = now.median;
    if (!samples->device_ns.empty()) outcome.device_ns = interval_of(samples->device_ns).median;
    const bool slower = static_cast<double>(now.median) > audit_slack * static_cast<double>(then.median);
    if (outcome.stale.empty() && slower && !now.overlaps(then))
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

Result<TuneOutcome> Generator::try_foreign(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                           VariantBench& bench, TuningRecord record) {
  TuneOutcome outcome;
  outcome.variant = record.variant;
  outcome.recorded_wall_ns = interval_of(record.wall_ns).median;
  record.verdict = Verdict::measured;  // unless it holds
  const auto plan = generate_variant(spec, device, dialect, record.variant);
  if (!plan) {
    outcome.stale = "cannot be made here: " + plan.error().message;
  } else if (source_digest(*plan, device) != record.source) {
    outcome.stale = "its sources are another version's";
  } else if (auto samples = bench.measure(record.variant, audit_runs, audit_limit)) {
    record.wall_ns = samples->wall_ns;
    record.device_ns = samples->device_ns;
    record.max_rel_error = samples->max_rel_error;
    record.error_bound = samples->error_bound;
    const Interval now = interval_of(samples->wall_ns);
    outcome.wall_ns = now.median;
    if (!samples->device_ns.empty()) outcome.device_ns = interval_of(samples->device_ns).median;
    const auto used = choose(spec, device, dialect);
    if (used && used->plan.variant != record.variant) {
      const auto beside = bench.measure(used->plan.variant, audit_runs, audit_limit);
      if (!beside && !tells_of_variant(beside.error().code)) return beside.error();
      if (beside) {
        const Interval other = interval_of(beside->wall_ns);
        outcome.incumbent = used->plan.variant;
        outcome.incumbent_wall_ns = other.median;
        if (beside->agreement != samples->agreement) {
          record.verdict = Verdict::outvoted;
          outcome.stale = "its output differs from that of " + used->plan.variant;
        } else if (now.median > other.median && !now.overlaps(other)) {
          outcome.stale = "takes " + in_ms(now.median) + ", " + used->plan.variant + " " + in_ms(other.median);
        }
      }
    }
    if (outcome.stale.empty()) record.verdict = Verdict::winner;
  } else if (tells_of_variant(samples.error().code)) {
    record.verdict = Verdict::rejected;
    outcome.stale = samples.error().text();
  } else {
    return std::move(samples).error();
  }
  if (record.is_refused()) record.why = outcome.stale;
  record.when = static_cast<std::uint64_t>(std::time(nullptr));
  Status status = database_.put({std::move(record)});
  revision_.fetch_add(1, std::memory_order_acq_rel);
  if (!status.ok()) return status;
  return outcome;
}

// Without a reference: two other variants that agreed with the winner when it was tuned run again. Empty: they do not
// both differ from it.
std::string Generator::contradiction(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                     const TuningRecord& winner, std::uint32_t group, VariantBench& bench) {
  constexpr std::size_t others = 2;
  if (group == 0) return {};
  std::size_t differing = 0;
  std::uint32_t their_group = 0;
  std::size_t asked = 0;
  for (const TuningRecord& record : fresh_records(spec, device, dialect, winner.basis)) {
    if (record.verdict != Verdict::measured || asked == others) continue;
    ++asked;
    const auto samples = bench.measure(record.variant, 1, audit_limit);
    if (!samples || samples->agreement == group) continue;
    if (their_group == 0) their_group = samples->agreement;
    if (samples->agreement == their_group) ++differing;
  }
  if (differing < others) return {};
  return "its output differs from that of two other variants, which agreed with it when it was tuned";
}

std::vector<KernelSpec> Generator::tuned(const DeviceInfo& device) {
  std::vector<KernelSpec> specs;
  for (const TuningRecord& winner : database_.winners(device_digest(device))) {
    if (const auto conv = conv_of(winner.spec)) specs.emplace_back(*conv);
    if (const auto gemm = gemm_of(winner.spec)) specs.emplace_back(*gemm);
  }
  return specs;
}

TuningState Generator::state(const KernelSpec& spec, const DeviceInfo& device) noexcept try {
  const auto* kernel = std::get_if<UserKernelSpec>(&spec);
  if (!only_variant(spec).empty()) return TuningState::fixed;
  refresh();
  const auto winner = database_.winner(device_digest(device), record_spec(spec));
  const Dialect its = kernel != nullptr ? kernel->dialect : dialect_read_by(device);
  if (!winner || !is_of_today(*winner, spec, device, its)) return TuningState::untuned;
  return winner->stale() ? TuningState::stale : TuningState::tuned;
} catch (...) {
  return TuningState::invalid;
}

void Generator::refresh() {
  if (database_.refresh()) revision_.fetch_add(1, std::memory_order_acq_rel);
}

Result<MergedTuning> Generator::merge(std::string_view text) noexcept try {
  auto merged = database_.merge(text);
  revision_.fetch_add(1, std::memory_order_acq_rel);
  return merged;
} catch (...) {
  return caught();
}

std::string Generator::winners_text(const DeviceInfo& device) noexcept {
  refresh();
  return database_.winners_text(device_digest(device));
}

Result<MergedTuning> Generator::merge_foreign(std::string_view text, const DeviceInfo& device) noexcept try {
  refresh();
  return database_.merge_foreign(text, device_digest(device), [&](const TuningRecord& record) {
    const auto conv = conv_of(record.spec);
    const auto gemm = gemm_of(record.spec);
    if (!conv && !gemm) return true;  // of a user's kernel, which only its job can tell
    return is_of_today(record, conv ? KernelSpec(*conv) : KernelSpec(*gemm), device, dialect_read_by(device));
  });
} catch (...) {
  return caught();
}

std::vector<KernelSpec> Generator::foreign(const DeviceInfo& device) {
  std::vector<KernelSpec> specs;
  for (const TuningRecord& record : database_.all_foreign(device_digest(device))) {
    if (const auto conv = conv_of(record.spec)) specs.emplace_back(*conv);
    if (const auto gemm = gemm_of(record.spec)) specs.emplace_back(*gemm);
  }
  return specs;
}

bool Generator::is_foreign(const KernelSpec& spec, const DeviceInfo& device) noexcept {
  refresh();
  const std::string machine = device_digest(device), shape = record_spec(spec);
  return !database_.winner(machine, shape) && database_.foreign(machine, shape);
}

Result<std::size_t> Generator::accept_foreign(const DeviceInfo& device) noexcept try {
  std::vector<TuningRecord> records = database_.all_foreign(device_digest(device));
  if (records.empty()) return std::size_t{0};
  for (TuningRecord& record : records) record.verdict = Verdict::winner;
  if (Status status = database_.put(records); !status.ok()) return status;
  revision_.fetch_add(1, std::memory_order_acq_rel);
  return records.size();
} catch (...) {
  return caught();
}

void Generator::record(const KernelSpec& spec, const DeviceInfo& device, std::string_view variant,
                       const Measurement& measurement) noexcept try {
  // A batch's time is that of all its jobs; what ran beside other work was slowed by that.
  const bool tells = !measurement.first_run && !measurement.contended && measurement.batch == 1;
  if (!tells || measurement.device_ns == 0 || !database_.has_winners()) return;
  std::optional<DriftWatch::Spec> watched;
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) watched = *conv;
  if (const auto* gemm = std::get_if<GemmSpec>(&spec)) watched = *gemm;
  const auto* kernel = std::get_if<UserKernelSpec>(&spec);
  if (kernel != nullptr && !kernel->parameters.empty()) watched = record_spec(spec);
  if (!watched) return;
  const auto find = [&] { return database_.winner(device_digest(device), record_spec(spec)); };
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
} catch (...) {
  // Out of memory: it is not looked at.
}

}  // namespace kiln::dynamic_shaders
