// Bundle keys: the Ed25519 (RFC 8032) key pair that signs bundles, with OpenSSL's libcrypto.
//
// libcrypto's Ed25519 is linked into a separate module that is loaded at first use. Otherwise its relocations would
// slow down every start.
// Thread-safety: functions from any thread. Ownership: values; the module remains loaded until the process ends.
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

// Sizes in bytes: secret 32, key 32, signature 64. Functions return 0 on failure.
struct KilnEd25519 {
  int (*public_key)(const unsigned char* secret, unsigned char* key);
  int (*sign)(const unsigned char* secret, const unsigned char* message, std::size_t size, unsigned char* signature);
  // 1: valid signature; 0: not valid.
  int (*verify)(const unsigned char* key, const unsigned char* message, std::size_t size,
                const unsigned char* signature);
};
}

namespace kiln {

inline constexpr const char* ed25519_symbol = "kiln_ed25519";

// unavailable: the module is missing or not valid; the error has the text of the dynamic loader.
Result<const KilnEd25519*> ed25519();

using BundlePublicKey = std::array<std::byte, 32>;
using BundleSignature = std::array<std::byte, 64>;

// The file of the secret key: KEY_FILE.bundle, 32 random bytes under the same rules as the entry key
// (base/secret_key.hpp). SecretKey erases its bytes when destroyed.
std::filesystem::path bundle_key_file(const CacheConfig& cache);
Result<SecretKey> read_bundle_key(const CacheConfig& cache, IfMissing if_missing);

Result<BundlePublicKey> public_key_of(const SecretKey& secret);
Result<BundleSignature> sign_bundle(const SecretKey& secret, std::span<const std::byte> message);
// Returns whether the signature is valid. Error: it could not be verified.
Result<bool> is_signed_by(const BundlePublicKey& key, std::span<const std::byte> message,
                          const BundleSignature& signature);

std::string hex_of(const BundlePublicKey& key);
std::optional<BundlePublicKey> public_key_from_hex(std::string_view hex);
// `trust` is a key of 64 hexadecimal digits, or the name of a file that starts with one.
Result<BundlePublicKey> read_trusted_key(const std::string& trust);

}  // namespace kiln
