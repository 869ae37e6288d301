// What the verbs of `kiln cache` share. None of them loads a plugin or a driver but `warm` and `import`, which say so.
//
// Thread-safety: main thread only.
#pragma once

#include "options.hpp"
#include "progress.hpp"
#include "verbs/verbs.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/cache_sharing.hpp>
#include <kiln/registry.hpp>

#include <kiln_json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kiln::host {

// The exit status to end with after having complained, or nullopt to go on.
std::optional<int> read_cache_config(const Options& options, CacheConfig& cache);

class Session;
// The stores that the plugins registered, by scheme.
RemoteStores stores_of(const Registry& registry);
// Opens the devices of --device or [device] prefer: those that store programs. REQUIRES: a session with a runtime.
std::vector<DeviceInfo> storing_devices(Session& session);

// "there is no cache at DIR yet\n"
std::string no_cache_yet(const CacheConfig& cache);

// What `kiln cache stats --json` prints, and the "programs" of `kiln cache list --json`.
Json cache_stats_json(const CacheConfig& cache, const CacheTotals& totals, const CacheInventory& stored, bool exists);
Json cached_programs_json(const CacheInventory& stored);

Json rejected_json(const RejectedCounts& rejected);
Json shared_json(const SharedCounts& counts);
Json bad_json(const std::vector<BadEntry>& bad);
void complain_of_bad(const std::vector<BadEntry>& bad);
// What is suspect or quarantined: a line each, with why, until when and the command that ends it.
Json aside_json(const std::vector<AsideProgram>& aside);
std::string aside_text(const std::vector<AsideProgram>& aside);

// "2 corrupt, 1 refused"; empty where nothing was rejected.
std::string rejected_text(const RejectedCounts& rejected);

// The words for a device folder: "llvmpipe (…), Mesa 22.3.6", or the folder's name.
std::string words_of(const CacheDevice& device);
// One line; a long or many-lined text by its beginning and its extent.
std::string in_short(const std::string& text, std::size_t most = 96);
// The first digits of a key, as tables show it; long enough to be typed back.
std::string short_key(const Digest& key);

}  // namespace kiln::host
