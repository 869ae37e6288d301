// CacheRoot: a cache folder opened from outside, with the area of programs that wait for persist.
//
// Thread-safety: any thread. Ownership: owns its descriptors. Nothing is made by opening it.
#pragma once

#include "base/os/private_folder.hpp"
#include "cache/disk_bound.hpp"
#include "cache/entry_format.hpp"

#include <kiln/buffer.hpp>
#include <kiln/cache_admin.hpp>
#include <kiln/digest.hpp>

#include <optional>
#include <string>
#include <vector>

namespace kiln {

inline constexpr const char* pending_name = "pending";  // the folder of programs that wait for persist

enum class Area : std::uint8_t { invalid = 0, stored, pending };

class CacheRoot {
 public:
  // Both areas absent where there is no folder yet.
  static Result<CacheRoot> open(const CacheConfig& cache);
  // The same for who is going to change something: invalid_argument where [cache] read_only says no.
  static Result<CacheRoot> open_to_write(const CacheConfig& cache);

  bool exists() const noexcept { return static_cast<bool>(stored_); }
  // -1: it is not there.
  int of(Area area) const noexcept { return area == Area::stored ? stored_.get() : pending_.get(); }

  Survey survey(Area area, Sweep sweep = Sweep::no) const;
  FileContents read_program(Area area, const std::string& folder, const Digest& digest) const;
  // The text of an entry's .meta; empty where there is none.
  std::string read_meta(Area area, const std::string& folder, const Digest& digest) const;
  // The label and figures of an entry, as far as its .meta tells.
  CachedProgram describe(Area area, const std::string& folder, const StoredEntry& entry) const;
  // What is suspect or quarantined, by label, then key.
  std::vector<AsideProgram> aside(const Survey& found) const;
  // Its name is that of a stored program again; where there is a newer one, that one stays.
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

// Whether a stored entry would be handed over, judged as the disk tier judges it, and why not.
//
// Thread-safety: pure. Ownership: values.

struct EntryVerdict {
  Rejection reason = Rejection::none;
  std::string why;  // empty where nothing is wrong
};

// The file of that name: read, its checksum, its authentication, its key material against its name, and its payload
// inflated. Only the driver's own judgement is left to a running job.
EntryVerdict judge(const FileContents& file, const Digest& name, const EntryKey& key);

}  // namespace kiln
