// Keys that sign programs: a key pair, and the keys that are trusted.
//
// Bundle keys: the Ed25519 (RFC 8032) key pair that signs bundles, with OpenSSL's libcrypto.
//
// libcrypto's Ed25519 is linked into a separate module that is loaded at first use. Otherwise its relocations would
// slow down every start.
// Thread-safety: functions from any thread. Ownership: values; the module remains loaded until the process ends.
#pragma once

#include "base/policy_names.hpp"
#include "base/secret_key.hpp"

#include <kiln/config.hpp>
#include <kiln/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// Trusted keys: the named Ed25519 keys that may sign shared programs, and the credentials of remotes.
//
// They are read only from the folders in CacheConfig::trust_folders, which a configuration file cannot change. The
// folder and its files must belong to root or this user and be writable by nobody else.
//
//   trust.d/NAME.key        lines "public 64 DIGITS", "until YYYY-MM-DD", "revoked YYYY-MM-DD" (the last two optional)
//   keys.d/NAME.secret      the 32 bytes of the secret key, under the rules of base/secret_key.hpp
//   credentials.d/NAME      lines "url PREFIX" and "WORD VALUE"; readable by nobody else
//
// A name in an earlier folder hides it in a later one. A key that is revoked in any folder is revoked.
// Thread-safety: functions from any thread. Ownership: values.

struct TrustedKey {
  std::string name;
  BundlePublicKey key{};
  std::optional<std::int64_t> until_s;  // end of the last valid day, seconds since 1970
  bool revoked = false;
  std::filesystem::path file;
};

struct TrustedKeys {
  std::vector<TrustedKey> keys;       // by folder, then by name
  std::vector<std::string> problems;  // folders and files that were not used, with the reason

  const TrustedKey* find(std::string_view name) const noexcept;
};

// A file that cannot be used may hold a revocation: neither its name nor the key in it is used, in any folder. Of a
// folder that cannot be opened the same is true of all keys.
TrustedKeys read_trusted_keys(std::span<const std::filesystem::path> folders);

// The keys with these names; all keys if there are no names. A missing name is added to `problems`.
std::vector<TrustedKey> chosen_keys(const TrustedKeys& all, std::span<const std::string> names,
                                    std::vector<std::string>& problems);

// The trusted keys of running work: read again when a second has passed, so that a revocation or an end that is written
// meanwhile counts. Thread-safety: every method from any thread.
class CurrentKeys {
 public:
  explicit CurrentKeys(std::vector<std::filesystem::path> folders);
  std::shared_ptr<const TrustedKeys> get();

 private:
  const std::vector<std::filesystem::path> folders_;
  std::mutex mutex_;
  std::shared_ptr<const TrustedKeys> keys_;  // guarded by mutex_, also the next
  std::uint64_t read_ns_ = 0;
};

// "2027-01-31" as the end of that day in UTC, seconds since 1970. nullopt: not a date.
std::optional<std::int64_t> end_of_date(std::string_view date);
std::string date_text(std::int64_t seconds);  // of a time, in UTC: "2027-01-31"

std::string encode_trusted_key(const TrustedKey& key, std::int64_t now_s);
// corrupt: the error names the line.
Result<TrustedKey> decode_trusted_key(std::string_view text);

// Reads the secret key of this name from the first folder that has it. not_found: none has.
Result<SecretKey> read_signing_key(std::span<const std::filesystem::path> folders, const std::string& name);

// invalid_argument: trust.d names the signer's public key only as ended or revoked, so no reader would use what it
// signs.
Status check_signer(const TrustedKeys& trusted, const SecretKey& signer, const std::string& name);

// Returns the words and values of the credentials file, without "url". invalid_argument: `url` does not begin with the
// file's url, so that no configuration can send them to another server. corrupt: a word that no remote knows, or one
// that stands twice.
Result<std::map<std::string, std::string>> read_credentials(std::span<const std::filesystem::path> folders,
                                                            const std::string& name, std::string_view url);

// The same from KILN_REMOTE_USER, KILN_REMOTE_PASSWORD and KILN_REMOTE_TOKEN, if `url` begins with KILN_REMOTE_URL.
// Otherwise empty.
std::map<std::string, std::string> environment_credentials(std::string_view url);

// Returns whether the url is the prefix, or goes on behind it with '/'.
bool is_below_url(std::string_view url, std::string_view prefix) noexcept;

}  // namespace kiln
