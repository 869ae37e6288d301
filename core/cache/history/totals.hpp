// The totals of all processes that used a cache: cache_stats.json at its root.
//
// Thread-safety: pure calls of the operating system; updates of several processes are merged under a lock. Ownership:
// values. An update that cannot be made within 20 ms is lost, never an error.
#pragma once

#include <kiln/cache_admin.hpp>
#include <kiln/program_cache.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace kiln
