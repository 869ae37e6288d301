// Locks between processes, and the filesystems on which they hold.
//
// Thread-safety: calls of the operating system. Ownership: as each lock says.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/status.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace kiln {

// Only kinds that are known to keep their locks in this machine's kernel are trusted. A network filesystem may lock
// among its clients, within one of them, or not at all; a filesystem in user space as its author chose.
using FilesystemMagic = std::uint32_t;  // statfs::f_type

Result<FilesystemMagic> filesystem_of(int file);
bool locks_hold_on(FilesystemMagic filesystem) noexcept;
// "nfs", or the number where it has no name here.
std::string name_of_filesystem(FilesystemMagic filesystem);

enum class LockAnswer : std::uint8_t {
  invalid = 0,
  taken,
  busy,    // another open file has it
  failed,  // the filesystem does not lock
};

// Locks on a whole file or folder (flock), by any descriptor of it.
//
// Every lock of this header belongs to the open file: the kernel releases it when the last descriptor of that open file
// is closed, so also when its process dies. One open file never excludes itself. Thread-safety: calls of the operating
// system.
enum class LockMode : std::uint8_t { invalid = 0, shared, exclusive };
LockAnswer try_lock(int file, LockMode mode = LockMode::exclusive) noexcept;
// Tries again until the deadline; busy: others held it all the time.
LockAnswer lock_until(int file, Deadline deadline) noexcept;

// Locks on byte ranges (F_OFD_SETLK) of a file that is open for writing. The bytes need not exist.
LockAnswer try_lock_byte(int file, std::uint64_t at) noexcept;
void unlock_byte(int file, std::uint64_t at) noexcept;
LockAnswer try_lock_all_bytes(int file) noexcept;

// BriefLock: a lock between processes on a small file of an open folder, with a bounded wait. For work that may be left
// undone.
//
// Thread-safety: independent objects, also in one process, exclude each other. Ownership: holds the lock until it dies;
// the file stays.

class BriefLock {
 public:
  // nullopt: others hold it all the time, or there is no such lock to be had here.
  static std::optional<BriefLock> take(int folder, const std::string& name, std::chrono::milliseconds most);

  // The locked file, for reading and writing.
  int file() const noexcept { return file_.get(); }

 private:
  explicit BriefLock(UniqueFd file) noexcept : file_(std::move(file)) {}

  UniqueFd file_;  // closing it lets the lock go
};

}  // namespace kiln
