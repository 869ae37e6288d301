// survey: a walk over everything stored below a cache folder, for its bounds and its figures. Never on the way of a
// hit.
//
// Thread-safety: pure calls of the operating system; other processes may add and remove meanwhile. Ownership: values.
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

inline constexpr std::string_view quarantined_suffix = ".quarantined";  // of a program that was set aside
inline constexpr std::int64_t quarantine_s = 7 * 24 * 3600;             // from then on

inline constexpr std::string_view suspect_suffix = ".suspect";  // of one that was being loaded at a death
inline constexpr std::int64_t second_death_s = 3600;            // without a trial, two within it quarantine

// What lies in the folders of a device: DEVICE/hh/DIGEST.bin and DEVICE/hh/DIGEST.meta.
struct StoredEntry {
  std::size_t folder = 0;  // into Survey::folders
  Digest digest;
  std::uint64_t bytes = 0;        // of both files
  std::int64_t last_used_ns = 0;  // since 1970: the later modification of the two
  bool program = false;           // the .bin is there: otherwise it is a .meta that lost its program
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
};

enum class Sweep : std::uint8_t { invalid = 0, no, yes };

// yes: temporary files older than ten minutes, which a killed process left in a device folder or beside one, and
// programs that were set aside more than a week ago are removed on the way.
Survey survey(int root, Sweep sweep);

// Removes least recently used entries until at most `bytes` are left; answers how many were removed. At most 4096 go in
// one call: the rest waits for the next.
std::size_t prune(int root, Survey& found, std::uint64_t bytes);

// Both files of an entry; answers what could not be removed. A file that is gone already is no failure.
Status remove_entry(int root, const std::string& folder, const Digest& digest);

bool is_subfolder_name(std::string_view name) noexcept;                   // "hh"
bool is_stored_file_name(std::string_view name) noexcept;                 // "DIGEST.bin", "DIGEST.meta"
std::string subfolder_of(const Digest& digest);                           // "hh"
std::string file_name_of(const Digest& digest, std::string_view suffix);  // "DIGEST.bin"

// DiskUse: how many bytes the programs below a cache folder take; and DiskUseFile, by which the processes that write
// there tell each other, so that none of them has to walk to know what the others wrote.
//
// The file is a text of fixed width, docs/cache-format.md. Thread-safety: values; a DiskUseFile holds the file's lock,
// for a moment, until it dies. Ownership: borrows the root's descriptor. The figure is nobody's promise: a walk puts it
// right.

inline constexpr const char* disk_use_name = "disk_use.lock";

struct DiskUse {
  std::uint64_t programs = 0;   // bytes in the folders of devices
  std::uint64_t published = 0;  // bytes that were ever published, by those who tell each other
  std::uint64_t walked = 0;     // what `published` was when the last walk began

  std::uint64_t since_walk() const noexcept { return published - walked; }
  void add(std::uint64_t bytes) noexcept;
  void remove(std::uint64_t bytes) noexcept;
};

class DiskUseFile {
 public:
  // nullopt: others hold it for too long, or there is no such lock to be had here.
  static std::optional<DiskUseFile> take(int root);

  // nullopt: nobody has told yet.
  std::optional<DiskUse> read() const;
  // Failing costs the others a walk.
  void write(const DiskUse& use) const noexcept;

 private:
  explicit DiskUseFile(BriefLock lock) noexcept : lock_(std::move(lock)) {}

  BriefLock lock_;
};

// DiskBound: keeps the programs below one cache folder within a number of bytes.
//
// The figure comes from a survey, made when it is first asked for and again after an eighth of the bound was written;
// in between it runs along, with what other processes write where the figure is shared (disk_use.hpp). One of them
// walks at a time; what the others write meanwhile is added to what he found. Over the bound the least recently used
// entries go, until seven eighths are left. Opening a cache therefore walks nothing. Thread-safety: every method from
// any thread. Ownership: borrows the root's descriptor.

// Locked by who walks.
inline constexpr const char* disk_walk_name = "disk_walk.lock";

enum class Figure : std::uint8_t {
  invalid = 0,
  shared,  // with all processes that use the folder: together they keep to the bound
  own,     // each process sees what others wrote at its next survey
};

class DiskBound {
 public:
  DiskBound(int root, std::uint64_t most_bytes, Figure figure = Figure::shared) noexcept
      : root_(root), most_bytes_(most_bytes), figure_(figure) {}

  std::uint64_t most_bytes() const noexcept { return most_bytes_; }
  // After `bytes` were published: answers how many entries had to go.
  std::size_t published(std::uint64_t bytes);
  void removed(std::uint64_t bytes);
  std::uint64_t bytes();

 private:
  // What this process did and the others were not told.
  struct Untold {
    std::uint64_t published = 0, removed = 0;
  };

  enum class Told : std::uint8_t {
    invalid = 0,
    known,    // use_ is what there is, but for what others have not told
    unknown,  // nobody has walked since the figure was lost, or this process never did
    alone,    // the others were not told: there is no file of theirs, or it was not to be had
  };

  // Tells the others what this process did, and takes from them what they did.
  Told tell();
  bool is_walk_due(Told told) const noexcept;
  // Surveys; what is over the bound goes.
  std::size_t walk(Told told);
  // What a walk found, begun when so much had been published, and what was published meanwhile.
  void settle(DiskUse found, std::uint64_t published_before);

  const int root_;
  const std::uint64_t most_bytes_;
  const Figure figure_;
  std::mutex mutex_;
  std::optional<DiskUse> use_;  // nullopt: neither surveyed nor told
  bool surveyed_ = false;
  Untold untold_;
};

}  // namespace kiln
