// TieredCache: memory, else disk, else one build. The cache that core brings, registered as "tiered".
//
// Thread-safety: every method from any thread; distinct keys are loaded and built in parallel. A build is one among
// processes too, where they share a folder. The others wait for it, for a bounded time: processes then build for
// themselves, threads are answered `timeout`. Ownership: as ProgramCache. A device whose programs cannot be serialized
// is served by the memory tier alone.
#pragma once

#include "cache/cache_counters.hpp"
#include "cache/disk_tier.hpp"
#include "cache/driver_cache/driver_scratch.hpp"
#include "cache/failed_builds.hpp"
#include "cache/memory/memory_tier.hpp"
#include "cache/pressure/memory_pressure.hpp"
#include "cache/program_place.hpp"
#include "cache/recent_places.hpp"
#include "cache/single_flight.hpp"

#include <kiln/program_cache.hpp>
#include <kiln/registry.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace kiln {

class TieredCache final : public ProgramCache {
 public:
  // unsupported: a policy or compression that this cache does not have, with those it has. invalid_argument: a key file
  // inside the cache folder.
  static Result<std::unique_ptr<TieredCache>> create(const CacheContext& context, ProcessSharing sharing = {},
                                                     MemorySources memory = {});

  TieredCache(const CacheContext& context, std::unique_ptr<EvictionPolicy> policy, ProcessSharing sharing,
              MemorySources memory);
  ~TieredCache() override;

  Result<Acquired> get_or_build(const ProgramKey& key, const KernelSource& source, Device& device) noexcept override;
  Result<Acquired> get_or_build(const ProgramRequest& request) noexcept;
  // The same without waiting for others: nullopt where another thread or process is making the program now.
  Result<std::optional<Acquired>> try_get_or_build(const ProgramRequest& request) noexcept;
  void get_or_build_all(std::span<const ProgramRequest> requests, unsigned threads,
                        const OnAnswer& on_answer) noexcept override;
  Guard enter() noexcept override { return memory_.enter(); }
  const Program* find(const Digest& digest, const Device& device, const Guard& guard) noexcept override;
  bool holds(const ProgramKey& key, const Device& device) noexcept override;
  std::vector<KeptProgram> kept(const Device& device, std::size_t most) noexcept override;
  void record(const ProgramKey& key, const Device& device, const Measurement& measurement,
              double gflops) noexcept override;
  void heed_pressure() noexcept override;
  Result<std::uint64_t> persist() noexcept override;
  CacheStats stats() const noexcept override;

 private:
  struct Flown {
    Acquired acquired;
    std::uint64_t recorded_build_ns = 0;
  };
  struct Request {
    const ProgramKey& key;
    const KernelSource& source;
    Device& device;
    bool ahead = false;
  };

  using Flight = SingleFlight<ProgramPlace, std::optional<Flown>, ProgramPlaceHash>;  // nullopt: made elsewhere

  CacheStats counts() const noexcept;  // stats() but for what a walk of the disk would tell
  Result<std::optional<Acquired>> acquire(const Request& request, IfElsewhere if_elsewhere);
  Result<std::optional<Flown>> make(const Request& request, IfElsewhere if_elsewhere);
  std::optional<Flown> from_memory(const Request& request);
  // Says in `found` what the disk had.
  Result<std::optional<Flown>> from_disk(const Request& request, Lookup& found);
  Result<Flown> build(const Request& request);
  struct Built {
    std::unique_ptr<Program> program;
    std::optional<ProgramBinary> binary;  // nullopt: not read yet
    std::set<std::string> before;         // the driver's files when the build in this process began
  };
  // In a process of its own where the device allows it, else in this one.
  Result<Built> build_anywhere(const Request& request);
  // Of a program that this process built, with the driver's files. nullopt: it cannot be stored.
  Result<std::optional<ProgramBinary>> binary_of(const Request& request, const Built& built);
  // Before the driver is given the program. Whether the driver has files of it.
  bool place_driver_files(const ProgramBinary& binary);
  // Adds the files that the driver wrote at the program's first dispatch to its entry. A driver may compile once more
  // there: llvmpipe does for the formats of bound images.
  void store_late_driver_files(const ProgramKey& key, const Device& device);
  // Counts why no tier had a program that is now to be built.
  void count_why_missing(const Request& request);
  // A line at level debug on what this call did, where that was no hit in memory.
  void tell(const Request& request, std::string_view what, std::uint64_t since_ns) const;
  Flown keep(const Request& request, std::unique_ptr<Program> program, Tier tier, std::uint64_t build_ns,
             std::uint64_t took_ns);
  // Where the system has no memory to spare, fewer programs stay.
  void look_at_memory();

  const Log log_;
  TraceSink* const trace_;
  const std::chrono::nanoseconds flight_patience_;
  const std::chrono::nanoseconds dispatch_patience_;
  const MemoryBounds configured_;
  CacheCounters counters_;
  MemoryPressure pressure_;
  MemoryTier memory_;
  const BuildApart build_apart_;
  const std::unique_ptr<DriverScratch> driver_folder_;  // null: the driver keeps its cache elsewhere, or none
  mutable DiskTier disk_;                               // its figures are surveyed when they are asked for
  FailedBuilds failed_builds_;
  // Programs that this process had: one that it has to build again was evicted.
  RecentPlaces<std::monostate> once_held_{65536};
  Flight flights_;
};

// Adds "tiered" in the name of "core".
Status register_tiered_cache(Registry& registry);

}  // namespace kiln
