// RemoteStore: untrusted storage of signed programs that machines share, such as a web server, Redis or a folder.
//
// A store only moves bytes. The cache authenticates every object, so a store need not check anything. A plugin
// registers its stores by the scheme of their URLs (Registry::add_remote); [[cache.remote]] chooses one by its URL.
// Errors: timeout: the deadline passed; cancelled: `stop` became true; unavailable: the server cannot be used now;
// unsupported or invalid_argument: it will never work with this URL. A missing object is no error.
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
  std::uint64_t most_bytes = most_object_bytes;                      // of one object: more is an error, and is not read
  const std::atomic<bool>* stop = nullptr;  // ends the call within 20 ms when it becomes true; null: never
};

// The objects that a store has for one device folder, and what each cost to build. Sorted by key.
struct RemoteIndexEntry {
  Digest key;
  std::uint64_t build_ns = 0;  // 0: unknown
  bool operator==(const RemoteIndexEntry&) const = default;
};
using RemoteIndex = std::vector<RemoteIndexEntry>;

// The format of the object "FOLDER/index": magic "KILNINDX" · u32 schema · u32 entries · 40 bytes an entry, sorted.
// It is not signed: a wrong index costs a request or a build, and never a wrong program. corrupt: not such an object.
std::vector<std::byte> encode_remote_index(const RemoteIndex& index);
Result<RemoteIndex> decode_remote_index(std::span<const std::byte> bytes);
// Returns the union, sorted; an entry of `more` replaces the other.
RemoteIndex merged_index(const RemoteIndex& index, const RemoteIndex& more);
// The name of the index of a device folder.
std::string remote_index_name(std::string_view folder);

class RemoteStore {
 public:
  RemoteStore() = default;
  RemoteStore(const RemoteStore&) = delete;
  RemoteStore& operator=(const RemoteStore&) = delete;
  virtual ~RemoteStore();

  // Names have the form "FOLDER/NAME" of letters, digits, '_', '-' and '.'; no part begins with '.'.
  // nullopt: the store does not have it.
  virtual Result<std::optional<std::vector<std::byte>>> get(const std::string& name,
                                                            const RemoteLimits& limits) noexcept = 0;
  // Requests several objects together. Calls on_object for each one that arrives, on this thread; `place` is its
  // place in `names`. Objects that arrived before a failure count. The default calls get().
  using OnObject = std::function<void(std::size_t place, std::vector<std::byte> bytes)>;
  virtual Status get_many(std::span<const std::string> names, const RemoteLimits& limits,
                          const OnObject& on_object) noexcept;
  // Replaces the object as a whole: a reader gets the old bytes or the new ones. invalid_argument: the store takes no
  // such object, for example one of this size, and may take others.
  virtual Status put(const std::string& name, std::span<const std::byte> bytes,
                     const RemoteLimits& limits) noexcept = 0;
  // nullopt: the store has no index of this folder. The default reads the object FOLDER/index.
  virtual Result<std::optional<RemoteIndex>> index(const std::string& folder, const RemoteLimits& limits) noexcept;
  // Adds objects that put() has stored. The default reads, merges and replaces the object FOLDER/index; entries that
  // another writer adds at the same time may be lost. corrupt: the index is damaged, and was left as it is.
  virtual Status add_to_index(const std::string& folder, const RemoteIndex& more, const RemoteLimits& limits) noexcept;
  // How long the server wants no requests, from its last failure. The default is 0: it did not say.
  virtual std::chrono::seconds retry_after() const noexcept;
};

// A store with leases: one client at a time builds a program. Query a RemoteStore for it with dynamic_cast.
class RemoteLeases {
 public:
  RemoteLeases() = default;
  RemoteLeases(const RemoteLeases&) = delete;
  RemoteLeases& operator=(const RemoteLeases&) = delete;
  virtual ~RemoteLeases();

  // `token` identifies the holder. The lease ends by itself after `life`. false: another client holds it.
  virtual Result<bool> acquire(const std::string& name, const std::string& token, std::chrono::milliseconds life,
                               const RemoteLimits& limits) noexcept = 0;
  // false: it is no longer this holder's.
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
  std::string layout = "plain";  // "bazel": names as the HTTP protocol of Bazel has them
};

using RemoteStoreFactory = std::function<Result<std::unique_ptr<RemoteStore>>(const RemoteContext&)>;

// The store of file:// URLs: a folder, for example on a network file system. It opens nothing before the first call.
Result<std::unique_ptr<RemoteStore>> open_file_store(const RemoteContext& context);

}  // namespace kiln
