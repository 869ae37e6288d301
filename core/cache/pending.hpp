// PendingArea: built programs that are not stored until persist, because of auto_save = false; and publish_pending(),
// which stores them.
//
// They are in pending/ in the cache folder, with the same layout and signed like stored entries. Lookups do not read
// them. Their total size has the same limit as the cache. Each keep() removes programs older than 30 days. The first
// keep() creates the folder.
// Thread-safety: every method from any thread; several processes may call publish_pending() at once, and one of them
// stores each entry. Ownership: owns its descriptors; borrows the descriptor of the root.
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

  // Writes a signed entry. Returns its folder, which is valid for the lifetime of this object.
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

// Removes programs older than pending_s from the folder `pending`.
void expire_pending(int pending, std::int64_t now_s);

enum class Publication : std::uint8_t {
  invalid = 0,
  stored,
  already,   // a valid entry of that key is already stored; the pending one was removed
  rejected,  // not valid; removed
  gone,      // another process moved or removed it
};

struct Published {
  Publication outcome = Publication::invalid;
  std::uint64_t bytes = 0;  // size of the stored entry
  Rejection reason = Rejection::none;
  std::string why;
};

// Authenticates a pending entry again and moves it to the stored programs atomically.
// REQUIRES: root.exists().
Result<Published> publish_pending(const CacheRoot& root, const std::string& folder, const Digest& digest,
                                  const EntryKey& key);

}  // namespace kiln
