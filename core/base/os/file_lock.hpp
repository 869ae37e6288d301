// File locks: locks between processes, and a check which filesystems support them reliably.
//
// Each lock belongs to an open file description. The kernel releases it when the last descriptor is closed or the
// process ends. A lock does not exclude its own open file.
// Thread-safety: functions from any thread. Ownership: see BriefLock.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/status.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace kiln {

// locks_hold_on() accepts only local filesystems whose locks the kernel implements. Locks of network and user-space
// filesystems may not work between processes.
using FilesystemMagic = std::uint32_t;  // statfs::f_type

Result<FilesystemMagic> filesystem_of(int file);
bool locks_hold_on(FilesystemMagic filesystem) noexcept;
// Name such as "nfs", or the number of an unknown filesystem.
std::string name_of_filesystem(FilesystemMagic filesystem);

enum class LockAnswer : std::uint8_t {
  invalid = 0,
  taken,
  busy,    // another open file holds it
  failed,  // the filesystem does not support locks
};

// Locks on a whole file or folder (flock).
enum class LockMode : std::uint8_t { invalid = 0, shared, exclusive };
LockAnswer try_lock(int file, LockMode mode = LockMode::exclusive) noexcept;
// Retries until the deadline. busy: held by others until then.
LockAnswer lock_until(int file, Deadline deadline) noexcept;

// Locks on bytes (F_OFD_SETLK) of a file opened for writing. The bytes need not exist.
LockAnswer try_lock_byte(int file, std::uint64_t at) noexcept;
void unlock_byte(int file, std::uint64_t at) noexcept;
LockAnswer try_lock_all_bytes(int file) noexcept;

// A lock on a small file in an open folder, with a bounded wait. For work that may be skipped.
//
// Thread-safety: separate objects exclude each other, also in one process. Ownership: the destructor releases the lock;
// the file remains.
class BriefLock {
 public:
  // nullopt: held by others for the whole time, the filesystem does not support locks, or the file is another user's or
  // has several names.
  static std::optional<BriefLock> take(int folder, const std::string& name, std::chrono::milliseconds most);

  // The locked file, for reading and writing.
  int file() const noexcept { return file_.get(); }

 private:
  explicit BriefLock(UniqueFd file) noexcept : file_(std::move(file)) {}

  UniqueFd file_;  // closing it releases the lock
};

}  // namespace kiln
