// XXH3 against accidents, HMAC-SHA-256 against forgery. Plain SHA-256: kiln/digest.hpp.
//
// Checksum: XXH3-128 of bytes, in its canonical (big-endian) form.
//
// Thread-safety: pure. Ownership: values. It detects accidental damage only. An
// attacker can compute it again, so authentication uses HmacSha256.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <openssl/sha.h>

#include <kiln/digest.hpp>

namespace kiln {

using Checksum = std::array<std::byte, 16>;

Checksum xxh3_128(std::span<const std::byte> bytes) noexcept;

// HmacSha256: authentication codes (RFC 2104 over SHA-256) under one key.
//
// Thread-safety: of() from any thread. Ownership: holds the two SHA-256 states prepared from the key, not the key; they
// are as secret as the key and are wiped by the destructor.

class HmacSha256 {
 public:
  explicit HmacSha256(std::span<const std::byte> key) noexcept;
  HmacSha256(const HmacSha256&) noexcept = default;
  HmacSha256& operator=(const HmacSha256&) noexcept = default;
  ~HmacSha256();

  Digest of(std::span<const std::byte> bytes) const noexcept;

 private:
  SHA256_CTX inner_;  // has taken in key ^ ipad
  SHA256_CTX outer_;  // has taken in key ^ opad
};

// Takes the same time wherever the two differ. REQUIRES: equal sizes.
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) noexcept;

}  // namespace kiln
