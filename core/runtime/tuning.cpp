// Tuning: of one spec on request, and in the background of what ran.
#include "config/sources_of.hpp"
#include "runtime/parts.hpp"
#include "runtime/tuning/asked_tuning.hpp"
#include "runtime/tuning/bench_process.hpp"

#include <kiln/plugin_loader.hpp>

#include <algorithm>

namespace kiln {

Result<TuneOutcome> Runtime::Parts::tune(const KernelSpec& spec, const std::string& id, VariantBench& bench,
                                         const TuneOptions& options) {
  if (Status status = validate(spec); !status.ok()) return status;
  auto device = devices.open(id);
  if (!device) return std::move(device).error();
  if (Status status = check_reads((*device)->info(), spec); !status.ok()) return status;
  const auto [generator, dialect] = generator_for((*device)->info(), &spec);
  return generator->tune(spec, (*device)->info(), dialect, bench, options);
}

TunedPrograms Runtime::Parts::tuned_programs(const Device& device) {
  TunedPrograms tuned;
  const auto [generator, dialect] = generator_for(device.info());
  TuningStore* const store = generator == nullptr ? nullptr : generator->tuning();
  if (store == nullptr) return tuned;
  for (const KernelSpec& spec : store->tuned(device.info())) {
    RunRequest request;
    request.spec = spec;
    const auto keyed = keyed_plan(request, device, *generator, dialect);  // not remembered: it has no job's name
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

Result<std::unique_ptr<BackgroundTuning>> Runtime::Parts::tune_in_background() {
  const bool keeps =
      std::ranges::any_of(generators, [](const auto& one) { return one.generator->tuning() != nullptr; });
  if (!keeps) return unsupported("no generator that is loaded keeps measurements");
  if (config.cache.read_only || config.cache.directory.empty()) {
    return unavailable("there is no cache folder that is written");
  }
  if (config.selector.exploration <= 0) return unavailable("selector.exploration is 0: there is no time for it");
  const std::filesystem::path probe = PluginLoader::default_probe();
  std::error_code error;
  if (!std::filesystem::exists(probe, error)) {
    return not_found("the program that measures is not there: " + (probe.empty() ? "kiln-probe" : probe.string()));
  }

  BackgroundTuning::Means means;
  means.state = [this](const RanShape& shape) {
    auto device = devices.open(shape.device);
    if (!device) return TuningState::invalid;
    KernelGenerator* const generator = generator_for((*device)->info()).first;
    TuningStore* const store = generator == nullptr ? nullptr : generator->tuning();
    return store == nullptr ? TuningState::fixed : store->state(shape.spec, (*device)->info());
  };
  // The child has the configuration of this process, whatever it was made of.
  means.bench = [this, probe](const RanShape& shape) -> std::unique_ptr<PausableBench> {
    BenchSetup setup;
    setup.sources = config::sources_of(config);
    setup.device = shape.device;
    if (const auto* conv = std::get_if<Conv2dSpec>(&shape.spec)) setup.subject = *conv;
    if (const auto* gemm = std::get_if<GemmSpec>(&shape.spec)) setup.subject = *gemm;
    return std::make_unique<BenchProcess>(probe, std::move(setup));
  };
  means.tune = [this](const RanShape& shape, VariantBench& bench, const TuneOptions& options) {
    TuneOptions how = options;
    how.publish = [&](const std::string& variant) {
      return tuning->when_idle([&]() -> Status {
        auto device = devices.open(shape.device);
        if (!device) return std::move(device).error();
        RunRequest winner;
        winner.name = shape.name;
        winner.spec = shape.spec;
        winner.variant = variant;
        return publish(winner, **device, 1);
      });
    };
    return tune(shape.spec, shape.device, bench, how);
  };
  means.busy = [this] {
    return !builder.idle() || (warming != nullptr && warming->state().running) ||
           is_asked_turn_taken(config.cache.directory);
  };
  means.turn_file = config.cache.directory / "tuning.background.lock";
  TuningRules rules;
  rules.share = config.selector.exploration;
  auto made = std::make_unique<BackgroundTuning>(std::move(means), std::move(rules), log);
  if (!made->started().ok()) return made->started();
  return made;
}

}  // namespace kiln
