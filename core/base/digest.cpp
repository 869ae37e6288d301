#define XXH_INLINE_ALL               // from the header alone: no library to bind at start
#include "base/digest.hpp"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <xxhash.h>

#include <array>
#include <cstring>

#include <kiln/digest.hpp>

namespace kiln {

Checksum xxh3_128(std::span<const std::byte> bytes) noexcept {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Checksum checksum;
  static_assert(sizeof checksum == sizeof canonical);
  std::memcpy(checksum.data(), &canonical, sizeof checksum);
  return checksum;
}

// Two prepared SHA-256 states are kept, which only the older interface of OpenSSL can copy.

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

namespace {

constexpr char hex_digits[] = "0123456789abcdef";

template <class Integer>
void append_little_endian(std::string& to, Integer value) {
  for (std::size_t byte = 0; byte < sizeof value; ++byte) {
    to.push_back(static_cast<char>(static_cast<unsigned char>(value >> (8 * byte))));
  }
}

int nibble(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

}  // namespace

std::string Digest::hex() const {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text.push_back(hex_digits[byte >> 4]);
    text.push_back(hex_digits[byte & 15]);
  }
  return text;
}

std::optional<Digest> Digest::from_hex(std::string_view hex) noexcept {
  Digest digest;
  if (hex.size() != 2 * digest.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    const int high = nibble(hex[2 * i]);
    const int low = nibble(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return digest;
}

Digest sha256(std::span<const std::byte> bytes) noexcept {
  // The plain functions: OpenSSL's one-shot form looks its algorithm up in the providers and so drags all of them in.
  Digest digest;
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, bytes.data(), bytes.size());
  SHA256_Final(digest.bytes.data(), &state);
  return digest;
}

Digest sha256(std::string_view text) noexcept { return sha256(std::as_bytes(std::span(text.data(), text.size()))); }

void KeyEncoder::field(std::string_view name, std::string_view value) {
  append_little_endian(material_, static_cast<std::uint32_t>(name.size()));
  material_ += name;
  append_little_endian(material_, static_cast<std::uint64_t>(value.size()));
  material_ += value;
}

void KeyEncoder::field(std::string_view name, std::uint64_t value) {
  std::string bytes;
  append_little_endian(bytes, value);
  field(name, bytes);
}

Digest KeyEncoder::digest() const noexcept { return sha256(material_); }

}  // namespace kiln
