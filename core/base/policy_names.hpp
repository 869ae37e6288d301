// The values of [cache] policy, which the configuration checks and the cache makes.
#pragma once

#include <string_view>

namespace kiln {

inline constexpr std::string_view eviction_policy_names[] = {"cost", "lru", "sieve"};
// Policies of earlier versions: the configuration accepts them as "cost", with a warning.
inline constexpr std::string_view removed_policy_names[] = {"s3fifo", "wtinylfu"};

}  // namespace kiln
