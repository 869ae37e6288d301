// CacheRoot: access to the files of a cache folder for administration, without a running cache.
//
// It covers the stored programs and the pending programs (those that wait for persist). It also verifies stored
// entries. Opening it creates no file or folder.
// Thread-safety: every method from any thread. Ownership: owns its descriptors.
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

}  // namespace kiln
