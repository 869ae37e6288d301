// Ed25519 signatures (RFC 8032), by OpenSSL's libcrypto, which stands in a module of its own that is opened at first
// use: OpenSSL's interface to them drags in all of its providers, whose relocations every start would pay for.
//
// Thread-safety: pure functions. Ownership: callers'; the module stays open until the process ends.
#pragma once

#include "base/secret_key.hpp"

#include <kiln/config.hpp>
#include <kiln/status.hpp>

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

extern "C" {

// Bytes: secret 32, key 32, signature 64. 0: libcrypto refused.
struct KilnEd25519 {
  int (*public_key)(const unsigned char* secret, unsigned char* key);
  int (*sign)(const unsigned char* secret, const unsigned char* message, std::size_t size, unsigned char* signature);
  // 1: it is this key's signature of this message; 0: it is not.
  int (*verify)(const unsigned char* key, const unsigned char* message, std::size_t size,
                const unsigned char* signature);
};
}

namespace kiln {

inline constexpr const char* ed25519_symbol = "kiln_ed25519";

// unavailable: the module is not where it was installed, or not one; with the loader's words.
Result<const KilnEd25519*> ed25519();

// The pair of keys that bundles are signed with: Ed25519 (RFC 8032; ed25519.hpp).
//
// The secret half is 32 random bytes in a file of its own beside the key of the entries, under the same rules as that
// one (base/secret_key.hpp); the public half is computed from it. Thread-safety: values; pure but for the file.
// Ownership: the secret is wiped by its owner's destructor.

using BundlePublicKey = std::array<std::byte, 32>;
using BundleSignature = std::array<std::byte, 64>;

// KEY_FILE.bundle
std::filesystem::path bundle_key_file(const CacheConfig& cache);
Result<SecretKey> read_bundle_key(const CacheConfig& cache, IfMissing if_missing);

Result<BundlePublicKey> public_key_of(const SecretKey& secret);
Result<BundleSignature> sign_bundle(const SecretKey& secret, std::span<const std::byte> message);
// Whether it is; an error where that cannot be found out.
Result<bool> is_signed_by(const BundlePublicKey& key, std::span<const std::byte> message,
                          const BundleSignature& signature);

std::string hex_of(const BundlePublicKey& key);
std::optional<BundlePublicKey> public_key_from_hex(std::string_view hex);
// 64 hexadecimal digits, or the name of a file that begins with them.
Result<BundlePublicKey> read_trusted_key(const std::string& trust);

}  // namespace kiln
