// Cache history: totals of all processes (cache_stats.json) and recently missed keys (missed_keys), at the root of a
// cache.
//
// Thread-safety: functions from any thread; a file lock serializes the updates of processes. Ownership: values.
// An update that cannot get the lock within 20 ms is dropped without an error.
#pragma once

#include "cache/entry_format.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/program.hpp>
#include <kiln/program_cache.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

inline constexpr const char* totals_name = "cache_stats.json";
inline constexpr const char* history_lock_name = "cache_stats.lock";
inline constexpr std::chrono::milliseconds history_patience{20};  // longest wait for that lock

// Returns the file's text with one more process added. Unknown members are preserved; text that is not a valid file is
// replaced.
std::string totals_with(std::string_view json, const CacheStats& process, std::int64_t now_s);
// Missing members are zero.
CacheTotals totals_of(std::string_view json);

// Updates the file in the folder `root`. Does nothing for a process without requests.
void add_to_totals(int root, const CacheStats& process);
CacheTotals read_totals(int root);

// MissedKeys records the newest keys that were not found, so that `explain` in another process can report why.
//
// At most 1,024 keys of at most 1 MiB each and 4 MiB in total. The file is not authenticated; only `explain` reads it.
// Thread-safety: note() from any thread; the lock of the totals protects the file.
inline constexpr const char* missed_keys_name = "missed_keys";

struct MissedKey {
  std::string label;
  std::string material;
  Rejection reason = Rejection::none;  // none: nothing was stored under the key
  std::string why;
  std::int64_t missed_s = 0;  // seconds since 1970

  Digest digest() const noexcept { return sha256(material); }
};

class MissedKeys {
 public:
  void note(const ProgramKey& key, Rejection reason, std::string why);
  // Merges the keys into the file in the folder `root`, the newest of each key. Dropped if the lock is not free within
  // 20 ms.
  void save(int root);

 private:
  std::mutex mutex_;
  std::deque<MissedKey> missed_;  // oldest first
  std::size_t bytes_ = 0;         // total size of missed_
};

// Oldest first. Empty if there is no valid file.
std::vector<MissedKey> read_missed_keys(int root);

// File format: "schema", then for each key "missed", "label", "reason", "why", "material", encoded like key material.
std::string encode_missed_keys(const std::vector<MissedKey>& keys);
std::vector<MissedKey> decode_missed_keys(std::string_view bytes);

}  // namespace kiln
