// ProgramCache: from a key to a program: memory, then disk, then one build.
//
// Thread-safety: every method from any thread. Ownership: the cache owns programs together with the handles given out;
// it dies before the devices its programs belong to. A failing tier is a counted miss, never an error of the caller's:
// only a build that failed is.
#pragma once

#include <kiln/device.hpp>
#include <kiln/program.hpp>
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
#include <vector>

namespace kiln {

struct Acquired {
  ProgramHandle program;
  Tier tier = Tier::invalid;
  std::uint64_t build_ns = 0;  // this call's: compiling, or reading and loading; 0 for a memory hit
};

struct RejectedCounts {
  std::uint64_t corrupt = 0;         // checksum or length
  std::uint64_t tampered = 0;        // checksum right, authentication wrong
  std::uint64_t foreign = 0;         // another user's key
  std::uint64_t driver_changed = 0;  // held for this device under another driver identity
  std::uint64_t refused = 0;         // by the driver
  std::uint64_t quarantined = 0;
};

struct CacheStats {
  std::uint64_t memory_hits = 0;
  std::uint64_t disk_hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t builds = 0;         // programs made that the device can serialize
  std::uint64_t prepared = 0;       // others made: they last as long as the process
  std::uint64_t failed_builds = 0;  // builds of either kind that made no program
  std::uint64_t waits = 0;          // for a build or a load that another thread had begun
  std::uint64_t evictions = 0;      // from memory
  RejectedCounts rejected;
  std::uint64_t programs_in_memory = 0;
  std::uint64_t bytes_in_memory = 0;
  std::uint64_t bytes_on_disk = 0;
  double saved_ms = 0;  // recorded build times of hits, less what the hits cost
  // Of sharing the work with other processes: how often a program was waited for that another process was building, and
  // for how long; how often that process stopped without having published it, and how often patience ended first.
  std::uint64_t lease_waits = 0;
  std::uint64_t lease_wait_ns = 0;
  std::uint64_t lease_takeovers = 0;
  std::uint64_t lease_timeouts = 0;
  std::uint64_t disk_evictions = 0;  // of stored programs, to stay within max_disk
  // Of the misses: those answered with the error of an earlier build, without asking the compiler again.
  std::uint64_t negative_hits = 0;
  // Why there was nothing to hand over, beside `rejected`: it was never held here, or is no more; this process had held
  // it and evicted it, from memory where no disk keeps it; another thread was making it for longer than is waited.
  std::uint64_t absent = 0;
  std::uint64_t evicted = 0;
  std::uint64_t timed_out = 0;
};

// A program that lies on disk, with what is needed to ask for it.
struct KeptProgram {
  ProgramKey key;
  KernelSource source;
  double expected_ms = 0;  // time that preloading it is expected to save; decreases with its place in the list
};

// One of several programs that are asked for at once. What it points at outlives the call.
struct ProgramRequest {
  const ProgramKey* key = nullptr;
  const KernelSource* source = nullptr;
  Device* device = nullptr;
  bool ahead = false;  // nobody waits for it: no use of the program, as far as is remembered of its uses
};

class ProgramCache {
 public:
  ProgramCache() = default;
  ProgramCache(const ProgramCache&) = delete;
  ProgramCache& operator=(const ProgramCache&) = delete;
  virtual ~ProgramCache();

  // The program for the key, made at most once at a time however many threads ask. `source` and `device` belong to
  // `key`. A failed build answers every waiter and is not kept as a program; what the compiler refused may be
  // remembered and answered again without asking it.
  virtual Result<Acquired> get_or_build(const ProgramKey& key, const KernelSource& source, Device& device) noexcept = 0;

  // Memory tier only, for hot loops: nullptr where the program is not there. The pointer is valid while the guard
  // lives. Neither takes a lock.
  virtual Guard enter() noexcept = 0;
  virtual const Program* find(const Digest& digest, const Device& device, const Guard& guard) noexcept = 0;

  // Whether get_or_build() is expected to answer without a compiler: the program is in memory, or a file of its name on
  // disk, whatever is in it. Does not count as a use for eviction. By default what find() answers.
  virtual bool holds(const ProgramKey& key, const Device& device) noexcept;

  // Stores the first-dispatch time and the rate of a program that ran on the device in the program's metadata. A cache
  // may also store what the driver generated at the first dispatch.
  virtual void record(const ProgramKey& key, const Device& device, const Measurement& measurement,
                      double gflops) noexcept = 0;

  // Evicts unused programs under memory pressure. Call it when idle and before a job that may only hit; loads and
  // builds call it themselves. It reads the pressure at most four times a second, else it costs a reading of the
  // clock. The default does nothing.
  virtual void trim_memory() noexcept;

  virtual CacheStats stats() const noexcept = 0;
};

// A cache that can be filled ahead of need. A ProgramCache that is one derives from it too; a caller queries it:
//
//   if (auto* warmable = dynamic_cast<WarmableCache*>(&cache)) programs = warmable->kept(device, 100);
class WarmableCache {
 public:
  WarmableCache() = default;
  WarmableCache(const WarmableCache&) = delete;
  WarmableCache& operator=(const WarmableCache&) = delete;
  virtual ~WarmableCache();

  // Receives the answer to the request at `place`, from any of the working threads, one at a time. false: nothing more
  // is begun.
  using OnAnswer = std::function<bool(std::size_t place, Result<Acquired> answer)>;
  // Many programs, begun in their order on as many threads, the caller's among them. What another thread or process is
  // making is passed over and looked for again at the end: processes that start together on one list each build a part
  // of it.
  virtual void get_or_build_all(std::span<const ProgramRequest> requests, unsigned threads,
                                const OnAnswer& on_answer) noexcept = 0;
  // Programs stored on disk for the device, at most `most`, those first that are expected to save a run most time. It
  // walks the folder.
  virtual std::vector<KeptProgram> kept(const Device& device, std::size_t most) noexcept = 0;
  // Publishes what auto_save = false held back. Returns how many entries were written.
  virtual Result<std::uint64_t> persist() noexcept = 0;
};

// Builds a program in another process, so that a compiler that crashes or hangs costs that process alone. nullopt: not
// for this device. invalid_argument: the compiler refused the program, crashed, or reached a limit; the message names
// the program. Called from any thread.
using BuildApart = std::function<std::optional<Result<ProgramBinary>>(const ProgramKey& key, const KernelSource& source,
                                                                      const Device& device)>;

enum class OwnThreads : std::uint8_t { invalid = 0, no, yes };

// How a stored program behaved when a child process gave it to the driver.
enum class TrialVerdict : std::uint8_t {
  invalid = 0,
  good,     // the driver answered, whatever it answered
  died,     // the child died of it, or did not end in time
  unknown,  // the child could not try it
};

struct TrialOutcome {
  TrialVerdict verdict = TrialVerdict::unknown;
  std::string why;  // "SIGSEGV", "no answer in 10 s"; of `unknown`: what failed
};

// Gives a stored program to the device's driver in a child process, which dispatches it once with an empty grid.
using LoadTrial =
    std::function<TrialOutcome(const ProgramKey& key, const ProgramBinary& stored, const DeviceInfo& device)>;

// What a cache is given when its factory is called.
struct CacheContext {
  Log log;
  CacheConfig config;  // directory already expanded and absolute
  // no: the process is somebody else's, and the cache starts no thread in it that it is not asked for.
  OwnThreads own_threads = OwnThreads::yes;
  TraceSink* trace = nullptr;  // outlives the cache; null: nothing is told
  // For a program that was being loaded when a process died. Empty: it is built anew, and quarantined where that
  // happens to it a second time within an hour.
  LoadTrial try_in_child{};
  BuildApart build_apart{};  // empty: programs are built in this process
};

}  // namespace kiln
