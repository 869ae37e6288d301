// RemoteEndpoint: one configured remote with its keys, its store, its breaker and what is known of its index.
//
// Opening an endpoint reads the trusted keys; the store is opened, and its library loaded, at the first request.
// Thread-safety: every method from any thread. Ownership: owns the store.
#pragma once

#include "cache/bundle_format.hpp"
#include "cache/remote_state.hpp"
#include "cache/signing_keys.hpp"

#include <kiln/cache_sharing.hpp>
#include <kiln/config.hpp>
#include <kiln/log.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/remote_store.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kiln {

// Counters of everything shared. Thread-safe as a whole: each change locks.
class SharedCounters {
 public:
  template <class Change>
  void change(const Change& change) {
    const std::lock_guard lock(mutex_);
    change(counts_);
  }
  SharedCounts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  SharedCounts counts_;
};

// A program that a remote is asked for.
struct AskedProgram {
  std::string folder;  // device folder
  Digest key;
  std::optional<std::string> material{};  // nullopt: unknown; the caller checks what arrives

  std::string name() const { return object_name(folder, key); }
};

class RemoteEndpoint {
 public:
  using Stores = std::map<std::string, RemoteStoreFactory>;

  RemoteEndpoint(Log log, RemoteConfig config, const CacheConfig& cache, std::shared_ptr<CurrentKeys> trusted,
                 const Stores& stores);

  const RemoteConfig& config() const noexcept { return config_; }
  std::vector<TrustedKey> accepted() const;  // as trust.d has them now
  // Why parts of the configuration have no effect: unknown keys, a missing secret key.
  const std::vector<std::string>& problems() const noexcept { return problems_; }
  // Whether a key was accepted, or could sign, when the endpoint was opened.
  bool reads() const noexcept { return reads_; }
  bool writes() const noexcept { return signer_.has_value(); }
  // The key that signs what is written. invalid_argument: it has ended or was revoked. REQUIRES: writes()
  Result<SecretKey> signer() const;
  RemoteBreaker& breaker() noexcept { return breaker_; }

  // unsupported: no plugin has a store for this URL.
  Result<RemoteStore*> store();
  // nullptr: the store has no leases.
  RemoteLeases* leases();

  struct Fetched {
    std::optional<SharedProgram> program;  // nullopt: the remote does not have it, or it was not used
    bool is_absent = false;                // the remote answered that it does not have it
  };
  // Fetches, checks and counts one program.
  Fetched fetch(const AskedProgram& asked, const RemoteLimits& limits, SharedCounters& counters);
  // Likewise for several; calls on_program for each accepted one, on this thread.
  using OnProgram = std::function<void(std::size_t place, SharedProgram program)>;
  Status fetch_many(std::span<const AskedProgram> asked, const RemoteLimits& limits, SharedCounters& counters,
                    const OnProgram& on_program);
  Status put(const std::string& name, std::span<const std::byte> object, const RemoteLimits& limits);

  // What the index says of a program. unknown: there is no index, or it is older than a minute.
  enum class Known : std::uint8_t { unknown = 0, present, absent };
  Known look_up(const std::string& folder, const Digest& key, std::uint64_t& build_ns);
  // True to one caller: the index of the folder is to be fetched with refresh_index().
  bool wants_index(const std::string& folder);
  Status refresh_index(const std::string& folder, const RemoteLimits& limits);

  // Sends one small request, to learn whether the server answers.
  Status probe(const RemoteLimits& limits);

  // Typical time of one request, 0 if unknown; and of a slow one.
  std::uint64_t round_trip_ns();
  std::uint64_t slow_answer_ns();
  // How long an answer may take before a build of this length starts beside it.
  std::uint64_t patience_ns(std::uint64_t expected_build_ns);
  void answered(std::uint64_t took_ns);
  bool has_answered();  // a request of this process
  // Saves the measured times for other processes, and adds what was counted since to the totals of the remote.
  void save();

 private:
  struct FolderIndex {
    std::uint64_t fetched_ns = 0, wanted_ns = 0;  // 0: never
    std::optional<RemoteIndex> index;             // nullopt: the store has none
  };

  // Tells the breaker how a request ended.
  void judge(const Status& status);
  void count(std::uint64_t RemoteTotals::*what, std::uint64_t by = 1);
  std::optional<SharedProgram> opened(std::span<const std::byte> bytes, const AskedProgram& asked,
                                      SharedCounters& counters);

  const Log log_;
  const RemoteConfig config_;
  const std::vector<std::filesystem::path> trust_folders_;
  const std::filesystem::path totals_folder_;  // empty: nothing is saved
  const std::shared_ptr<CurrentKeys> trusted_;
  bool reads_ = false;
  std::optional<SecretKey> signer_;
  std::vector<std::string> problems_;
  RemoteStoreFactory make_;
  RemoteBreaker breaker_;
  Inflaters inflaters_;

  std::mutex mutex_;
  std::unique_ptr<RemoteStore> store_;   // null: not opened yet
  std::optional<Status> unusable_;       // set if opening failed
  std::optional<Status> write_refused_;  // by the server, which answers reads: nothing more is written
  std::map<std::string, FolderIndex> indexes_;
  std::array<std::uint64_t, 64> answers_ns_{};  // ring of the latest
  std::size_t answers_ = 0;
  RemoteTotals unsaved_;  // guarded by mutex_
  bool warned_ = false;   // about an object that was not used
  std::atomic<unsigned> bad_in_a_row_{0};
};

inline constexpr std::uint64_t unknown_build_ns = 200'000'000;  // expected build time without any information
inline constexpr std::chrono::milliseconds request_patience{250};

// Layers: read-only folders with signed programs, below the writable cache folder ([cache] layers).
//
// A layer is a folder DEVICE_FOLDER/DIGEST of shared objects (bundle_format.hpp). It has no index: a program is opened
// by its name, so opening a layer costs nothing, whatever its size.
// Thread-safety: every method from any thread. Ownership: values; borrows the counters.

class Layers {
 public:
  // Accepts the keys in [cache] layer_writers, or all trusted keys if it is empty.
  Layers(Log log, const CacheConfig& cache, std::shared_ptr<CurrentKeys> trusted);

  bool exist() const noexcept { return !folders_.empty(); }
  // The first layer with an object that is accepted. A bad object is counted and logged, and the next layer is tried.
  std::optional<SharedProgram> find(const AskedProgram& asked, SharedCounters& counters);
  // Whether a layer has a file for the program. Does not read it.
  bool holds(const AskedProgram& asked) const;

 private:
  const Log log_;
  const std::vector<std::filesystem::path> folders_;
  const std::vector<std::string> writers_;
  const std::shared_ptr<CurrentKeys> trusted_;
  Inflaters inflaters_;
  std::atomic<bool> warned_{false};
};

}  // namespace kiln
