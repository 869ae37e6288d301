// Remotes as a verb uses them: with the patience of a person, because no job depends on them.
//
// Thread-safety: functions from any thread. Ownership: the caller owns what is returned.
#pragma once

#include "cache/remote_endpoint.hpp"

#include <kiln/cache_sharing.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

inline constexpr std::string_view tuning_format = "kiln-tuning";  // of objects with tuning records

// For a request of so many objects together.
RemoteLimits limits_by_hand(std::size_t objects = 0);

// unavailable: this process has rights that its user has not, so that no folder named by its environment is trusted.
Status check_rights();

// The stores of the plugins, and that of file://.
RemoteStores with_files(const RemoteStores& stores);

// The remotes with mode = "read_write". invalid_argument: there are none. not_found: one has no signing key.
Result<std::vector<std::unique_ptr<RemoteEndpoint>>> writing_endpoints(const CacheConfig& cache,
                                                                       const RemoteStores& stores);

// unavailable or not_found: nothing of this remote would be accepted.
Status check_reads(const RemoteEndpoint& endpoint);

// Objects that were not used, by reason.
std::map<std::string, std::uint64_t> refusals(SharedCounts counts);

}  // namespace kiln
