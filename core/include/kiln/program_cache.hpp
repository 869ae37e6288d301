// ProgramCache: looks for a program by key in memory, then on disk, and builds it if it is absent.
//
// Errors: a failed tier counts as a miss; only a failed build is an error. Times are in nanoseconds unless named
// otherwise, sizes in bytes.
// Thread-safety: every method from any thread. Ownership: cache and handles share the programs. Destroy the cache before the
// devices of its programs.
//
//   auto acquired = cache.get_or_build(key, source, device);
//   if (!acquired) return acquired.error();
//   if (acquired->tier == kiln::Tier::built) std::cerr << acquired->build_ns << " ns\n";
#pragma once

#include <kiln/device.hpp>
#include <kiln/program.hpp>
#include <kiln/remote_store.hpp>
#include <kiln/status.hpp>
#include <kiln/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

struct Acquired {
  ProgramHandle program;
  Tier tier = Tier::invalid;
  std::uint64_t build_ns = 0;  // time of this call to build, or to read and load; 0 for a memory hit
};

struct RejectedCounts {
  std::uint64_t corrupt = 0;         // wrong checksum or length
  std::uint64_t tampered = 0;        // checksum right, authentication wrong
  std::uint64_t foreign = 0;         // signed with another user's key
  std::uint64_t driver_changed = 0;  // stored for this device under another driver identity
  std::uint64_t refused = 0;         // refused by the driver
  std::uint64_t quarantined = 0;
};

// Counts of programs that the cache read from layers and remotes, or wrote to remotes.
struct SharedCounts {
  std::uint64_t layer_hits = 0;
  std::uint64_t hits = 0;     // of remotes
  std::uint64_t asked = 0;    // requests for a program that were sent to remotes
  std::uint64_t absent = 0;   // programs that no remote has
  std::uint64_t skipped = 0;  // not requested: building costs less than three round trips
  std::uint64_t late = 0;     // the answer took too long: the program was built meanwhile
  std::uint64_t failed = 0;   // requests that the server did not answer, or answered with an error
  std::uint64_t closed = 0;   // not requested, because the server failed before
  // Objects that were not used, by reason, in the order of the checks.
  std::uint64_t bad_length = 0, unknown_key = 0, expired = 0, revoked = 0, bad_signature = 0, other_program = 0;
  std::uint64_t bad_payload = 0, bad_driver_file = 0, refused = 0;
  std::uint64_t written = 0, write_failed = 0;
  std::uint64_t dropped = 0;  // not written: the queue was full, or the process ended
  std::uint64_t lease_waits = 0, lease_takeovers = 0, lease_timeouts = 0;
  std::uint64_t unleased_builds = 0;  // built without a lease: another machine may build the same program
};

// Returns the names and members of SharedCounts in the order of reports.
std::span<const std::pair<const char*, std::uint64_t SharedCounts::*>> shared_count_names() noexcept;

struct CacheStats {
  std::uint64_t memory_hits = 0;
  std::uint64_t disk_hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t builds = 0;         // programs built that the device can serialize
  std::uint64_t prepared = 0;       // other programs, created for this process only
  std::uint64_t failed_builds = 0;  // failed builds of both kinds
  std::uint64_t waits = 0;          // requests that waited for a build or load of another thread
  std::uint64_t evictions = 0;      // from memory
  RejectedCounts rejected;
  std::uint64_t programs_in_memory = 0;
  std::uint64_t bytes_in_memory = 0;
  std::uint64_t bytes_on_disk = 0;
  double saved_ms = 0;  // build times saved by hits, minus the cost of the hits
  // Counts for builds of other processes: waits and their total time, builds that ended without a program, and waits that
  // timed out.
  std::uint64_t lease_waits = 0;
  std::uint64_t lease_wait_ns = 0;
  std::uint64_t lease_takeovers = 0;
  std::uint64_t lease_timeouts = 0;
  std::uint64_t disk_evictions = 0;  // from disk, to stay within max_disk
  // Misses answered with the error of an earlier build, without a compiler run.
  std::uint64_t negative_hits = 0;
  // Miss reasons besides `rejected`. absent: never stored, or removed since. evicted: by this process. timed_out: the build
  // of another thread took too long.
  std::uint64_t absent = 0;
  std::uint64_t evicted = 0;
  std::uint64_t timed_out = 0;
  SharedCounts shared;
};

// A stored program with the arguments to request it.
struct KeptProgram {
  ProgramKey key;
  KernelSource source;
  double expected_ms = 0;  // expected time saved by preloading, in ms; decreases with the position in the list
};

// One request of get_or_build_all(). The pointers must be valid during the call.
struct ProgramRequest {
  const ProgramKey* key = nullptr;
  const KernelSource* source = nullptr;
  Device* device = nullptr;
  bool ahead = false;  // preload: does not count as a use of the program
};

class ProgramCache {
 public:
  ProgramCache() = default;
  ProgramCache(const ProgramCache&) = delete;
  ProgramCache& operator=(const ProgramCache&) = delete;
  virtual ~ProgramCache();

  // Returns the program for the key. Concurrent requests share one build and the error of a failed build. Later requests may
  // get the compiler's error again without a new build. REQUIRES: `key` was made from `source` and `device`.
  virtual Result<Acquired> get_or_build(const ProgramKey& key, const KernelSource& source, Device& device) noexcept = 0;

  // Lookup in memory only and without a lock, for hot loops. find() returns nullptr if the program is not in memory. The
  // pointer is valid for the lifetime of the guard.
  virtual Guard enter() noexcept = 0;
  virtual const Program* find(const Digest& digest, const Device& device, const Guard& guard) noexcept = 0;

  // Returns whether get_or_build() will probably need no compiler: the program is in memory, or a file exists (not
  // verified). Does not count as a use for eviction. The default uses find().
  virtual bool holds(const ProgramKey& key, const Device& device) noexcept;

  // Stores the first-dispatch time and the rate of a program in its metadata. May also store code that the driver
  // generated at the first dispatch.
  virtual void record(const ProgramKey& key, const Device& device, const Measurement& measurement,
                      double gflops) noexcept = 0;

  // Evicts unused programs under memory pressure. Call it when idle and before a job without loads or builds; loads and
  // builds call it themselves. It reads the pressure at most four times per second. The default does nothing.
  virtual void trim_memory() noexcept;

  virtual CacheStats stats() const noexcept = 0;
};

// A cache that can be filled in advance. Query a ProgramCache for it:
//
//   if (auto* warmable = dynamic_cast<WarmableCache*>(&cache)) programs = warmable->kept(device, 100);
class WarmableCache {
 public:
  WarmableCache() = default;
  WarmableCache(const WarmableCache&) = delete;
  WarmableCache& operator=(const WarmableCache&) = delete;
  virtual ~WarmableCache();

  // Receives the result of the request with index `place`, on a worker thread, one call at a time. Return false to start
  // no further request.
  using OnAnswer = std::function<bool(std::size_t place, Result<Acquired> answer)>;
  // Processes requests in order on `threads` threads, including the calling thread. If another thread or process builds a
  // program, its request is deferred to the end, so that processes with the same list divide the builds.
  virtual void get_or_build_all(std::span<const ProgramRequest> requests, unsigned threads,
                                const OnAnswer& on_answer) noexcept = 0;
  // Returns at most `most` stored programs for the device, largest expected time savings first. Reads the whole folder.
  virtual std::vector<KeptProgram> kept(const Device& device, std::size_t most) noexcept = 0;
  // Stores programs that are pending because of auto_save = false. Returns the number of written entries.
  virtual Result<std::uint64_t> persist() noexcept = 0;
};

// Builds a program in another process, so that a crash or hang of the compiler does not affect this process. Called from any
// thread. nullopt: not supported for this device. invalid_argument: the compiler refused the program, crashed or reached a
// limit; the error names the program.
using BuildApart = std::function<std::optional<Result<ProgramBinary>>(const ProgramKey& key, const KernelSource& source,
                                                                      const Device& device)>;

enum class OwnThreads : std::uint8_t { invalid = 0, no, yes };

// Result of loading a stored program in a child process.
enum class TrialVerdict : std::uint8_t {
  invalid = 0,
  good,     // the driver responded, with any result
  died,     // the child crashed or timed out
  unknown,  // the test could not be run
};

struct TrialOutcome {
  TrialVerdict verdict = TrialVerdict::unknown;
  std::string why;  // "SIGSEGV", "no answer in 10 s"; for `unknown`, what failed
};

// Loads a stored program in a child process and dispatches it once with an empty grid.
using LoadTrial =
    std::function<TrialOutcome(const ProgramKey& key, const ProgramBinary& stored, const DeviceInfo& device)>;

// Arguments of a cache factory.
struct CacheContext {
  Log log;
  CacheConfig config;  // directory is expanded and absolute
  // no: the cache starts no thread in the process, except on request.
  OwnThreads own_threads = OwnThreads::yes;
  TraceSink* trace = nullptr;  // outlives the cache; null: no trace
  // Tests a program that was being loaded when a process died. Empty: the cache builds the program again, and quarantines it
  // if a process dies twice within an hour.
  LoadTrial try_in_child{};
  BuildApart build_apart{};  // empty: programs are built in this process
  // By the scheme of the URL. Core adds "file". The cache reports a remote with an unknown scheme and does not use it.
  std::map<std::string, RemoteStoreFactory> remote_stores{};
};

}  // namespace kiln
