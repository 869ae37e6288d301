// DeviceFolder: the files of one device under one driver: manifest.json, hh/DIGEST.bin, hh/DIGEST.meta, and what was
// set aside, hh/DIGEST.quarantined.
//
// Thread-safety: every method from any thread. Ownership: owns its descriptor, borrows the root's. No folder is
// made before the first write.
#pragma once

#include "base/os/private_folder.hpp"

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
#include <vector>

namespace kiln {

enum class StoredFile : std::uint8_t { invalid = 0, program, meta, suspect, quarantined };

class DeviceFolder {
 public:
  DeviceFolder(int root, const DeviceInfo& device);

  const std::string& name() const noexcept { return name_; }

  FileContents read(const Digest& digest, StoredFile file, std::uint64_t most_bytes);
  // Replaces what has the name, at one moment.
  Status write(const Digest& digest, StoredFile file, std::span<const std::byte> bytes);
  // The same where a reader may see a part of old and new, and for less where the number of bytes stays
  // (overwrite_file).
  Status update(const Digest& digest, StoredFile file, std::span<const std::byte> bytes);
  // Both files of an entry. A link of that name is removed, never what it points at. Answers the bytes that went.
  std::uint64_t remove(const Digest& digest);
  bool holds(const Digest& digest, StoredFile file) { return last_written_ns(digest, file).has_value(); }
  std::optional<std::int64_t> last_written_ns(const Digest& digest, StoredFile file);  // since 1970

  // Gives a stored program another name, by which it is not found, unless it was written after `written_by_s` (seconds
  // since 1970). `as` is suspect or quarantined.
  bool set_aside(const Digest& digest, StoredFile as, std::int64_t written_by_s);
  bool condemn(const Digest& digest);                   // a suspect: it is quarantined from now on
  bool acquit(const Digest& digest);                    // a suspect: it is stored again, unless there is a newer one
  void forget(const Digest& digest, StoredFile aside);  // removes it
  // Whether it began less than a week ago.
  bool quarantine_lasts(const Digest& digest);

  // Of every program in the folder, by name alone. A walk.
  std::vector<Digest> digests();

  // Whether the program that the key means is held for the same device under another driver identity.
  bool held_under_another_driver(const ProgramKey& key);

  // A copy of the descriptor's number, valid as long as this object; -1: there is no folder yet.
  Result<int> open(Create create);

 private:
  struct OtherDriver {  // the same device's folder under another driver identity
    std::string name;
    std::string driver_fields;
  };

  Result<UniqueFd> open_subfolder_of(const Digest& digest, Create create);
  // What lstat says of a file of the digest's; nullopt where there is no regular file of that name.
  std::optional<struct stat> look_at(const Digest& digest, StoredFile file);
  const std::vector<OtherDriver>& other_drivers();
  bool rename(const Digest& digest, StoredFile from, StoredFile to);
  // Where there is none. Failing costs no program, so the next write tries again. REQUIRES: mutex_ is held.
  void write_manifest();

  const int root_;
  const std::string name_;
  const std::string manifest_;
  std::mutex mutex_;
  bool manifest_seen_ = false;
  // Seen to be a folder that only this user can write, by its number. Only this user can exchange it then, so reading
  // goes through its name without looking at it again.
  std::array<std::atomic<bool>, 256> subfolder_checked_{};
  UniqueFd folder_;                                        // empty: not there yet
  std::optional<std::vector<OtherDriver>> other_drivers_;  // nullopt: not looked for yet
};

}  // namespace kiln
