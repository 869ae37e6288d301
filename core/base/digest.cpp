#define OPENSSL_SUPPRESS_DEPRECATED  // the plain functions: see sha256()
#include <kiln/digest.hpp>

#include <openssl/sha.h>

#include <cstring>

namespace kiln {
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
