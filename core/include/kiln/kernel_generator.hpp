// KernelGenerator: creates a plan (sources, launch geometry, packing) for a spec on a device.
//
// Equal spec, device properties and variant give equal bytes.
// Thread-safety: every method from any thread. Ownership: plans are values.
//
//   auto plan = generator.generate(spec, device.info(), device.info().dialects.front());
//   if (!plan) return plan.error();
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/measurement.hpp>
#include <kiln/trace.hpp>
#include <kiln/tuning.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

class KernelGenerator {
 public:
  KernelGenerator() = default;
  KernelGenerator(const KernelGenerator&) = delete;
  KernelGenerator& operator=(const KernelGenerator&) = delete;
  virtual ~KernelGenerator();

  virtual std::span<const Dialect> dialects() const noexcept = 0;
  // REQUIRES: validate(spec).ok(); `dialect` is in dialects() and device.dialects. unsupported: the spec cannot be
  // generated in that dialect for that device; the error has the reason.
  virtual Result<KernelPlan> generate(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) noexcept = 0;
  // Returns a number that increases when the result of generate() may have changed. Callers do not reuse plans of another
  // revision.
  virtual std::uint64_t revision() const noexcept { return 0; }
  // Creates the plan of one variant. not_found: no such variant. unsupported: the variant does not fit the spec or device.
  virtual Result<KernelPlan> generate_variant(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                              std::string_view variant) noexcept;
  // Returns plans with generic programs, fastest first. A generic program runs many shapes. The first call uses it while the
  // programs of generate() are built. Empty: none.
  virtual std::vector<KernelPlan> generic_plans(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect);
  // Called after each successful run.
  virtual void record(const KernelSpec& spec, const DeviceInfo& device, std::string_view variant,
                      const Measurement& measurement) noexcept = 0;
};

// A generator that can measure its variants. Query a KernelGenerator for it with dynamic_cast.
class TunableGenerator {
 public:
  TunableGenerator() = default;
  TunableGenerator(const TunableGenerator&) = delete;
  TunableGenerator& operator=(const TunableGenerator&) = delete;
  virtual ~TunableGenerator();

  // Measures the variants and stores the winner. generate() then returns the winner's plan. unsupported: the spec has only
  // one variant.
  virtual Result<TuneOutcome> tune(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                   VariantBench& bench, const TuneOptions& options) noexcept = 0;
  // nullptr: no measurements are stored.
  virtual TuningStore* tuning() noexcept = 0;
};

struct GeneratorContext {
  Log log;
  std::filesystem::path cache_directory;  // folder for the tuning database
  bool read_only = false;                 // the folder is not written
  PluginSettings settings;
  TraceSink* trace = nullptr;  // outlives the generator; null: no trace
};

}  // namespace kiln
