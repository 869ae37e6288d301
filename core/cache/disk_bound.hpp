// Disk usage of a cache folder: surveys its files (survey), shares the total between processes (DiskUseFile), and
// limits it (DiskBound).
//
// A cache hit runs none of this. Other processes may add and remove files at any time.
// Thread-safety: functions and values are stateless; see each class. Ownership: classes borrow the root's descriptor.
#pragma once

#include "base/os/file_lock.hpp"

#include <kiln/digest.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

inline constexpr std::string_view quarantined_suffix = ".quarantined";  // suffix of a program that was set aside
inline constexpr std::int64_t quarantine_s = 7 * 24 * 3600;             // duration of the quarantine

inline constexpr std::string_view suspect_suffix = ".suspect";  // of a program that was being loaded at a crash
inline constexpr std::int64_t second_death_s = 3600;            // two crashes within it: quarantine (no trial load)

// One program: DEVICE/hh/DIGEST.bin and DEVICE/hh/DIGEST.meta.
struct StoredEntry {
  std::size_t folder = 0;  // index into Survey::folders
  Digest digest;
  std::uint64_t bytes = 0;        // of both files together
  std::int64_t last_used_ns = 0;  // since 1970: the later modification time of both files
  bool program = false;           // false: only the .meta file exists
};

struct AsideEntry {  // DEVICE/hh/DIGEST.quarantined or .suspect
  std::size_t folder = 0;
  Digest digest;
  bool quarantined = false;  // false: suspect
  std::int64_t since_s = 0;  // since 1970
};

struct Survey {
  std::vector<std::string> folders;
  std::vector<StoredEntry> entries;
  std::vector<AsideEntry> aside;
  std::uint64_t bytes = 0;
  Status failure;  // the first folder that could not be opened; what is in it is not counted
};

enum class Sweep : std::uint8_t { invalid = 0, no, yes };

// Sweep::yes also removes temporary files older than ten minutes (left by killed processes) and programs that were set
// aside more than a week ago.
Survey survey(int root, Sweep sweep);

// Removes least recently used entries until at most `bytes` bytes remain. Returns the number of entries removed, at
// most 4096 per call.
std::size_t prune(int root, Survey& found, std::uint64_t bytes);

// Removes both files of an entry. A missing file is not an error.
Status remove_entry(int root, const std::string& folder, const Digest& digest);

bool is_subfolder_name(std::string_view name) noexcept;                   // "hh"
bool is_stored_file_name(std::string_view name) noexcept;                 // "DIGEST.bin", "DIGEST.meta"
std::string subfolder_of(const Digest& digest);                           // "hh"
std::string file_name_of(const Digest& digest, std::string_view suffix);  // "DIGEST.bin"

// Name of the file that holds the shared DiskUse, in text of fixed width (docs/cache-format.md).
inline constexpr const char* disk_use_name = "disk_use.lock";

// The total size of the stored programs.
struct DiskUse {
  std::uint64_t programs = 0;   // bytes in the device folders
  std::uint64_t published = 0;  // bytes ever published by the processes that share the file
  std::uint64_t walked = 0;     // value of `published` when the last survey began

  std::uint64_t since_walk() const noexcept { return published - walked; }
  void add(std::uint64_t bytes) noexcept;
  void remove(std::uint64_t bytes) noexcept;
};

// The DiskUse that all processes of one cache folder share, so that each needs fewer surveys. Holds the file's lock
// until destroyed, so destroy it soon. The value is an estimate; a survey corrects it.
class DiskUseFile {
 public:
  // nullopt: the lock timed out, or the filesystem has no usable locks.
  static std::optional<DiskUseFile> take(int root);
  // Reads the value without the lock, and makes no file. nullopt: there is none.
  static std::optional<DiskUse> peek(int root);

  // nullopt: no process has written a value yet.
  std::optional<DiskUse> read() const;
  // Failures are ignored: other processes then run a survey.
  void write(const DiskUse& use) const noexcept;

 private:
  static std::optional<DiskUse> use_of(std::string_view text);
  explicit DiskUseFile(BriefLock lock) noexcept : lock_(std::move(lock)) {}

  BriefLock lock_;
};

// Name of the file that a process locks during a survey.
inline constexpr const char* disk_walk_name = "disk_walk.lock";

enum class Figure : std::uint8_t {
  invalid = 0,
  shared,  // shared with all processes that use the folder: the bound limits their total
  own,     // private: this process sees the writes of other processes at its next survey
};

// Limits the total size of the programs in one cache folder.
//
// The size comes from a survey at the first use and after each write of one eighth of the bound. Between surveys it is
// updated by counting, including the writes of other processes if Figure::shared. Only one process surveys at a time.
// Above the bound it removes least recently used entries until seven eighths of the bound remain. Opening a cache runs
// no survey.
// Thread-safety: every method from any thread. Ownership: borrows the root's descriptor.
class DiskBound {
 public:
  DiskBound(int root, std::uint64_t most_bytes, Figure figure = Figure::shared) noexcept
      : root_(root), most_bytes_(most_bytes), figure_(figure) {}

  // Call after publishing `bytes` bytes. Returns the number of entries evicted.
  std::size_t published(std::uint64_t bytes);
  void removed(std::uint64_t bytes);
  // Where this process has neither published nor surveyed: what the processes that share the folder counted last, or a
  // survey if there is no such value.
  std::uint64_t bytes();

 private:
  // Changes of this process that are not in the shared file yet.
  struct Untold {
    std::uint64_t published = 0, removed = 0;
  };

  enum class Told : std::uint8_t {
    invalid = 0,
    known,    // use_ is current, except for changes not yet written by other processes
    unknown,  // no survey since the shared value was lost, or none by this process
    alone,    // the shared file is missing or could not be locked
  };

  // Adds the changes of this process to the shared file and reads those of other processes.
  Told tell();
  bool is_walk_due(Told told) const noexcept;
  // Runs a survey and evicts entries above the bound.
  std::size_t walk(Told told);
  // Sets use_ from a survey result, plus the bytes published since the survey began (`published_before`).
  void settle(DiskUse found, std::uint64_t published_before);

  const int root_;
  const std::uint64_t most_bytes_;
  const Figure figure_;
  std::mutex mutex_;
  std::optional<DiskUse> use_;  // nullopt: no survey and no shared value yet
  bool surveyed_ = false;
  Untold untold_;
};

}  // namespace kiln
