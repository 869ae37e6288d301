// TieredCache: the program cache of core, registered as "tiered". It looks in memory, on disk, in layers and remotes,
// then builds.
//
// Threads and processes that share a folder build each program once. Others wait for a bounded time; after that a
// process builds for itself, and a thread gets `timeout`. Programs of a device without serialization are cached in
// memory only.
// Thread-safety: every method from any thread; different keys are loaded and built in parallel. Ownership: as
// ProgramCache.
#pragma once

#include "base/os/memory_pressure.hpp"
#include "cache/disk_tier.hpp"
#include "cache/driver_scratch.hpp"
#include "cache/history.hpp"
#include "cache/memory_tier.hpp"
#include "cache/process_table.hpp"
#include "cache/remote_tier.hpp"
#include "cache/single_flight.hpp"

#include <kiln/open_program_cache.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/registry.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace kiln {

class TieredCache final : public ProgramCache, public WarmableCache, public RemovableCache {
 public:
  // unsupported: unknown policy or compression; the error lists the known ones. invalid_argument: the key file is
  // inside the cache folder.
  static Result<std::unique_ptr<TieredCache>> create(const CacheContext& context, ProcessSharing sharing = {},
                                                     MemorySources memory = {});

  TieredCache(const CacheContext& context, std::unique_ptr<EvictionPolicy> policy, ProcessSharing sharing,
              MemorySources memory);
  ~TieredCache() override;

  Result<Acquired> get_or_build(const ProgramKey& key, const KernelSource& source, Device& device) noexcept override;
  Result<Acquired> get_or_build(const ProgramRequest& request) noexcept;
  // As get_or_build(), but does not wait: nullopt if another thread or process is building the program.
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
  Status remove(const ProgramKey& key, const Device& device) noexcept override;
  void forget(const Device& device) noexcept override;
  CacheStats stats() const noexcept override;

 private:
  struct Request {
    const ProgramKey& key;
    const KernelSource& source;
    Device& device;
    bool ahead = false;
  };

  // Where a program was found, or why there is none.
  enum class Origin : std::uint8_t {
    none = 0,  // not in this tier
    busy,      // another thread or process builds it
    memory,
    other_thread,  // loaded or built by a concurrent call
    disk,
    layer,
    remote,
    build,
    library,  // a program that cannot be stored
  };
  struct Obtained {
    Origin origin = Origin::none;
    ProgramHandle program;
    std::uint64_t took_ns = 0;
    std::uint64_t recorded_build_ns = 0;  // duration of the original build

    bool found() const noexcept { return static_cast<bool>(program); }
  };
  struct Built {
    std::unique_ptr<Program> program;
    std::optional<ProgramBinary> binary;  // nullopt: not serialized yet
    std::set<std::string> before;         // driver files before a build in this process
    std::uint64_t took_ns = 0;
  };

  CacheStats counts() const noexcept;  // stats() without the disk survey
  // Runs obtain() once per program at a time; adds counters, trace and log.
  Result<Obtained> acquire(const Request& request, IfBusy if_busy);
  // Looks in memory, on disk, in layers and remotes; then acquires the lease, builds and publishes.
  Result<Obtained> obtain(const Request& request, IfBusy if_busy);
  Obtained from_memory(const Request& request);
  // Returns the error if the compiler refused this program earlier in this process.
  std::optional<Status> earlier_failure(const Request& request);
  // Stores the result of the disk lookup in `lookup`.
  Result<Obtained> from_disk(const Request& request, Lookup& lookup);
  // Gives stored bytes to the driver. nothing: the driver refused them; the entry is removed.
  Result<Obtained> load(const Request& request, const StoredProgram& stored, Origin origin, std::uint64_t start_ns,
                        Lookup& lookup);
  // Whether the program may come from a layer or remote.
  bool takes_shared(const ProgramKey& key, const Device& device);
  // Looks in the layers, then in the remotes. A program of a remote is stored on disk before it is loaded.
  Result<Obtained> from_shared(const Request& request, Lookup& lookup);
  Result<Obtained> from_remote(const Request& request, const SharedProgram& shared, Lookup& lookup);
  // Waits while another machine builds the program.
  Result<Obtained> from_lease_of_machines(const Request& request, Lookup& lookup, IfBusy if_busy);
  BuildLease acquire_lease(const Request& request, const Lookup& lookup, IfBusy if_busy);
  Result<Built> build(const Request& request);
  // Builds in a child process if the device allows it, otherwise in this process.
  Result<Built> build_anywhere(const Request& request);
  // Stores the program with its driver files. device_lost, timeout: its first dispatch failed.
  Status publish(const Request& request, Built& built);
  // Serializes a program built in this process, with its driver files. nullopt: it cannot be stored.
  Result<std::optional<ProgramBinary>> binary_of(const Request& request, const Built& built);
  // Inserts the program into memory.
  Obtained retain(const Request& request, Origin origin, std::unique_ptr<Program> program, std::uint64_t took_ns,
                  std::uint64_t build_ns);
  // Call before the driver loads the program. Returns whether the program has driver files.
  bool place_driver_files(const ProgramBinary& binary);
  // Adds the driver files written at the first dispatch to the stored entry. A driver may compile again then; llvmpipe
  // does for the formats of bound images.
  void store_late_driver_files(const ProgramKey& key, const Device& device);
  static Tier tier_of(Origin origin) noexcept;
  // Whether the program is in memory or on disk.
  bool holds_here(const ProgramKey& key, const Device& device);
  // Requests the programs of a batch from the remotes together.
  void prefetch(std::span<const ProgramRequest> requests);
  void count_outcome(const Request& request, const Obtained& obtained, std::uint64_t start_ns);
  // Counts the reason why the program was not in any tier.
  void count_miss(const Request& request, const Lookup& lookup);
  // Logs the outcome of a call at level debug, except for memory hits.
  void log_outcome(const Request& request, std::string_view what, std::uint64_t since_ns) const;
  // Adjusts the bound of the memory tier to memory pressure.
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
  const std::shared_ptr<DriverScratch> driver_folder_;  // null: no driver cache, or not in such a folder
  mutable DiskTier disk_;                               // mutable: stats() runs a survey
  FailedBuilds failed_builds_;
  // Programs that were in memory before. Building one of them again counts as an eviction miss.
  RecentPlaces<std::monostate> once_held_{65536};
  RecentPlaces<std::monostate> hung_{256};  // programs of layers and remotes; for folders that are only read
  SingleFlight<ProgramPlace, Obtained, ProgramPlaceHash> flights_;
  const std::unique_ptr<RemoteTier> shared_;  // null: neither layers nor remotes are configured
};

// Registers "tiered" as a component of "core".
Status register_tiered_cache(Registry& registry);

// build_all: gets or builds many programs, in the given order.
//
// A program that another thread or process is building is deferred to the end. Processes that start together with one
// list therefore divide the builds among themselves and load the rest.
// Thread-safety: call from any thread; `threads` threads do the work, the caller included.
// Ownership: borrows the objects that the requests point to until it returns.

// Implements WarmableCache::get_or_build_all() for TieredCache.
void build_all(TieredCache& cache, std::span<const ProgramRequest> requests, unsigned threads,
               const WarmableCache::OnAnswer& on_answer);

// Returns one result of get_or_build() for each request, in the order of the requests.
std::vector<Result<Acquired>> build_all(TieredCache& cache, std::span<const ProgramRequest> requests,
                                        unsigned threads = 1);

}  // namespace kiln
