// Checksum: XXH3-128 of bytes, in its canonical (big-endian) form.
//
// Thread-safety: pure. Ownership: values. It finds accidents; whoever may alter bytes on purpose can repair it, so
// trust comes from hmac.hpp alone.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace kiln {

using Checksum = std::array<std::byte, 16>;

Checksum xxh3_128(std::span<const std::byte> bytes) noexcept;

}  // namespace kiln
