#include "c_interface/reports.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln_json.hpp>

#include <algorithm>
#include <cstring>

namespace kiln::c_interface {
namespace {

Json ms_or_null(std::uint64_t ns) { return ns == 0 ? Json(nullptr) : Json(static_cast<double>(ns) / 1e6); }

}  // namespace

kiln_tier tier_of(Tier tier) noexcept {
  switch (tier) {
    case Tier::memory:
      return KILN_TIER_MEMORY;
    case Tier::built:
      return KILN_TIER_BUILT;
    case Tier::library:
      return KILN_TIER_LIBRARY;
    case Tier::invalid:
      return KILN_TIER_NONE;
    default:  // stored, wherever
      return KILN_TIER_DISK;
  }
}

void fill(const CacheStats& found, kiln_cache_stats& stats) noexcept {
  kiln_cache_stats all;
  std::memset(&all, 0, sizeof all);
  all.size = stats.size;
  all.memory_hits = found.memory_hits;
  all.disk_hits = found.disk_hits;
  all.misses = found.misses;
  all.builds = found.builds;
  all.failed_builds = found.failed_builds;
  all.waits = found.waits;
  all.evictions = found.evictions;
  all.disk_evictions = found.disk_evictions;
  all.corrupt = found.rejected.corrupt;
  all.tampered = found.rejected.tampered;
  all.foreign = found.rejected.foreign;
  all.driver_changed = found.rejected.driver_changed;
  all.refused = found.rejected.refused;
  all.quarantined = found.rejected.quarantined;
  all.programs_in_memory = found.programs_in_memory;
  all.bytes_in_memory = found.bytes_in_memory;
  all.bytes_on_disk = found.bytes_on_disk;
  all.lease_waits = found.lease_waits;
  all.lease_takeovers = found.lease_takeovers;
  all.lease_timeouts = found.lease_timeouts;
  all.negative_hits = found.negative_hits;
  all.absent = found.absent;
  all.evicted = found.evicted;
  all.timed_out = found.timed_out;
  all.saved_ms = found.saved_ms;
  const std::size_t given = stats.size;
  auto* to = reinterpret_cast<unsigned char*>(&stats);
  std::memset(to, 0, given);
  std::memcpy(to, &all, std::min(given, sizeof all));
}

Result<std::string> explanation(const CacheConfig& cache, const char* which) {
  const Result<std::vector<MissExplanation>> misses = explain_misses(cache, which);
  if (!misses) return misses.error();
  return explanations_json(*misses);
}

std::string devices_text(std::span<const DeviceInfo> devices) {
  Json all{{"schema", 1}, {"devices", Json::array()}};
  for (const DeviceInfo& device : devices) {
    all["devices"].push_back({{"id", device.id},
                              {"kind", to_string(device.kind)},
                              {"name", device.name},
                              {"driver", device.driver},
                              {"usable", device.usable},
                              {"why_not", device.why_not.empty() ? Json(nullptr) : Json(device.why_not)}});
  }
  return json_text(all);
}

std::string tuning_text(const std::string& job, const std::string& device, const TuneOutcome& outcome) {
  return json_text({{"name", job},
                    {"device", device},
                    {"variant", outcome.variant},
                    {"ms", ms_or_null(outcome.wall_ns)},
                    {"baseline_ms", ms_or_null(outcome.baseline_wall_ns)},
                    {"incumbent", outcome.incumbent.empty() ? Json(nullptr) : Json(outcome.incumbent)},
                    {"incumbent_ms", ms_or_null(outcome.incumbent_wall_ns)},
                    {"decision", to_string(outcome.decision)},
                    {"note", outcome.note.empty() ? Json(nullptr) : Json(outcome.note)},
                    {"space", outcome.space},
                    {"candidates", outcome.candidates},
                    {"known", outcome.known},
                    {"rejected", outcome.rejected}});
}

}  // namespace kiln::c_interface
