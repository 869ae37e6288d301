#include "base/exposition.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/cache_sharing.hpp>

#include <utility>

namespace kiln {
namespace {

constexpr double ms_per_s = 1e3;

void add_counts(Exposition& to, const CacheTotals& totals) {
  const CacheStats& counts = totals.counts;
  to.metric("kiln_cache_hits_total", "counter", "Programs found, by the tier that had them.");
  to.sample({{"tier", "memory"}}, counts.memory_hits);
  to.sample({{"tier", "disk"}}, counts.disk_hits);
  to.sample({{"tier", "layer"}}, counts.shared.layer_hits);
  to.sample({{"tier", "remote"}}, counts.shared.hits);
  to.single("kiln_cache_misses_total", "counter", "Programs that no tier had.", counts.misses);
  to.single("kiln_cache_builds_total", "counter", "Programs built that can be stored.", counts.builds);
  to.single("kiln_cache_failed_builds_total", "counter", "Builds that made no program.", counts.failed_builds);
  to.single("kiln_cache_prepared_total", "counter", "Programs made that last as long as their process.",
            counts.prepared);
  to.metric("kiln_cache_rejections_total", "counter", "Stored programs that were not used, by the reason.");
  const std::pair<const char*, std::uint64_t> reasons[] = {
      {"corrupt", counts.rejected.corrupt}, {"tampered", counts.rejected.tampered},
      {"foreign", counts.rejected.foreign}, {"driver_changed", counts.rejected.driver_changed},
      {"refused", counts.rejected.refused}, {"quarantined", counts.rejected.quarantined},
  };
  for (const auto& [reason, count] : reasons) to.sample({{"reason", reason}}, count);
  to.metric("kiln_cache_missing_total", "counter", "Programs that there was nothing of to use, by the reason.");
  to.sample({{"reason", "absent"}}, counts.absent);
  to.sample({{"reason", "evicted"}}, counts.evicted);
  to.sample({{"reason", "timed_out"}}, counts.timed_out);
  to.metric("kiln_cache_evictions_total", "counter", "Programs that had to go, by the tier that they left.");
  to.sample({{"tier", "memory"}}, counts.evictions);
  to.sample({{"tier", "disk"}}, counts.disk_evictions);
  to.single("kiln_cache_waits_total", "counter", "Requests that waited for work another thread had begun.",
            counts.waits);
  to.single("kiln_cache_lease_waits_total", "counter", "Programs waited for that another process was building.",
            counts.lease_waits);
  to.single("kiln_cache_lease_wait_seconds_total", "counter", "How long they were waited for.",
            static_cast<double>(counts.lease_wait_ns) / 1e9);
  to.single("kiln_cache_lease_takeovers_total", "counter", "Builds taken over from a process that did not publish.",
            counts.lease_takeovers);
  to.single("kiln_cache_lease_timeouts_total", "counter", "Builds begun beside another process that was too slow.",
            counts.lease_timeouts);
  to.single("kiln_cache_negative_hits_total", "counter",
            "Requests answered with the error of an earlier build, without asking the compiler.", counts.negative_hits);
  to.metric("kiln_cache_shared_total", "counter",
            "Programs of layers and remotes, and programs written to remotes, by what happened.");
  for (const auto& [name, count] : shared_count_names()) to.sample({{"event", name}}, counts.shared.*count);
  to.single("kiln_cache_saved_seconds", "gauge",
            "Recorded build time of what was found, less the time that finding it took.", counts.saved_ms / ms_per_s);
  to.single("kiln_cache_processes_total", "counter", "Processes that used the cache and ended in order.",
            totals.processes);
  to.single("kiln_cache_updated_timestamp_seconds", "gauge", "When the last of them ended; 0: none did.",
            static_cast<double>(totals.updated_s));
}

void add_remotes(Exposition& to, const CacheConfig& cache) {
  if (cache.remotes.empty()) return;
  const std::vector<RemoteStatus> remotes = known_remotes(cache);
  to.metric("kiln_remote_closed", "gauge", "1: the remote failed, and jobs send it no requests for a while.");
  for (const RemoteStatus& one : remotes) to.sample({{"remote", one.url}}, std::uint64_t{one.closed_for_ms > 0});
  to.metric("kiln_remote_failures", "gauge", "Failures of the remote in a row.");
  for (const RemoteStatus& one : remotes) to.sample({{"remote", one.url}}, one.failures);
  to.metric("kiln_remote_round_trip_seconds", "gauge", "Typical time of a request; 0: unknown.");
  for (const RemoteStatus& one : remotes) to.sample({{"remote", one.url}}, one.round_trip_ms / ms_per_s);
  to.metric("kiln_remote_events_total", "counter",
            "Programs requested from a remote and written to it, and their bytes, by what happened.");
  for (const RemoteStatus& one : remotes) {
    for (const auto& [name, count] : remote_total_names()) {
      to.sample({{"remote", one.url}, {"event", name}}, one.totals.*count);
    }
  }
}

void add_stored(Exposition& to, const CacheInventory& inventory) {
  to.metric("kiln_cache_programs", "gauge", "Programs stored, by device and driver.");
  for (const CacheDevice& one : inventory.devices) {
    to.sample({{"device", one.device}, {"driver", one.driver}, {"folder", one.folder}}, one.programs);
  }
  to.metric("kiln_cache_program_bytes", "gauge", "What stored programs take on disk, by device and driver.");
  for (const CacheDevice& one : inventory.devices) {
    to.sample({{"device", one.device}, {"driver", one.driver}, {"folder", one.folder}}, one.bytes);
  }
  to.single("kiln_cache_pending_programs", "gauge", "Programs that wait for persist.", inventory.programs_pending);
  to.single("kiln_cache_pending_bytes", "gauge", "What programs that wait for persist take on disk.",
            inventory.bytes_pending);
}

}  // namespace

std::string cache_prometheus(const CacheTotals& totals, const CacheInventory& inventory, const CacheConfig& cache) {
  Exposition exposition;
  add_counts(exposition, totals);
  add_remotes(exposition, cache);
  add_stored(exposition, inventory);
  exposition.single("kiln_cache_limit_bytes", "gauge", "The bound on stored programs: [cache] max_disk.",
                    cache.max_disk);
  return exposition.take();
}

}  // namespace kiln
