// The totals of all processes that used a cache: cache_stats.json at its root.
//
// Thread-safety: pure calls of the operating system; updates of several processes are merged under a lock. Ownership:
// values. An update that cannot be made within 20 ms is lost, never an error.
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
inline constexpr std::chrono::milliseconds history_patience{20};  // for that lock

// The text of the file after one process more. What the text holds that this version does not know stays in it; a text
// that is none of ours is begun anew.
std::string totals_with(std::string_view json, const CacheStats& process, std::int64_t now_s);
// Zeros for what the text does not say.
CacheTotals totals_of(std::string_view json);

// In the folder `root` of a cache. A process that asked for nothing leaves no trace.
void add_to_totals(int root, const CacheStats& process);
CacheTotals read_totals(int root);

// MissedKeys: the newest keys that were asked for and not found, kept so that another process can explain why: the file
// `missed_keys` at the root of a cache.
//
// Thread-safety: note() from any thread; files are merged under the lock of the totals. Ownership: values. Bounded:
// 1,024 keys of at most 1 MiB each, with their words 4 MiB together. Not authenticated, and read by nobody but explain.

inline constexpr const char* missed_keys_name = "missed_keys";

struct MissedKey {
  std::string label;
  std::string material;
  Rejection reason = Rejection::none;  // none: nothing was stored under the key
  std::string why;
  std::int64_t missed_s = 0;  // since 1970

  Digest digest() const noexcept { return sha256(material); }
};

class MissedKeys {
 public:
  void note(const ProgramKey& key, Rejection reason, std::string why);
  // Merges them into the file in the folder `root`; the newest stay, one for each key. Lost where the lock is not to be
  // had within 20 ms.
  void save(int root);

 private:
  std::mutex mutex_;
  std::deque<MissedKey> missed_;  // oldest first
  std::size_t bytes_ = 0;         // of those
};

// Oldest first. Empty where there is no file, or one of another kind.
std::vector<MissedKey> read_missed_keys(int root);

// The bytes of the file: "schema" and then for each key "missed", "label", "reason", "why", "material", encoded as key
// material is.
std::string encode_missed_keys(const std::vector<MissedKey>& keys);
std::vector<MissedKey> decode_missed_keys(std::string_view bytes);

}  // namespace kiln
