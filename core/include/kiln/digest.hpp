// Digest: a SHA-256 hash that identifies content. KeyEncoder: the canonical encoding of program keys.
//
// Each field is encoded as: u32 length of the name, name, u64 length of the value, value. Integers are little endian.
// Different field lists have different encodings, so "ab"+"c" differs from "a"+"bc".
// Thread-safety: values; functions are pure. Ownership: an encoder owns its material.
//
//   kiln::KeyEncoder key;
//   key.field("source", text);
//   const std::string hex = key.digest().hex();
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

struct Digest {
  std::array<std::uint8_t, 32> bytes{};

  auto operator<=>(const Digest&) const = default;

  // 64 lower-case hexadecimal digits.
  std::string hex() const;
  static std::optional<Digest> from_hex(std::string_view hex) noexcept;
};

// SHA-256 (FIPS 180-4) of the bytes.
Digest sha256(std::span<const std::byte> bytes) noexcept;
Digest sha256(std::string_view text) noexcept;

struct DigestHash {
  // The digest is uniformly distributed, so its first eight bytes are the hash.
  std::size_t operator()(const Digest& digest) const noexcept {
    std::size_t hash;
    std::memcpy(&hash, digest.bytes.data(), sizeof hash);
    return hash;
  }
};

class KeyEncoder {
 public:
  void field(std::string_view name, std::string_view value);
  void field(std::string_view name, std::uint64_t value);  // eight bytes, little endian

  const std::string& material() const noexcept { return material_; }
  Digest digest() const noexcept;

 private:
  std::string material_;
};

// A field of a key. Refers to the material it was decoded from.
struct KeyField {
  std::string_view name;
  std::string_view value;
  bool operator==(const KeyField&) const = default;
};

// Returns the fields that a KeyEncoder wrote, in order. nullopt: an incomplete encoding, or more than 65,536 fields.
std::optional<std::vector<KeyField>> decode_key_material(std::string_view material);

}  // namespace kiln
