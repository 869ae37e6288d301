// KernelGenerator: from a spec and a device's facts to a plan: sources, launch geometry, packing.
//
// Thread-safety: every method from any thread. Ownership: plans are values.
// Deterministic: the same spec, device facts and choice of variant give the same bytes.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/measurement.hpp>
#include <kiln/trace.hpp>
#include <kiln/tuning.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace kiln {

class KernelGenerator {
 public:
  KernelGenerator() = default;
  KernelGenerator(const KernelGenerator&) = delete;
  KernelGenerator& operator=(const KernelGenerator&) = delete;
  virtual ~KernelGenerator();

  virtual std::span<const Dialect> dialects() const noexcept = 0;
  // REQUIRES: validate(spec).ok(), and `dialect` is one of dialects() and of device.dialects. unsupported: this spec
  // cannot be written in that dialect for that device, with the reason.
  virtual Result<KernelPlan> generate(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) noexcept = 0;
  // Rises whenever generate() may answer otherwise than before: plans made under another revision are not used again.
  virtual std::uint64_t revision() const noexcept { return 0; }
  // The plan of one variant by its id, whether it is the preferred one or not. not_found: there is no such variant.
  // unsupported: it does not fit the spec or the device.
  virtual Result<KernelPlan> generate_variant(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                              std::string_view variant) noexcept;
  // Plans with generic programs, which run many shapes; the fastest first. For a first call, while the programs of
  // generate() are being built. Empty: there are none.
  virtual std::vector<KernelPlan> generic_plans(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect);
  // Called after every run that went well, with the variant that ran.
  virtual void record(const KernelSpec& spec, const DeviceInfo& device, std::string_view variant,
                      const Measurement& measurement) noexcept = 0;
};

// A generator that measures its variants. A KernelGenerator that does so derives from it too; a caller queries it with
// dynamic_cast.
class TunableGenerator {
 public:
  TunableGenerator() = default;
  TunableGenerator(const TunableGenerator&) = delete;
  TunableGenerator& operator=(const TunableGenerator&) = delete;
  virtual ~TunableGenerator();

  // Measures variants on the bench and stores the winner, which generate() returns from then on. unsupported: there is
  // only one variant of the spec.
  virtual Result<TuneOutcome> tune(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                   VariantBench& bench, const TuneOptions& options) noexcept = 0;
  // nullptr: it stores no measurements.
  virtual TuningStore* tuning() noexcept = 0;
};

struct GeneratorContext {
  Log log;
  std::filesystem::path cache_directory;  // where a tuning database may persist
  bool read_only = false;                 // nothing is written there
  PluginSettings settings;
  TraceSink* trace = nullptr;  // outlives the generator; null: nothing is told
};

}  // namespace kiln
