// RemoteStore: untrusted storage of signed programs that machines share, such as a web server, Redis or a folder.
//
// A store only moves bytes. The cache authenticates every object, so a store need not check anything. A plugin registers
// a store by the scheme of its URLs (Registry::add_remote). The URL of a [[cache.remote]] selects the store.
// Errors: timeout: the deadline passed. cancelled: `stop` became true. unavailable: the server cannot be used now.
// unsupported or invalid_argument: the store can never work with this URL. A missing object is not an error.
// Thread-safety: every method from any thread. Ownership: the caller owns the store and the limits.
//
//   auto store = kiln::open_file_store({.log = {}, .url = "file:///mnt/share"});
//   if (!store) return store.error();
//   const kiln::RemoteLimits limits{.deadline = kiln::Deadline::after(std::chrono::seconds(1))};
//   auto object = (*store)->get("folder/name", limits);
//   if (object && *object) std::cout << (*object)->size() << " bytes\n";
#pragma once

#include <kiln/clock.hpp>
#include <kiln/digest.hpp>
#include <kiln/log.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

inline constexpr std::uint64_t most_object_bytes = 64ull << 20;

struct RemoteLimits {
  Deadline deadline;
  std::chrono::nanoseconds connect = std::chrono::milliseconds(50);  // for a new connection
  std::uint64_t most_bytes = most_object_bytes;                      // of one object; a larger object is an error
  const std::atomic<bool>* stop = nullptr;  // ends the call within 20 ms when it becomes true; null: never
};

// One object that a store has for a device folder, with its build time. An index is sorted by key.
struct RemoteIndexEntry {
  Digest key;
  std::uint64_t build_ns = 0;  // 0: unknown
  bool operator==(const RemoteIndexEntry&) const = default;
};
using RemoteIndex = std::vector<RemoteIndexEntry>;

// Write and read the object "FOLDER/index": magic "KILNINDX" · u32 schema · u32 entries · 40 bytes per entry, sorted.
// The index is not signed. A wrong index causes an unnecessary request or build, but never a wrong program. corrupt: the
// bytes are not an index.
std::vector<std::byte> encode_remote_index(const RemoteIndex& index);
Result<RemoteIndex> decode_remote_index(std::span<const std::byte> bytes);
// Returns the sorted union. An entry of `more` replaces an entry of `index` with the same key.
RemoteIndex merged_index(const RemoteIndex& index, const RemoteIndex& more);
// Returns the object name of the index of a device folder.
std::string remote_index_name(std::string_view folder);

class RemoteStore {
 public:
  RemoteStore() = default;
  RemoteStore(const RemoteStore&) = delete;
  RemoteStore& operator=(const RemoteStore&) = delete;
  virtual ~RemoteStore();

  // Reads an object. nullopt: the store does not have it. Names have the form "FOLDER/NAME" with letters, digits, '_', '-'
  // and '.'; no part begins with '.'.
  virtual Result<std::optional<std::vector<std::byte>>> get(const std::string& name,
                                                            const RemoteLimits& limits) noexcept = 0;
  // Requests several objects together. Calls on_object on this thread for each object that arrives, also before a failure.
  // place: the index of the object in `names`. The default calls get().
  using OnObject = std::function<void(std::size_t place, std::vector<std::byte> bytes)>;
  virtual Status get_many(std::span<const std::string> names, const RemoteLimits& limits,
                          const OnObject& on_object) noexcept;
  // Replaces the object atomically: a reader gets the old bytes or the new bytes. invalid_argument: the store rejects this
  // object, for example because of its size, but may accept other objects.
  virtual Status put(const std::string& name, std::span<const std::byte> bytes,
                     const RemoteLimits& limits) noexcept = 0;
  // Reads the index of a folder. nullopt: the store has no index of this folder. The default reads the object FOLDER/index.
  virtual Result<std::optional<RemoteIndex>> index(const std::string& folder, const RemoteLimits& limits) noexcept;
  // Adds objects that put() has stored. The default reads, merges and replaces the object FOLDER/index; entries that
  // another writer adds at the same time may be lost. corrupt: the index is damaged and was not changed.
  virtual Status add_to_index(const std::string& folder, const RemoteIndex& more, const RemoteLimits& limits) noexcept;
  // Returns the time that the server's last failure requires clients to wait before the next request. 0 (the default): none.
  virtual std::chrono::seconds retry_after() const noexcept;
};

// A store with leases, so that only one client at a time builds a program. Query a RemoteStore for it with dynamic_cast.
class RemoteLeases {
 public:
  RemoteLeases() = default;
  RemoteLeases(const RemoteLeases&) = delete;
  RemoteLeases& operator=(const RemoteLeases&) = delete;
  virtual ~RemoteLeases();

  // `token` identifies the holder. The lease ends after `life` without release(). false: another client holds the lease.
  virtual Result<bool> acquire(const std::string& name, const std::string& token, std::chrono::milliseconds life,
                               const RemoteLimits& limits) noexcept = 0;
  // false: this holder no longer holds the lease.
  virtual Result<bool> renew(const std::string& name, const std::string& token, std::chrono::milliseconds life,
                             const RemoteLimits& limits) noexcept = 0;
  // Does nothing if another client holds the lease.
  virtual Status release(const std::string& name, const std::string& token, const RemoteLimits& limits) noexcept = 0;
};

// Arguments of a store factory.
struct RemoteContext {
  Log log{};
  std::string url{};  // without a user or a password
  // From the credentials file of the remote: user, password, token, certificate, private_key, authority, access_key,
  // secret_key, session_token, region.
  std::map<std::string, std::string> credentials{};
  std::string layout = "plain";  // "bazel": object names as in Bazel's HTTP cache protocol
};

using RemoteStoreFactory = std::function<Result<std::unique_ptr<RemoteStore>>(const RemoteContext&)>;

// Creates the store for file:// URLs: a folder, for example on a network file system. The store opens nothing before its
// first call.
Result<std::unique_ptr<RemoteStore>> open_file_store(const RemoteContext& context);

}  // namespace kiln
