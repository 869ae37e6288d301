// Names that the configuration checks and the cache uses: the values of [cache] policy, and the names of keys.
#pragma once

#include <algorithm>
#include <string_view>

namespace kiln {

inline constexpr std::string_view eviction_policy_names[] = {"cost", "lru", "sieve"};
// Policies of earlier versions: the configuration accepts them as "cost", with a warning.
inline constexpr std::string_view removed_policy_names[] = {"s3fifo", "wtinylfu"};

// A key of trust.d or keys.d, or a file of credentials.d: 1 to 64 of a-z, A-Z, 0-9, '.', '_' and '-', without a leading
// '.' or '-'. Never a path.
constexpr bool is_key_name(std::string_view name) noexcept {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= 64 && name.front() != '.' && name.front() != '-' &&
         std::ranges::all_of(name, plain);
}

}  // namespace kiln
