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
  // Plans whose programs serve many shapes, the better first: for a first call, while the programs of generate() are
  // being built. They are slower, never less right. Empty: there are none.
  virtual std::vector<KernelPlan> stand_ins(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect);
  // Measures variants on the bench and keeps the winner, which generate() answers from then on. unsupported: this
  // generator has nothing to choose from.
  virtual Result<TuneOutcome> tune(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect,
                                   VariantBench& bench, const TuneOptions& options) noexcept;
  // nullptr: it keeps none.
  virtual TuningStore* tuning() noexcept { return nullptr; }
  // Told of every run that went well, with the variant that ran.
  virtual void record(const KernelSpec& spec, const DeviceInfo& device, std::string_view variant,
                      const Measurement& measurement) noexcept = 0;
};

struct GeneratorContext {
  Log log;
  std::filesystem::path cache_directory;  // where a tuning database may persist
  bool read_only = false;                 // nothing is written there
  PluginSettings settings;
  TraceSink* trace = nullptr;  // outlives the generator; null: nothing is told
};

}  // namespace kiln
