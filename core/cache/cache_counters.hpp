// CacheCounters: the counters of a cache that no tier counts itself.
//
// Thread-safety: any thread may count and read. Ownership: a member of the cache; its tiers borrow it.
#pragma once

#include "cache/entry_format.hpp"

#include <kiln/program_cache.hpp>

#include <array>
#include <atomic>
#include <cstdint>

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

}  // namespace kiln
