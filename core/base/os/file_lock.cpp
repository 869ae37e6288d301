#include "base/os/file_lock.hpp"

#include "base/os/private_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <thread>

namespace kiln {

namespace {

enum class Locks : std::uint8_t { invalid = 0, hold, unreliable };

struct Kind {
  FilesystemMagic magic;
  std::string_view name;
  Locks locks;
};

// The numbers are the kernel's, of include/uapi/linux/magic.h and of the filesystems' own sources.
constexpr std::array kinds{
    Kind{0x0000EF53, "ext4", Locks::hold},         Kind{0x58465342, "xfs", Locks::hold},
    Kind{0x9123683E, "btrfs", Locks::hold},        Kind{0x01021994, "tmpfs", Locks::hold},
    Kind{0x858458F6, "ramfs", Locks::hold},        Kind{0xF2F52010, "f2fs", Locks::hold},
    Kind{0x794C7630, "overlayfs", Locks::hold},    Kind{0x2FC12FC1, "zfs", Locks::hold},
    Kind{0xCA451A4E, "bcachefs", Locks::hold},     Kind{0x3153464A, "jfs", Locks::hold},
    Kind{0x52654973, "reiserfs", Locks::hold},     Kind{0x00003434, "nilfs", Locks::hold},
    Kind{0x24051905, "ubifs", Locks::hold},        Kind{0x00006969, "nfs", Locks::unreliable},
    Kind{0x0000517B, "smb", Locks::unreliable},    Kind{0xFF534D42, "cifs", Locks::unreliable},
    Kind{0xFE534D42, "smb2", Locks::unreliable},   Kind{0x65735546, "fuse", Locks::unreliable},
    Kind{0x01021997, "9p", Locks::unreliable},     Kind{0x00C36400, "ceph", Locks::unreliable},
    Kind{0x5346414F, "afs", Locks::unreliable},    Kind{0x73757245, "coda", Locks::unreliable},
    Kind{0x0BD00BD0, "lustre", Locks::unreliable}, Kind{0x47504653, "gpfs", Locks::unreliable},
    Kind{0x01161970, "gfs2", Locks::unreliable},   Kind{0x7461636F, "ocfs2", Locks::unreliable},
    Kind{0x786F4256, "vboxsf", Locks::unreliable}, Kind{0x0000F15F, "ecryptfs", Locks::unreliable},
};

const Kind* kind_of(FilesystemMagic magic) noexcept {
  const auto* const found = std::ranges::find(kinds, magic, &Kind::magic);
  return found == kinds.end() ? nullptr : found;
}

}  // namespace

Result<FilesystemMagic> filesystem_of(int file) {
  struct statfs at {};
  if (fstatfs(file, &at) != 0) return system_error("filesystem", "cannot be identified", errno);
  return static_cast<FilesystemMagic>(at.f_type);
}

bool locks_hold_on(FilesystemMagic filesystem) noexcept {
  const Kind* kind = kind_of(filesystem);
  return kind != nullptr && kind->locks == Locks::hold;
}

std::string name_of_filesystem(FilesystemMagic filesystem) {
  if (const Kind* kind = kind_of(filesystem)) return std::string(kind->name);
  char number[16];
  std::snprintf(number, sizeof number, "0x%08x", static_cast<unsigned>(filesystem));
  return number;
}

namespace {

constexpr std::chrono::milliseconds between_attempts{1};

LockAnswer answer_of(int error) noexcept {
  if (error == 0) return LockAnswer::taken;
  return error == EAGAIN || error == EACCES ? LockAnswer::busy : LockAnswer::failed;
}

LockAnswer set_range(int file, std::uint64_t at, std::uint64_t bytes, short type) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(at);
  lock.l_len = static_cast<off_t>(bytes);  // 0: to the end, however far it grows
  while (fcntl(file, F_OFD_SETLK, &lock) != 0) {
    if (errno != EINTR) return answer_of(errno);
  }
  return LockAnswer::taken;
}

}  // namespace

LockAnswer try_lock(int file, LockMode mode) noexcept {
  static_assert(EWOULDBLOCK == EAGAIN);
  while (flock(file, (mode == LockMode::shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    if (errno != EINTR) return answer_of(errno);
  }
  return LockAnswer::taken;
}

LockAnswer lock_until(int file, Deadline deadline) noexcept {
  for (;;) {
    const LockAnswer answer = try_lock(file);
    if (answer != LockAnswer::busy || deadline.passed()) return answer;
    std::this_thread::sleep_for(between_attempts);
  }
}

LockAnswer try_lock_byte(int file, std::uint64_t at) noexcept { return set_range(file, at, 1, F_WRLCK); }
void unlock_byte(int file, std::uint64_t at) noexcept { static_cast<void>(set_range(file, at, 1, F_UNLCK)); }
LockAnswer try_lock_all_bytes(int file) noexcept { return set_range(file, 0, 0, F_WRLCK); }

std::optional<BriefLock> BriefLock::take(int folder, const std::string& name, std::chrono::milliseconds most) {
  const Result<FilesystemMagic> filesystem = filesystem_of(folder);
  if (!filesystem || !locks_hold_on(*filesystem)) return std::nullopt;  // over a network a lock may also never answer
  UniqueFd file(openat(folder, name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat at {};
  const bool ours = file && fstat(file.get(), &at) == 0 && S_ISREG(at.st_mode) && at.st_uid == geteuid();
  if (!ours || at.st_nlink != 1) return std::nullopt;  // what is written would be in the file's other name too
  if (lock_until(file.get(), Deadline::after(most)) != LockAnswer::taken) return std::nullopt;
  return BriefLock(std::move(file));
}

}  // namespace kiln
