// DriftWatch: whether tuned winners still take the time that they took when they won.
//
// Told of every run, so a run costs a lookup: what a winner's runs are compared with is asked for once a revision.
// Thread-safety: every method from any thread. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/kernel_generator.hpp>
#include <kiln/tuning_exchange.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>

#include "dynamic_shaders/tuner/tuning_database.hpp"
#include "dynamic_shaders/variants.hpp"

namespace kiln::dynamic_shaders {

class DriftWatch {
 public:
  static constexpr std::uint32_t slow_runs = 8;  // in a row: a busy machine slows some, not all
  // Least time from the first to the last of them: a process starts slowly, and machines are slow for seconds.
  static constexpr std::chrono::nanoseconds slow_span = std::chrono::seconds(5);
  static constexpr double slow_factor = 1.5;

  using Spec = std::variant<Conv2dSpec, GemmSpec, std::string>;  // a user's kernel: its record_spec()
  static constexpr std::size_t most_specs = 4096;                // beyond them it begins anew

  struct Winner {
    std::string variant;
    std::uint64_t device_ns = 0;  // the median when it won; 0 where there is no winner
  };

  explicit DriftWatch(std::chrono::nanoseconds span = slow_span) : span_ns_(static_cast<std::uint64_t>(span.count())) {}

  // True once for each winner, with the last of slow_runs or more runs in a row, over slow_span, that took over
  // slow_factor times its median. now: of the steady clock. `find` is asked where this device's spec was not met since
  // `revision` changed.
  bool drifts(const std::string& device_id, const Spec& spec, std::uint64_t revision, std::string_view variant,
              std::uint64_t device_ns, std::uint64_t now_ns, const std::function<Winner()>& find);

 private:
  struct Key {
    std::string device_id;
    Spec spec;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  struct Watched {
    Winner winner;
    std::uint32_t slow = 0;           // runs in a row
    std::uint64_t slow_since_ns = 0;  // the first of them
    bool told = false;
  };

  const std::uint64_t span_ns_;
  std::mutex mutex_;
  std::uint64_t revision_ = 0;
  std::unordered_map<Key, Watched, Hash> watched_;
};

// Generator: the kernel generator "dynamic_shaders": shader source from families of kernels, user kernels handed
// through.
//
// Which variant serves: variants.hpp. Thread-safety: every method from any thread. Ownership: plans are values; owns
// its view of the tuning database.

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
