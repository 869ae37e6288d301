#include "cache/bundle/bundle_key.hpp"

#include "cache/folder/key_file_place.hpp"

#include <kiln/digest.hpp>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <cstring>
#include <fstream>
#include <memory>

namespace kiln {
namespace {

constexpr std::size_t digits = 64;

struct FreeKey {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// What stands in a configuration file of OpenSSL's may load code: none is read.
void prepare() { OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr); }

Status failed(const char* what) { return internal_error(std::string("Ed25519: ") + what); }

Result<Key> secret_key(const SecretKey& secret) {
  prepare();
  Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, raw(secret.bytes), secret.bytes.size()));
  if (key == nullptr) return failed("the key cannot be used");
  return key;
}

}  // namespace

std::filesystem::path bundle_key_file(const CacheConfig& cache) {
  return std::filesystem::path(cache.key_file.string() + ".bundle");
}

Result<SecretKey> read_bundle_key(const CacheConfig& cache, IfMissing if_missing) {
  if (cache.key_file.empty()) return unavailable("no key file is configured");
  if (Status status = check_key_file_place(cache); !status.ok()) return status;
  return read_secret_key(bundle_key_file(cache), if_missing);
}

Result<BundlePublicKey> public_key_of(const SecretKey& secret) {
  const Result<Key> key = secret_key(secret);
  if (!key) return key.error();
  BundlePublicKey made;
  std::size_t size = made.size();
  if (EVP_PKEY_get_raw_public_key(key->get(), reinterpret_cast<unsigned char*>(made.data()), &size) != 1 ||
      size != made.size()) {
    return failed("the public key cannot be computed");
  }
  return made;
}

Result<BundleSignature> sign_bundle(const SecretKey& secret, std::span<const std::byte> message) {
  const Result<Key> key = secret_key(secret);
  if (!key) return key.error();
  const Context context(EVP_MD_CTX_new());
  BundleSignature signature;
  std::size_t size = signature.size();
  if (context == nullptr || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key->get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, raw(message),
                     message.size()) != 1 ||
      size != signature.size()) {
    return failed("signing failed");
  }
  return signature;
}

bool is_signed_by(const BundlePublicKey& key, std::span<const std::byte> message, const BundleSignature& signature) {
  prepare();
  const Key opened(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw(key), key.size()));
  const Context context(EVP_MD_CTX_new());
  return opened != nullptr && context != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, opened.get()) == 1 &&
         EVP_DigestVerify(context.get(), raw(signature), signature.size(), raw(message), message.size()) == 1;
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
  std::ifstream file(trust, std::ios::binary);
  std::string text(digits, '\0');
  if (trust.empty() || !file) {
    return invalid_argument("trusted key '" + trust +
                            "': is neither 64 hexadecimal digits nor a file that can be read");
  }
  file.read(text.data(), static_cast<std::streamsize>(digits));
  text.resize(static_cast<std::size_t>(file.gcount()));
  const int after = file.get();
  const auto key = public_key_from_hex(text);
  if (!key || (after != std::ifstream::traits_type::eof() && after != '\n' && after != '\r' && after != ' ')) {
    return invalid_argument("trusted key file " + trust + ": does not begin with a public key, 64 hexadecimal digits");
  }
  return *key;
}

}  // namespace kiln
