// TieredCache: memory, else disk, else one build. The cache that core brings, registered as "tiered".
//
// Thread-safety: every method from any thread; distinct keys are loaded and built in parallel. A build is one among
// processes too, where they share a folder. The others wait for it, for a bounded time: processes then build for
// themselves, threads are answered `timeout`. Ownership: as ProgramCache. A device whose programs cannot be serialized
// is served by the memory tier alone.
#pragma once

#include "base/os/memory_pressure.hpp"
#include "cache/build_lease.hpp"
#include "cache/cache_counters.hpp"
#include "cache/disk_tier.hpp"
#include "cache/driver_scratch.hpp"
#include "cache/memory_tier.hpp"
#include "cache/recent_programs.hpp"
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

class TieredCache final : public ProgramCache, public WarmableCache {
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
  void trim_memory() noexcept override;
  Result<std::uint64_t> persist() noexcept override;
  CacheStats stats() const noexcept override;

 private:
  struct Request {
    const ProgramKey& key;
    const KernelSource& source;
    Device& device;
    bool ahead = false;
  };

  // Where a program came from, or why there is none.
  enum class Origin : std::uint8_t {
    none = 0,  // not in the tier that was asked
    busy,      // another thread or process builds it now
    memory,
    other_thread,  // loaded or built by another thread's call
    disk,
    build,
    library,  // made by a device whose programs cannot be stored
  };
  struct Obtained {
    Origin origin = Origin::none;
    ProgramHandle program;
    std::uint64_t took_ns = 0;
    std::uint64_t recorded_build_ns = 0;  // what its build cost when it was built

    bool found() const noexcept { return static_cast<bool>(program); }
  };
  struct Built {
    std::unique_ptr<Program> program;
    std::optional<ProgramBinary> binary;  // nullopt: not read yet
    std::set<std::string> before;         // the driver's files when the build in this process began
    std::uint64_t took_ns = 0;
  };

  CacheStats counts() const noexcept;  // stats() but for what a walk of the disk would tell
  // obtain() once at a time for one program, with its counts, trace and log line.
  Result<Obtained> acquire(const Request& request, IfBusy if_busy);
  // The path of a request: memory, disk, lease, build, publish.
  Result<Obtained> obtain(const Request& request, IfBusy if_busy);
  Obtained from_memory(const Request& request);
  // What the compiler refused before, in this process.
  std::optional<Status> earlier_failure(const Request& request);
  // Writes to `lookup` what the disk had.
  Result<Obtained> from_disk(const Request& request, Lookup& lookup);
  BuildLease acquire_lease(const Request& request, const Lookup& lookup, IfBusy if_busy);
  Result<Built> build(const Request& request);
  // In a process of its own where the device allows it, else in this one.
  Result<Built> build_anywhere(const Request& request);
  // Stores the program with the driver's files. device_lost, timeout: its first dispatch failed.
  Status publish(const Request& request, Built& built);
  // Of a program that this process built, with the driver's files. nullopt: it cannot be stored.
  Result<std::optional<ProgramBinary>> binary_of(const Request& request, const Built& built);
  // Puts the program into memory.
  Obtained retain(const Request& request, Origin origin, std::unique_ptr<Program> program, std::uint64_t took_ns,
                  std::uint64_t build_ns);
  // Before the driver is given the program. Whether the driver has files of it.
  bool place_driver_files(const ProgramBinary& binary);
  // Adds the files that the driver wrote at the program's first dispatch to its entry. A driver may compile once more
  // there: llvmpipe does for the formats of bound images.
  void store_late_driver_files(const ProgramKey& key, const Device& device);
  static Tier tier_of(Origin origin) noexcept;
  void count_outcome(const Request& request, const Obtained& obtained, std::uint64_t start_ns);
  // Counts why no tier had a program that is now to be built.
  void count_miss(const Request& request, const Lookup& lookup);
  // A line at level debug on what a call did, where that was no hit in memory.
  void log_outcome(const Request& request, std::string_view what, std::uint64_t since_ns) const;
  // Under memory pressure fewer programs stay.
  void adapt_to_pressure();

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
  SingleFlight<ProgramPlace, Obtained, ProgramPlaceHash> flights_;
};

// Adds "tiered" in the name of "core".
Status register_tiered_cache(Registry& registry);

}  // namespace kiln
