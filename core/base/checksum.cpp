#include "base/checksum.hpp"

#define XXH_INLINE_ALL  // from the header alone: no library to bind at start
#include <xxhash.h>

#include <cstring>

namespace kiln {

Checksum xxh3_128(std::span<const std::byte> bytes) noexcept {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Checksum checksum;
  static_assert(sizeof checksum == sizeof canonical);
  std::memcpy(checksum.data(), &canonical, sizeof checksum);
  return checksum;
}

}  // namespace kiln
