// PendingArea: programs that a cache with auto_save = false built and did not store: pending/ at the root of the cache,
// laid out as the root is, each entry signed as a stored one. No lookup goes there: publish_pending() stores them.
//
// Thread-safety: every method from any thread. Ownership: owns its descriptors; borrows the root's. Bounded in bytes as
// the cache is; what was set aside more than 30 days ago goes when the next program is. Nothing is made before that.
#pragma once

#include "cache/cache_root.hpp"
#include "cache/device_folder.hpp"
#include "cache/disk_bound.hpp"
#include "cache/entry_format.hpp"

#include <kiln/buffer.hpp>
#include <kiln/device.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace kiln {

inline constexpr std::int64_t pending_s = 30 * 24 * 3600;

class PendingArea {
 public:
  PendingArea(int root, std::uint64_t most_bytes) noexcept : root_(root), most_bytes_(most_bytes) {}

  // The bytes of a signed entry. Answers the folder it lies in, as long as this object lives.
  Result<DeviceFolder*> keep(const DeviceInfo& device, const Digest& digest, std::span<const std::byte> bytes);

 private:
  struct Opened {
    UniqueFd folder;
    DiskBound bound;
  };
  // REQUIRES: mutex_ is held.
  Result<Opened*> open();

  const int root_;
  const std::uint64_t most_bytes_;
  std::mutex mutex_;
  std::unique_ptr<Opened> opened_;
  std::map<std::string, std::unique_ptr<DeviceFolder>> folders_;
};

// Removes what was set aside longer ago than pending_s, in the folder `pending`.
void expire_pending(int pending, std::int64_t now_s);

// Storing what waits in pending/: each entry is read and authenticated again, and moves at one moment.
//
// Thread-safety: calls of the operating system; several processes may do it at once, and each entry is stored by one of
// them. Ownership: values.

enum class Publication : std::uint8_t {
  invalid = 0,
  stored,
  already,   // a sound entry of that key is stored: the pending one was removed
  rejected,  // it is not sound: removed
  gone,      // somebody else took it
};

struct Published {
  Publication outcome = Publication::invalid;
  std::uint64_t bytes = 0;  // of what was stored
  Rejection reason = Rejection::none;
  std::string why;
};

// REQUIRES: root.exists().
Result<Published> publish_pending(const CacheRoot& root, const std::string& folder, const Digest& digest,
                                  const EntryKey& key);

}  // namespace kiln
