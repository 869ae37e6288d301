// The pair of keys that bundles are signed with: Ed25519 (RFC 8032; ed25519.hpp).
//
// The secret half is 32 random bytes in a file of its own beside the key of the entries, under the same rules as that
// one (base/secret_key.hpp); the public half is computed from it. Thread-safety: values; pure but for the file.
// Ownership: the secret is wiped by its owner's destructor.
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

namespace kiln {

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
