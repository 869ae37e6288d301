// Counters of the cache: of this process, and of all.
//
// CacheCounters: the counters of a cache that no tier counts itself.
//
// Thread-safety: any thread may count and read. Ownership: a member of the cache; its tiers borrow it.
#pragma once

#include "cache/entry_format.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/program.hpp>
#include <kiln/program_cache.hpp>

#include <array>
#include <atomic>
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

struct CacheCounters {
  std::atomic<std::uint64_t> shared_flights{0};  // requests that used a build or load of another thread
  std::atomic<std::uint64_t> disk_hits{0};
  std::atomic<std::uint64_t> misses{0};
  std::atomic<std::uint64_t> builds{0};
  std::atomic<std::uint64_t> prepared{0};
  std::atomic<std::uint64_t> failed_builds{0};
  std::atomic<std::uint64_t> waits{0};
  std::atomic<std::int64_t> saved_ns{0};  // negative if hits cost more than the builds that they replaced
  std::array<std::atomic<std::uint64_t>, rejection_kinds> rejections{};
  std::atomic<std::uint64_t> lease_waits{0};
  std::atomic<std::uint64_t> lease_wait_ns{0};
  std::atomic<std::uint64_t> lease_takeovers{0};
  std::atomic<std::uint64_t> lease_timeouts{0};
  std::atomic<std::uint64_t> disk_evictions{0};
  std::atomic<std::uint64_t> negative_hits{0};
  std::atomic<std::uint64_t> absent{0};
  std::atomic<std::uint64_t> evicted{0};
  std::atomic<std::uint64_t> timed_out{0};

  void reject(Rejection reason) noexcept {
    rejections[static_cast<std::size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  }

  void hit(std::atomic<std::uint64_t>& hits, std::uint64_t build_ns, std::uint64_t cost_ns) noexcept {
    hits.fetch_add(1, std::memory_order_relaxed);
    saved(build_ns, cost_ns);
  }
  void saved(std::uint64_t build_ns, std::uint64_t cost_ns) noexcept {
    saved_ns.fetch_add(static_cast<std::int64_t>(build_ns) - static_cast<std::int64_t>(cost_ns),
                       std::memory_order_relaxed);
  }

  RejectedCounts rejected() const noexcept {
    const auto count = [&](Rejection reason) { return rejections[static_cast<std::size_t>(reason)].load(); };
    return {count(Rejection::corrupt),        count(Rejection::tampered), count(Rejection::foreign),
            count(Rejection::driver_changed), count(Rejection::refused),  count(Rejection::quarantined)};
  }
};

// Cache history: totals of all processes (cache_stats.json) and recently missed keys (missed_keys), at the root of a
// cache.
//
// Thread-safety: functions from any thread; a file lock serializes the updates of processes. Ownership: values.
// An update that cannot get the lock within 20 ms is dropped without an error.

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
