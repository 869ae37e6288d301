// A device's folder in the cache, and the use that is noted in it.
//
// DeviceFolder: the files of one device and driver version in the cache folder.
//
// Files: manifest.json, hh/DIGEST.bin, hh/DIGEST.meta and, for programs set aside, hh/DIGEST.suspect or
// hh/DIGEST.quarantined.
// The first write creates the folder.
// Thread-safety: every method from any thread. Ownership: owns its descriptor; borrows the descriptor of the root.
#pragma once

#include "base/os/private_folder.hpp"
#include "cache/manifest.hpp"

#include <sys/stat.h>

#include <kiln/buffer.hpp>
#include <kiln/device.hpp>
#include <kiln/program.hpp>
#include <kiln/status.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln {

enum class StoredFile : std::uint8_t { invalid = 0, program, meta, suspect, quarantined };

class DeviceFolder {
 public:
  DeviceFolder(int root, const DeviceInfo& device);

  const std::string& name() const noexcept { return name_; }

  FileContents read(const Digest& digest, StoredFile file, std::uint64_t most_bytes);
  // Replaces the file atomically.
  Status write(const Digest& digest, StoredFile file, std::span<const std::byte> bytes);
  // Overwrites the file in place if its size stays the same (overwrite_file). Cheaper than write(), but a reader may
  // see a mix of old and new bytes.
  Status update(const Digest& digest, StoredFile file, std::span<const std::byte> bytes);
  // Removes both files of an entry and returns the number of bytes removed. Symbolic links are removed, not followed.
  std::uint64_t remove(const Digest& digest);
  bool holds(const Digest& digest, StoredFile file) { return last_written_ns(digest, file).has_value(); }
  std::optional<std::int64_t> last_written_ns(const Digest& digest, StoredFile file);  // nanoseconds since 1970

  // Renames a stored program so that lookups do not find it. Does nothing if the file was written after `written_by_s`
  // (seconds since 1970). `as` must be suspect or quarantined.
  bool set_aside(const Digest& digest, StoredFile as, std::int64_t written_by_s);
  bool condemn(const Digest& digest);                   // renames a suspect to quarantined
  bool acquit(const Digest& digest);                    // restores a suspect, unless a newer program is stored
  void forget(const Digest& digest, StoredFile aside);  // removes the file
  // Returns whether the program was quarantined less than a week ago.
  bool quarantine_lasts(const Digest& digest);

  // Lists the programs in the folder by file name only. Walks the folder.
  std::vector<Digest> digests();

  // Returns whether the same device has this program under another driver identity.
  bool held_under_another_driver(const ProgramKey& key);

  // Returns the descriptor, valid for the lifetime of this object, or -1 if the folder does not exist yet.
  Result<int> open(Create create);

 private:
  struct OtherDriver {  // the same device's folder under another driver identity
    std::string name;
    std::string driver_fields;
  };

  Result<UniqueFd> open_subfolder_of(const Digest& digest, Create create);
  // Returns the lstat() result of the file, or nullopt if there is no regular file with that name.
  std::optional<struct stat> look_at(const Digest& digest, StoredFile file);
  const std::vector<OtherDriver>& other_drivers();
  bool rename(const Digest& digest, StoredFile from, StoredFile to);
  // Writes the manifest if there is none. A failure is ignored: the next write tries again. REQUIRES: mutex_ is held.
  void write_manifest();

  const int root_;
  const std::string name_;
  const std::string manifest_;
  std::mutex mutex_;
  bool manifest_seen_ = false;
  // True for each subfolder that was verified to be writable by this user only. Later reads skip the check, because
  // nobody else can replace the subfolder.
  std::array<std::atomic<bool>, 256> subfolder_checked_{};
  UniqueFd folder_;                                        // empty: does not exist yet
  std::optional<std::vector<OtherDriver>> other_drivers_;  // nullopt: not searched yet
};

// MetaLedger: buffers updates of the .meta files of stored programs in memory until flush().
//
// Thread-safety: every method from any thread. Ownership: borrows the folders. Bounded: it tracks at most 65,536
// programs and ignores others.

// Returns the content of the .meta file, or an empty value if it is missing or not readable.
EntryMeta stored_meta(DeviceFolder& folder, const Digest& digest);

class MetaLedger {
 public:
  MetaLedger();

  // Starts tracking a program that was stored in the folder or found there. build_ns 0: already recorded.
  void note(const ProgramKey& key, DeviceFolder& folder, std::uint64_t build_ns);
  // The methods below ignore programs that note() did not register.
  void moved(const Digest& digest, DeviceFolder& to);
  void used(const Digest& digest, std::uint64_t times);
  // Records the time of the first request in this process; later calls have no effect.
  void asked_for(const Digest& digest);
  void loaded(const Digest& digest, std::uint64_t took_ns);  // from disk
  void dispatched_first(const Digest& digest, std::uint64_t took_ns);
  void rate(const Digest& digest, double gflops);

  // Writes the buffered changes of one program or of all, merged with the files. Returns the bytes written. Errors are
  // ignored because no program depends on these files.
  std::uint64_t flush(const Digest& digest);
  std::uint64_t flush();

 private:
  struct Line {
    DeviceFolder* folder = nullptr;
    EntryMeta news;  // times_used and runs: changes since the last flush
    bool changed = false;
    bool asked_for = false;
    bool run_counted = false;  // this process is counted in runs
  };

  Line* line(const Digest& digest);
  // Removes and returns the changes; nullopt if there are none. REQUIRES: the lock is held.
  static std::optional<Line> take(Line& line);
  static std::uint64_t write(const Digest& digest, const Line& news);

  const std::uint64_t opened_ns_;
  std::mutex mutex_;
  std::unordered_map<Digest, Line, DigestHash> lines_;
};

}  // namespace kiln
