#include "runtime/autotuner.hpp"

#include "config/sources_of.hpp"
#include "runtime/bench_process.hpp"

#include <kiln/plugin_loader.hpp>

#include <filesystem>
#include <system_error>
#include <utility>

namespace kiln {

Autotuner::Autotuner(const Config& config, Log log, DeviceTable& devices, Planner& planner, Programs& programs)
    : config_(config), log_(log), devices_(devices), planner_(planner), programs_(programs) {}

Result<TuneOutcome> Autotuner::tune(const KernelSpec& spec, const std::string& device, VariantBench& bench,
                                    const TuneOptions& options) {
  const StopScope stop(options.stop);
  const BackgroundTuning::Job job(background_.get());  // two that measure would disturb one another
  const CacheConfig& cache = config_.cache;
  const auto turn = take_asked_turn(cache.read_only ? std::filesystem::path() : cache.directory, options.stop, log_);
  if (!turn) return turn.error();
  TuneOptions how = options;
  if (!how.publish) {
    how.publish = [&](const std::string& variant) {
      return publish(spec, options.name, device, variant, building_threads());
    };
  }
  return measure(spec, device, bench, how);
}

Result<TuneOutcome> Autotuner::measure(const KernelSpec& spec, const std::string& id, VariantBench& bench,
                                       const TuneOptions& options) {
  if (Status status = validate(spec); !status.ok()) return status;
  auto device = devices_.open(id);
  if (!device) return std::move(device).error();
  if (Status status = planner_.check_reads((*device)->info(), spec); !status.ok()) return status;
  const auto [generator, dialect] = planner_.generator_for((*device)->info(), &spec);
  auto* const tunable = dynamic_cast<TunableGenerator*>(generator);
  if (tunable == nullptr) return unsupported(std::string(operation(spec)) + ": its generator has no variants to tune");
  return tunable->tune(spec, (*device)->info(), dialect, bench, options);
}

Status Autotuner::publish(const KernelSpec& spec, const std::string& name, const std::string& id,
                          const std::string& variant, unsigned threads) {
  auto device = devices_.open(id);
  if (!device) return std::move(device).error();
  RunRequest winner;
  winner.name = name;
  winner.spec = spec;
  return programs_.publish(winner, variant, **device, threads);
}

Status Autotuner::start_background(std::function<bool()> busy) {
  if (planner_.tuning() == nullptr) return unsupported("no generator that is loaded stores measurements");
  if (config_.cache.read_only || config_.cache.directory.empty()) {
    return unavailable("there is no cache folder that is written");
  }
  if (config_.selector.exploration <= 0) return unavailable("selector.exploration is 0: there is no time for it");
  const std::filesystem::path probe = PluginLoader::default_probe();
  std::error_code error;
  if (!std::filesystem::exists(probe, error)) {
    return not_found("the program that measures is not there: " + (probe.empty() ? "kiln-probe" : probe.string()));
  }

  BackgroundTuning::Means means;
  means.state = [this](const RanShape& shape) {
    auto device = devices_.open(shape.device);
    if (!device) return TuningState::invalid;
    TuningStore* const store = planner_.tuning_for((*device)->info());
    return store == nullptr ? TuningState::fixed : store->state(shape.spec, (*device)->info());
  };
  // The child has the configuration of this process, whatever it was made of.
  means.bench = [this, probe](const RanShape& shape) -> std::unique_ptr<PausableBench> {
    BenchSetup setup;
    setup.sources = config::sources_of(config_);
    setup.device = shape.device;
    if (const auto* conv = std::get_if<Conv2dSpec>(&shape.spec)) setup.subject = *conv;
    if (const auto* gemm = std::get_if<GemmSpec>(&shape.spec)) setup.subject = *gemm;
    return std::make_unique<BenchProcess>(probe, std::move(setup));
  };
  means.tune = [this](const RanShape& shape, VariantBench& bench, const TuneOptions& options) {
    TuneOptions how = options;
    how.publish = [&](const std::string& variant) {
      return background_->when_idle([&] { return publish(shape.spec, shape.name, shape.device, variant, 1); });
    };
    return measure(shape.spec, shape.device, bench, how);
  };
  means.busy = [this, busy = std::move(busy)] { return busy() || is_asked_turn_taken(config_.cache.directory); };
  means.turn_file = config_.cache.directory / "tuning.background.lock";
  TuningRules rules;
  rules.share = config_.selector.exploration;
  auto made = std::make_unique<BackgroundTuning>(std::move(means), std::move(rules), log_);
  if (!made->started().ok()) return made->started();
  background_ = std::move(made);
  return {};
}

}  // namespace kiln
