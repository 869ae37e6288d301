// What the C interface says of the cache, the devices and the jobs: tiers, counters, JSON.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include <kiln.h>

#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/status.hpp>
#include <kiln/tuning.hpp>

#include <span>
#include <string>

namespace kiln::c_interface {

kiln_tier tier_of(Tier tier) noexcept;
// Fills as many members as the caller's struct has. REQUIRES: stats.size was checked.
void fill(const CacheStats& found, kiln_cache_stats& stats) noexcept;
// As `kiln cache explain --json`. not_found: as explain_misses().
Result<std::string> explanation(const CacheConfig& cache, const char* which);
// As `kiln devices --json`.
std::string devices_text(std::span<const DeviceInfo> devices);
// As an element of `jobs` of `kiln tune --json`, as far as a job without a known amount of work has it.
std::string tuning_text(const std::string& job, const std::string& device, const TuneOutcome& outcome);

}  // namespace kiln::c_interface
