// DiskTier: programs stored across processes below one folder, each authenticated before it is used.
//
// It never fails its caller: whatever is wrong with the folder, the key or an entry is a miss, counted by reason and
// logged once. It opens the folder at first use, without a walk. Processes that share the folder share the work:
// acquire_lease() decides who builds; the guard of loading() tells the next process what this one died of.
// Thread-safety: every method from any thread. Ownership: owns its descriptors; borrows the counters and, by address,
// the devices, which outlive it. REQUIRES: outlives the leases and guards that it gave out.
#pragma once

#include "cache/build_lease.hpp"
#include "cache/cache_counters.hpp"
#include "cache/device_folder.hpp"
#include "cache/disk_bound.hpp"
#include "cache/entry_format.hpp"
#include "cache/history.hpp"
#include "cache/memory_tier.hpp"
#include "cache/meta_ledger.hpp"
#include "cache/pending.hpp"
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
  std::uint64_t build_ns = 0;  // what its build cost, when it was built
};

struct Lookup {
  std::optional<StoredProgram> stored;
  bool rejected = false;         // there was something, and why it was not handed over is counted
  std::int64_t modified_ns = 0;  // of what there was: tells it from what is published later
};

class DiskTier {
 public:
  DiskTier(Log log, const CacheConfig& config, CacheCounters& counters, ProcessSharing sharing = {},
           TraceSink* trace = nullptr, LoadTrial try_in_child = {});
  ~DiskTier();  // writes the .meta files where [cache] auto_save says so

  // Authenticated, and the key material compared. A program that was being loaded when a process died is tried in a
  // child first.
  Lookup find(const ProgramKey& key, const Device& device);
  // Whether there is a file of the key's name, whatever is in it.
  bool holds(const ProgramKey& key, const Device& device);
  // To be held while the driver is given what find() answered.
  LoadGuard loading(const ProgramKey& key, const Device& device);
  // After find() answered nothing: who builds.
  BuildLease acquire_lease(const ProgramKey& key, const Device& device, const Lookup& found, IfBusy if_busy);
  // Where find() found no file and this process builds: counts the reason where it is known, and returns whether it is.
  // A process died of the program, or it is stored for this device under another driver.
  bool count_known_miss(const ProgramKey& key, const Device& device);
  // The driver refused what find() answered: counted and removed.
  void refuse(const ProgramKey& key, const Device& device, const Status& status);
  // Publishes, or sets aside until persist() where auto_save is false.
  void store(const ProgramKey& key, const Device& device, const ProgramBinary& binary, std::uint64_t build_ns);

  // False: what is stored waits for persist(), or nothing is stored.
  bool publishes() const noexcept { return publishes_; }

  // Those first that are expected to spare most. What is wrong with an entry is told when it is asked for: here it is
  // left out.
  std::vector<KeptProgram> kept(const Device& device, std::size_t most);

  // For what is remembered of a program that find() answered or store() took: somebody waits for it now; loading it
  // took so long.
  void asked_for(const Digest& digest) { ledger_.asked_for(digest); }
  void loaded(const Digest& digest, std::uint64_t took_ns) { ledger_.loaded(digest, took_ns); }
  void record(const Digest& digest, const Measurement& measurement, double gflops);
  void used(const UseCounts& uses);
  // Programs stored of those that this cache set aside. Those that could not be stay there, and the answer says why.
  Result<std::uint64_t> persist();
  std::uint64_t bytes();
  // For people and tools, when the cache is closed: what this process counted.
  void leave_history(const CacheStats& counts) noexcept;

 private:
  struct DeviceStore {  // of one device
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
  // Whether a suspect turned out to be good, so that it is stored again.
  bool retry_suspect(Root& root, DeviceStore& device_store, const ProgramKey& key, const Device& device);
  // nullopt: it is not authentic, or not there.
  std::optional<ProgramBinary> read_suspect(Root& root, DeviceFolder& folder, const ProgramKey& key);
  Root* open();  // nullptr: memory only
  Result<std::unique_ptr<Root>> open_root() const;
  DeviceStore& store_of(Root& root, const Device& device);
  // Counted and removed.
  void reject(Root& root, DeviceFolder& folder, const ProgramKey& key, Rejection reason, const std::string& why);
  // Whether a process died loading exactly these bytes, not long ago.
  bool is_quarantined(Root& root, DeviceFolder& folder, const Digest& digest, const ProgramBinary& binary);
  Status publish(Root& root, DeviceFolder& folder, const ProgramKey& key, const Encoded& entry);
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
  MissedKeys missed_;  // where they are to be saved
  Inflaters inflaters_;
  std::mutex mutex_;
  std::unique_ptr<Root> root_;
  std::optional<Status> unusable_;             // why there is no root, once opening it was tried
  std::map<Digest, DeviceFolder*> set_aside_;  // where they shall go; guarded by mutex_
  std::atomic<bool> said_{false};
  std::atomic<bool> publishes_;  // false: nobody gains by waiting for what this process builds
};

}  // namespace kiln
