// The module: the one place that sees OpenSSL's EVP interface.
#include "cache/signing_keys.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <memory>

namespace {

constexpr std::size_t key_bytes = 32, signature_bytes = 64;

struct FreeKey {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

// What stands in a configuration file of OpenSSL's may load code: none is read.
void prepare() { OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr); }

Key secret_key(const unsigned char* secret) {
  prepare();
  return Key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, secret, key_bytes));
}

int public_key(const unsigned char* secret, unsigned char* made) {
  const Key key = secret_key(secret);
  std::size_t size = key_bytes;
  return key != nullptr && EVP_PKEY_get_raw_public_key(key.get(), made, &size) == 1 && size == key_bytes ? 1 : 0;
}

int sign(const unsigned char* secret, const unsigned char* message, std::size_t bytes, unsigned char* signature) {
  const Key key = secret_key(secret);
  const Context context(EVP_MD_CTX_new());
  std::size_t size = signature_bytes;
  return key != nullptr && context != nullptr &&
                 EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
                 EVP_DigestSign(context.get(), signature, &size, message, bytes) == 1 && size == signature_bytes
             ? 1
             : 0;
}

int verify(const unsigned char* with, const unsigned char* message, std::size_t bytes, const unsigned char* signature) {
  prepare();
  const Key key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, with, key_bytes));
  const Context context(EVP_MD_CTX_new());
  return key != nullptr && context != nullptr &&
                 EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
                 EVP_DigestVerify(context.get(), signature, signature_bytes, message, bytes) == 1
             ? 1
             : 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const KilnEd25519 kiln_ed25519 = {public_key, sign, verify};
