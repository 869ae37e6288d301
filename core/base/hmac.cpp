// Two prepared SHA-256 states are kept, which only the older interface of OpenSSL can copy.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/hmac.hpp"

#include <openssl/crypto.h>

#include <array>
#include <cstring>

namespace kiln {
namespace {

constexpr std::size_t block = 64;

SHA256_CTX state_after(std::array<unsigned char, block> key, unsigned char pad) noexcept {
  for (unsigned char& byte : key) byte = static_cast<unsigned char>(byte ^ pad);
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, key.data(), key.size());
  OPENSSL_cleanse(key.data(), key.size());
  return state;
}

}  // namespace

HmacSha256::HmacSha256(std::span<const std::byte> key) noexcept {
  std::array<unsigned char, block> padded{};
  if (key.size() > block) {
    const Digest shortened = sha256(key);
    std::memcpy(padded.data(), shortened.bytes.data(), shortened.bytes.size());
  } else if (!key.empty()) {
    std::memcpy(padded.data(), key.data(), key.size());
  }
  inner_ = state_after(padded, 0x36);
  outer_ = state_after(padded, 0x5c);
  OPENSSL_cleanse(padded.data(), padded.size());
}

HmacSha256::~HmacSha256() {
  OPENSSL_cleanse(&inner_, sizeof inner_);
  OPENSSL_cleanse(&outer_, sizeof outer_);
}

Digest HmacSha256::of(std::span<const std::byte> bytes) const noexcept {
  Digest digest;
  SHA256_CTX state = inner_;
  SHA256_Update(&state, bytes.data(), bytes.size());
  SHA256_Final(digest.bytes.data(), &state);
  state = outer_;
  SHA256_Update(&state, digest.bytes.data(), digest.bytes.size());
  SHA256_Final(digest.bytes.data(), &state);
  return digest;
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace kiln
