// TieredCache: memory, else disk, else one build. The cache that core brings, registered as "tiered".
//
// Thread-safety: every method from any thread; distinct keys are loaded and built in parallel. Ownership: as
// ProgramCache. A device whose programs cannot be serialized is served by the memory tier alone.
#pragma once

#include "cache/cache_counters.hpp"
#include "cache/disk_tier.hpp"
#include "cache/memory_tier.hpp"
#include "cache/single_flight.hpp"

#include <kiln/program_cache.hpp>
#include <kiln/registry.hpp>

#include <cstddef>
#include <memory>
#include <optional>

namespace kiln {

class TieredCache final : public ProgramCache {
 public:
  // unsupported: a policy or compression that this cache does not have, with those it has.
  static Result<std::unique_ptr<ProgramCache>> create(const CacheContext& context);

  explicit TieredCache(const CacheContext& context);
  ~TieredCache() override;

  Result<Acquired> get_or_build(const ProgramKey& key, const KernelSource& source, Device& device) noexcept override;
  Guard enter() noexcept override { return memory_.enter(); }
  const Program* find(const Digest& digest, const Guard& guard) noexcept override;
  void record(const ProgramKey& key, const Measurement& measurement, double gflops) noexcept override;
  Result<std::uint64_t> persist() noexcept override;
  CacheStats stats() const noexcept override;

 private:
  struct Place {  // a program belongs to one device, also where another has the same identity
    Digest digest;
    const Device* device = nullptr;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& place) const noexcept;
  };
  struct Flown {
    Acquired acquired;
    std::uint64_t recorded_build_ns = 0;
  };
  struct Request {
    const ProgramKey& key;
    const KernelSource& source;
    Device& device;
  };

  CacheStats counts() const noexcept;  // stats() but for what a walk of the disk would tell
  Result<Acquired> acquire(const Request& request);
  std::optional<Flown> from_memory(const Request& request);
  std::optional<Flown> from_disk(const Request& request);
  Result<Flown> build(const Request& request);
  Flown keep(const Request& request, std::unique_ptr<Program> program, Tier tier, std::uint64_t build_ns,
             std::uint64_t took_ns);

  const Log log_;
  CacheCounters counters_;
  MemoryTier memory_;
  mutable DiskTier disk_;  // its figures are surveyed when they are asked for
  SingleFlight<Place, Flown, PlaceHash> flights_;
};

// Adds "tiered" in the name of "core".
Status register_tiered_cache(Registry& registry);

}  // namespace kiln
