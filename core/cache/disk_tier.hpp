// DiskTier: programs stored on disk and shared between processes. Each entry is authenticated before use.
//
// Errors of the folder, the key or an entry become cache misses; each reason is counted and logged once. The folder is
// opened at first use, without a survey. acquire_lease() decides which process builds a missing program. loading()
// records a load so that the next process can detect a crash during it.
// Thread-safety: every method from any thread. Ownership: owns its descriptors; borrows the counters and the devices
// (by address), which must outlive it.
// REQUIRES: outlives its leases and guards.
#pragma once

#include "cache/cache_root.hpp"
#include "cache/device_folder.hpp"
#include "cache/disk_bound.hpp"
#include "cache/entry_format.hpp"
#include "cache/history.hpp"
#include "cache/memory_tier.hpp"
#include "cache/process_table.hpp"

#include <kiln/config.hpp>
#include <kiln/log.hpp>
#include <kiln/program_cache.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln {

struct StoredProgram {
  ProgramBinary binary;
  std::uint64_t build_ns = 0;  // duration of the original build
};

struct Lookup {
  std::optional<StoredProgram> stored;
  bool rejected = false;         // an entry existed but was not usable; the reason is counted
  std::int64_t modified_ns = 0;  // modification time of the entry found: distinguishes it from a later one
};

class DiskTier {
 public:
  DiskTier(Log log, const CacheConfig& config, CacheCounters& counters, ProcessSharing sharing = {},
           TraceSink* trace = nullptr, LoadTrial try_in_child = {});
  ~DiskTier();  // writes the .meta files if [cache] auto_save is set

  // Returns the entry after authentication and comparison of its key material. If a process died while loading the
  // program, a child process loads it first as a trial.
  Lookup find(const ProgramKey& key, const Device& device);
  // Returns whether a file exists for the key. Does not read it.
  bool holds(const ProgramKey& key, const Device& device);
  // Returns whether the program is suspect or quarantined.
  bool is_set_aside(const ProgramKey& key, const Device& device);
  // Call if the program of a layer or remote hung. An empty quarantine file keeps it out until this machine has stored
  // its own build, or a week has passed.
  void keep_out_shared(const ProgramKey& key, const Device& device);
  // Hold the guard while the driver loads the result of find().
  LoadGuard loading(const ProgramKey& key, const Device& device);
  // Call after find() found nothing.
  BuildLease acquire_lease(const ProgramKey& key, const Device& device, const Lookup& found, IfBusy if_busy);
  // Call if find() found no file and this process builds the program. Counts the reason of the miss if it is known: the
  // program is quarantined, or stored for another driver version. Returns whether it is known.
  bool count_known_miss(const ProgramKey& key, const Device& device);
  // Call if the driver refused the result of find(): counts the rejection and removes the entry.
  void refuse(const ProgramKey& key, const Device& device, const Status& status);
  // Removes the stored program, also a pending one. unavailable: the folder is read only.
  Status remove(const ProgramKey& key, const Device& device);
  // Publishes the program. With auto_save = false the program stays pending until persist().
  // MetaTime::at_close leaves the .meta file to the end of the process: creating a file is what a small program's hit
  // waits for longest.
  enum class MetaTime : std::uint8_t { invalid = 0, now, at_close };
  void store(const ProgramKey& key, const Device& device, const ProgramBinary& binary, std::uint64_t build_ns,
             MetaTime meta = MetaTime::now);

  // False: programs are stored by persist() only, or not at all.
  bool publishes() const noexcept { return publishes_; }

  // Returns at most `most` programs with the largest expected time savings first. Invalid entries are skipped without a
  // report.
  std::vector<KeptProgram> kept(const Device& device, std::size_t most);

  // Updates the metadata of a program that find() returned or store() received: asked_for() records the first request
  // of this process, loaded() the load time.
  void asked_for(const Digest& digest) { ledger_.asked_for(digest); }
  void loaded(const Digest& digest, std::uint64_t took_ns) { ledger_.loaded(digest, took_ns); }
  void record(const Digest& digest, const Measurement& measurement, double gflops);
  void used(const UseCounts& uses);
  // Stores the pending programs of this cache and returns their number. Programs that could not be stored remain
  // pending; the error says why.
  Result<std::uint64_t> persist();
  std::uint64_t bytes();
  // Call when the cache is closed: adds the counters of this process to the totals of the cache.
  void leave_history(const CacheStats& counts) noexcept;

 private:
  struct DeviceStore {
    DeviceFolder folder;
    ProcessTable processes;

    DeviceStore(int root, const DeviceInfo& device, const ProcessSharing& sharing, Log log, bool has_trial);
  };
  struct Root {
    UniqueFd folder;
    EntryKey key;
    DiskBound bound;
    PendingArea pending;
    std::unordered_map<const Device*, std::unique_ptr<DeviceStore>> stores;  // guarded by mutex_
  };
  struct Encoded {
    std::uint64_t build_ns = 0;
    std::vector<std::byte> bytes;
  };

  Lookup find_stored(Root& root, DeviceStore& device_store, const ProgramKey& key);
  // Tries a suspect program in a child process. Returns whether it passed and was restored.
  bool retry_suspect(Root& root, DeviceStore& device_store, const ProgramKey& key, const Device& device);
  // nullopt: missing or not authentic.
  std::optional<ProgramBinary> read_suspect(Root& root, DeviceFolder& folder, const ProgramKey& key);
  Root* open();  // nullptr: no usable folder, memory only
  Result<std::unique_ptr<Root>> open_root() const;
  DeviceStore& store_of(Root& root, const Device& device);
  // Counts the rejection and removes the entry.
  void reject(Root& root, DeviceFolder& folder, const ProgramKey& key, Rejection reason, const std::string& why);
  // Returns whether exactly these bytes are in quarantine.
  bool is_quarantined(Root& root, DeviceFolder& folder, const Digest& digest, const ProgramBinary& binary);
  Status publish(Root& root, DeviceFolder& folder, const ProgramKey& key, const Encoded& entry, MetaTime meta);
  Status set_aside(Root& root, const Device& device, const ProgramKey& key, const Encoded& entry);
  void note_miss(const ProgramKey& key, Rejection reason, const std::string& why);
  void warn_once(const std::string& why);

  const Log log_;
  TraceSink* const trace_;
  const CacheConfig config_;
  const ProcessSharing sharing_;
  const LoadTrial try_in_child_;
  CacheCounters& counters_;
  MetaLedger ledger_;
  MissedKeys missed_;  // saved by leave_history()
  Inflaters inflaters_;
  std::mutex mutex_;
  std::unique_ptr<Root> root_;
  std::optional<Status> unusable_;             // set if opening the root failed
  std::map<Digest, DeviceFolder*> set_aside_;  // pending program to the folder it will be stored in; guarded by mutex_
  std::atomic<bool> said_{false};
  std::atomic<bool> publishes_;  // false: other processes do not wait for builds of this process
};

}  // namespace kiln
