// Ed25519 signatures (RFC 8032), by OpenSSL's libcrypto, which stands in a module of its own that is opened at first
// use: OpenSSL's interface to them drags in all of its providers, whose relocations every start would pay for.
//
// Thread-safety: pure functions. Ownership: callers'; the module stays open until the process ends.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>

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

}  // namespace kiln
