// Which filesystems have locks that hold among all processes that can see a file.
//
// Thread-safety: pure calls of the operating system. Ownership: values.
// Only kinds that are known to keep their locks in this machine's kernel are trusted: a network filesystem may lock
// among its clients, within one of them or not at all, one in user space as its author liked, and an unknown one is
// taken for one of those.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/status.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace kiln {

using FilesystemMagic = std::uint32_t;  // statfs::f_type

Result<FilesystemMagic> filesystem_of(int file);
bool locks_hold_on(FilesystemMagic filesystem) noexcept;
// "nfs", or the number where it has no name here.
std::string name_of_filesystem(FilesystemMagic filesystem);

// Locks on single bytes of a file, of the kind that belongs to the open file (F_OFD_SETLK): the kernel lets them go
// when the last descriptor of that open file is closed, so also when its process dies, however it dies.
//
// Thread-safety: calls of the operating system. One open file never hinders itself: its threads agree by other means.
// Ownership: none; the byte need not exist.

enum class LockAnswer : std::uint8_t {
  invalid = 0,
  taken,
  busy,    // another open file has it
  failed,  // the filesystem does not lock
};

LockAnswer try_lock_byte(int file, std::uint64_t at) noexcept;
void unlock_byte(int file, std::uint64_t at) noexcept;

// BriefLock: a lock between processes on a small file of an open folder, waited for a bounded time and no longer.
//
// For what may be left undone: who does not get it goes on without. Thread-safety: independent objects, also in one
// process, exclude each other. Ownership: holds the lock until it dies; the file stays.

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
