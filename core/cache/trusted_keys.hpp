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
#pragma once

#include "base/policy_names.hpp"
#include "cache/bundle_key.hpp"

#include <kiln/config.hpp>
#include <kiln/status.hpp>

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

namespace kiln {

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
