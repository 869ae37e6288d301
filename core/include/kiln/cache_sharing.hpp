// Cache sharing: administers the keys, remotes and layers for shared programs.
//
// The argument `cache` is the [cache] section. No function opens a device. A named key of keys.d signs programs. Kiln uses
// only programs that a trusted key signed. docs/sharing-a-cache.md is the guide and has the threat model.
// Errors: invalid_argument: a wrong name, date or key. not_found: the key does not exist. unavailable: other users can
// write the folder, or the server does not answer.
// Thread-safety: functions from any thread. Ownership: values. Sizes are in bytes, times in milliseconds.
//
//   auto key = kiln::create_sharing_key(config.cache, "ci-2026", "2026-12-31", kiln::KeyFolder::user);
//   if (!key) return key.error();
//   std::cout << key->public_key << '\n';
#pragma once

#include <kiln/cache_admin.hpp>
#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/remote_store.hpp>
#include <kiln/status.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

// --- keys

enum class KeyFolder : std::uint8_t { invalid = 0, user, system };  // the last or the first of trust_folders

struct SharingKey {
  std::string name;
  std::string public_key;  // 64 hexadecimal digits
  std::string until;       // last valid day, "2026-12-31"; empty: no end
  bool revoked = false, expired = false;
  bool signs = false;  // the secret key is here
  std::filesystem::path file;
};

struct SharingKeys {
  std::vector<SharingKey> keys;
  std::vector<std::string> problems;  // files and folders that are not used, with the reason
};

SharingKeys sharing_keys(const CacheConfig& cache);
// Creates a key pair and trusts it. `until` may be empty. invalid_argument: the name is in use.
Result<SharingKey> create_sharing_key(const CacheConfig& cache, const std::string& name, const std::string& until,
                                      KeyFolder folder);
// Trusts the public key `key`: 64 hexadecimal digits, or a file that begins with them.
Result<SharingKey> trust_sharing_key(const CacheConfig& cache, const std::string& name, const std::string& key,
                                     const std::string& until, KeyFolder folder);
// Revokes the key: Kiln no longer uses programs that this key signed. Also removes the secret key.
Result<SharingKey> revoke_sharing_key(const CacheConfig& cache, const std::string& name, KeyFolder folder);

// --- remotes

using RemoteStores = std::map<std::string, RemoteStoreFactory>;  // by scheme; core adds "file"

struct PushOutcome {  // for one remote
  std::string url;
  std::uint64_t written = 0, bytes = 0;
  std::uint64_t already = 0;  // the remote has them, signed by a key that its readers accept
  // Written programs that replaced an object which this configuration does not accept, such as another writer's object.
  std::uint64_t replaced = 0;
  std::vector<BadEntry> bad;  // not valid here, or refused by the remote; not written
  Status failure;             // the first error
};

// Writes stored programs to every remote with mode = "read_write". `which` selects programs as in inspect_program(); empty:
// all programs. invalid_argument: no remote has this mode.
Result<std::vector<PushOutcome>> push_cache(const CacheConfig& cache, const RemoteStores& stores,
                                            std::span<const std::string> which, const CacheProgress& progress = {});

struct PullOutcome {  // for one remote
  std::string url;
  BundleImport stored;
  std::map<std::string, std::uint64_t> refused;  // objects that were not used, by reason
  Status failure;                                // the first error
};

// Reads the programs for these devices from every remote and stores them. invalid_argument: no remote is configured.
Result<std::vector<PullOutcome>> pull_cache(const CacheConfig& cache, const RemoteStores& stores,
                                            std::span<const DeviceInfo> devices, const CacheProgress& progress = {});

// Counts of the reads from one remote and the writes to it, by all processes of this user.
struct RemoteTotals {
  std::uint64_t found = 0, absent = 0;  // programs that were requested
  std::uint64_t refused = 0;            // objects that were not used
  std::uint64_t failed = 0;             // requests without an answer, or with an error
  std::uint64_t written = 0, write_failed = 0;
  std::uint64_t bytes_read = 0, bytes_written = 0;  // of objects

  bool operator==(const RemoteTotals&) const = default;
};

// Returns the names and members of RemoteTotals in the order of reports.
std::span<const std::pair<const char*, std::uint64_t RemoteTotals::*>> remote_total_names() noexcept;

struct RemoteStatus {
  std::string url;
  bool writes = false;
  std::vector<SharingKey> accepted;   // keys whose programs are used
  std::vector<std::string> problems;  // such as writers that are not trusted
  Status answer;                      // result of the request of remote_status()
  double answer_ms = 0;
  std::uint64_t failures = 0;  // in a row, of all processes
  double closed_for_ms = 0;    // until the next attempt; 0: requests are sent
  double round_trip_ms = 0;    // typical; 0: unknown
  RemoteTotals totals;
};

// Returns the stored state of each remote without a request.
std::vector<RemoteStatus> known_remotes(const CacheConfig& cache);
// Sends one request to each remote.
std::vector<RemoteStatus> remote_status(const CacheConfig& cache, const RemoteStores& stores);

// --- tuning records

struct TuningOutcome {  // for one remote
  std::string url;
  std::string text;                              // of TuningExchange; pull: empty if the remote has none that is accepted
  std::map<std::string, std::uint64_t> refused;  // objects that were not used, by reason
  Status failure;
};

// Signs the winners for the device and writes them to every remote with mode = "read_write". They replace the winners of
// the remote. text: from TuningExchange::winners_text(). invalid_argument: no remote has this mode.
Result<std::vector<TuningOutcome>> push_tuning(const CacheConfig& cache, const RemoteStores& stores,
                                               const DeviceInfo& device, std::string_view text);

// Reads the winners for the device from every remote. invalid_argument: no remote is configured.
Result<std::vector<TuningOutcome>> pull_tuning(const CacheConfig& cache, const RemoteStores& stores,
                                               const DeviceInfo& device);

// --- layers

struct LayerRequest {
  std::filesystem::path folder;    // created if it is missing
  std::string sign_with;           // name of a key in keys.d
  std::vector<std::string> which;  // as for inspect_program(); empty: all stored programs
  std::filesystem::path bundle;    // source of the programs; empty: the cache
  std::string trust;               // for the bundle, as in ImportRequest
  CacheProgress progress = {};
};

struct LayerOutcome {
  std::uint64_t programs = 0, bytes = 0;
  std::vector<BadEntry> bad;  // not valid; not written
};

// Writes a layer: a folder of programs that one key signed.
Result<LayerOutcome> create_layer(const CacheConfig& cache, const LayerRequest& request);

}  // namespace kiln
