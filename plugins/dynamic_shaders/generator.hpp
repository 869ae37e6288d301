// Generator: the kernel generator "dynamic_shaders": shader source from families of kernels, user kernels handed
// through.
//
// Which variant serves: choice.hpp. Thread-safety: every method from any thread. Ownership: plans are values; owns its
// view of the tuning database.
#pragma once

#include <kiln/kernel_generator.hpp>
#include <kiln/tuning_exchange.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>

#include "dynamic_shaders/choice.hpp"
#include "dynamic_shaders/tuner/drift_watch.hpp"
#include "dynamic_shaders/tuner/tuning_database.hpp"

namespace kiln::dynamic_shaders {

class Generator final : public KernelGenerator, public TunableGenerator, public TuningStore, public TuningExchange {
 public:
  // Empty: nothing that is tuned is kept beyond this process.
  // trace: told which variant was chosen and by what; outlives the generator; null: nobody is.
  // drift: how long a winner must run slowly before its record is stale.
  explicit Generator(const std::filesystem::path& cache_directory = {}, bool read_only = false,
                     TraceSink* trace = nullptr, std::chrono::nanoseconds drift = DriftWatch::slow_span);

  std::span<const Dialect> dialects() const noexcept override;
  Result<KernelPlan> generate(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) noexcept override;
  Result<KernelPlan> generate_variant(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                      std::string_view variant) noexcept override;
  std::vector<KernelPlan> generic_plans(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) override;
  Result<TuneOutcome> tune(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect, VariantBench& bench,
                           const TuneOptions& options) noexcept override;
  TuningStore* tuning() noexcept override { return this; }
  std::uint64_t revision() const noexcept override { return revision_.load(std::memory_order_acquire); }
  // Where a tuned winner takes half as long again as when it won, run after run for seconds, its record becomes stale:
  // it still serves, and the next tuning measures it anew.
  void record(const KernelSpec& spec, const DeviceInfo& device, std::string_view variant,
              const Measurement& measurement) noexcept override;

  std::vector<KernelSpec> tuned(const DeviceInfo& device) override;
  TuningState state(const KernelSpec& spec, const DeviceInfo& device) noexcept override;
  std::string exported() noexcept override { return database_.text(); }
  Result<MergedTuning> merge(std::string_view text) noexcept override;

  std::string winners_text(const DeviceInfo& device) noexcept override;
  Result<MergedTuning> merge_foreign(std::string_view text, const DeviceInfo& device) noexcept override;
  std::vector<KernelSpec> foreign(const DeviceInfo& device) override;
  bool is_foreign(const KernelSpec& spec, const DeviceInfo& device) noexcept override;
  Result<std::size_t> accept_foreign(const DeviceInfo& device) noexcept override;

 private:
  Result<TuneOutcome> audit(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect, VariantBench& bench);
  // Measures a foreign winner beside the variant that is used here.
  Result<TuneOutcome> try_foreign(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                  VariantBench& bench, TuningRecord record);
  // Which variant serves; a trace is told it, with the figures that speak for it.
  Result<Choice> choose(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect);
  // What other processes kept since may change which variant serves.
  void refresh();
  std::vector<TuningRecord> fresh_records(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                          const std::string& basis);
  std::string contradiction(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                            const TuningRecord& winner, std::uint32_t group, VariantBench& bench);

  TuningDatabase database_;
  TraceSink* const trace_;
  std::atomic<std::uint64_t> revision_{0};
  DriftWatch drift_watch_;
};

}  // namespace kiln::dynamic_shaders
