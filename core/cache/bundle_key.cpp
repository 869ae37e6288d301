#include "cache/bundle_key.hpp"

#include "base/os/private_folder.hpp"

#include <kiln/digest.hpp>
#include <kiln/regular_file.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>

namespace kiln {

namespace {

constexpr std::size_t key_digits = 64;

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

std::filesystem::path bundle_key_file(const CacheConfig& cache) {
  return std::filesystem::path(cache.key_file.string() + ".bundle");
}

Result<SecretKey> read_bundle_key(const CacheConfig& cache, IfMissing if_missing) {
  if (cache.key_file.empty()) return unavailable(no_key_file().message);
  if (Status status = check_key_file_place(cache); !status.ok()) return status;
  return read_secret_key(bundle_key_file(cache), if_missing);
}

Result<BundlePublicKey> public_key_of(const SecretKey& secret) {
  const Result<const KilnEd25519*> by = ed25519();
  if (!by) return by.error();
  BundlePublicKey made;
  if ((*by)->public_key(raw(secret.bytes), reinterpret_cast<unsigned char*>(made.data())) != 1) {
    return internal_error("Ed25519: the public key cannot be computed");
  }
  return made;
}

Result<BundleSignature> sign_bundle(const SecretKey& secret, std::span<const std::byte> message) {
  const Result<const KilnEd25519*> by = ed25519();
  if (!by) return by.error();
  BundleSignature signature;
  if ((*by)->sign(raw(secret.bytes), raw(message), message.size(),
                  reinterpret_cast<unsigned char*>(signature.data())) != 1) {
    return internal_error("Ed25519: signing failed");
  }
  return signature;
}

Result<bool> is_signed_by(const BundlePublicKey& key, std::span<const std::byte> message,
                          const BundleSignature& signature) {
  const Result<const KilnEd25519*> by = ed25519();
  if (!by) return by.error();
  return (*by)->verify(raw(key), raw(message), message.size(), raw(signature)) == 1;
}

std::string hex_of(const BundlePublicKey& key) {
  Digest digest;
  std::memcpy(digest.bytes.data(), key.data(), key.size());
  return digest.hex();
}

std::optional<BundlePublicKey> public_key_from_hex(std::string_view hex) {
  const auto digest = Digest::from_hex(hex);
  if (!digest) return std::nullopt;
  BundlePublicKey key;
  std::memcpy(key.data(), digest->bytes.data(), key.size());
  return key;
}

Result<BundlePublicKey> read_trusted_key(const std::string& trust) {
  if (const auto key = public_key_from_hex(trust)) return *key;
  const Result<RegularFile> file = RegularFile::open(trust);
  if (trust.empty() || !file) {
    return invalid_argument("trusted key '" + trust +
                            "': is neither 64 hexadecimal digits nor a file that can be read" +
                            (trust.empty() ? "" : " (" + file.error().message + ")"));
  }
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(file->bytes(), key_digits + 1)), '\0');
  if (Status status = file->read(0, std::as_writable_bytes(std::span(text))); !status.ok()) {
    return status.within("trusted key");
  }
  const auto key = public_key_from_hex(std::string_view(text).substr(0, key_digits));
  if (!key ||
      (text.size() > key_digits && text[key_digits] != '\n' && text[key_digits] != '\r' && text[key_digits] != ' ')) {
    return invalid_argument("trusted key file " + trust + ": does not begin with a public key, 64 hexadecimal digits");
  }
  return *key;
}

}  // namespace kiln
