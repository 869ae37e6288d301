// CacheRoot: access to the files of a cache folder for administration, without a running cache.
//
// It covers the stored programs and the pending programs (those that wait for persist). It also verifies stored
// entries. Opening it creates no file or folder.
// Thread-safety: every method from any thread. Ownership: owns its descriptors.
#pragma once

#include "base/os/private_folder.hpp"
#include "cache/device_folder.hpp"
#include "cache/disk_bound.hpp"
#include "cache/entry_format.hpp"

#include <kiln/buffer.hpp>
#include <kiln/cache_admin.hpp>
#include <kiln/device.hpp>
#include <kiln/digest.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln {

inline constexpr const char* pending_name = "pending";  // folder of the programs that wait for persist

enum class Area : std::uint8_t { invalid = 0, stored, pending };

class CacheRoot {
 public:
  // If the folder does not exist, both areas are absent.
  static Result<CacheRoot> open(const CacheConfig& cache);
  // Opens for changes. invalid_argument: [cache] read_only is set.
  static Result<CacheRoot> open_to_write(const CacheConfig& cache);

  bool exists() const noexcept { return static_cast<bool>(stored_); }
  // Descriptor of the area, or -1 if it does not exist.
  int of(Area area) const noexcept { return area == Area::stored ? stored_.get() : pending_.get(); }

  Survey survey(Area area, Sweep sweep = Sweep::no) const;
  FileContents read_program(Area area, const std::string& folder, const Digest& digest) const;
  // Returns the text of the entry's .meta file, or an empty string if there is none.
  std::string read_meta(Area area, const std::string& folder, const Digest& digest) const;
  // Returns the label and the metrics of an entry, as far as its .meta file has them.
  CachedProgram describe(Area area, const std::string& folder, const StoredEntry& entry) const;
  // Returns the suspect and quarantined programs, sorted by label, then by key.
  std::vector<AsideProgram> aside(const Survey& found) const;
  // Restores the program under its stored name. If a newer program has that name, the newer one remains.
  Status release(const AsideProgram& program) const;
  FileContents read_aside(const AsideProgram& program) const;
  CacheDevice device(Area area, const std::string& folder) const;

 private:
  FileContents read(Area area, const std::string& folder, const Digest& digest, const char* suffix,
                    std::uint64_t most_bytes) const;

  UniqueFd stored_;
  UniqueFd pending_;
};

inline constexpr Area areas[] = {Area::stored, Area::pending};

struct EntryVerdict {
  Rejection reason = Rejection::none;
  std::string why;  // empty if the entry is valid
};

// Verifies an entry: readable file, checksum, authentication, key material against the file name, and decompression.
// The driver may still refuse the program when a process loads it.
EntryVerdict judge(const FileContents& file, const Digest& name, const EntryKey& key);

// PendingArea: built programs that are not stored until persist, because of auto_save = false; and publish_pending(),
// which stores them.
//
// They are in pending/ in the cache folder, with the same layout and signed like stored entries. Lookups do not read
// them. Their total size has the same limit as the cache. Each keep() removes programs older than 30 days. The first
// keep() creates the folder.
// Thread-safety: every method from any thread; several processes may call publish_pending() at once, and one of them
// stores each entry. Ownership: owns its descriptors; borrows the descriptor of the root.

inline constexpr std::int64_t pending_s = 30 * 24 * 3600;

class PendingArea {
 public:
  PendingArea(int root, std::uint64_t most_bytes) noexcept : root_(root), most_bytes_(most_bytes) {}

  // Writes a signed entry. Returns its folder, which is valid for the lifetime of this object.
  Result<DeviceFolder*> keep(const DeviceInfo& device, const Digest& digest, std::span<const std::byte> bytes);
  // Removes an entry that this object wrote to the device folder of that name.
  void remove(const std::string& folder, const Digest& digest);

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
