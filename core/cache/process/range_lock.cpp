#include "cache/process/range_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace kiln {
namespace {

int set_lock(int file, std::uint64_t at, short type) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(at);
  lock.l_len = 1;
  while (fcntl(file, F_OFD_SETLK, &lock) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

LockAnswer try_lock_byte(int file, std::uint64_t at) noexcept {
  switch (set_lock(file, at, F_WRLCK)) {
    case 0:
      return LockAnswer::taken;
    case EAGAIN:
    case EACCES:
      return LockAnswer::busy;
    default:
      return LockAnswer::failed;
  }
}

void unlock_byte(int file, std::uint64_t at) noexcept { static_cast<void>(set_lock(file, at, F_UNLCK)); }

}  // namespace kiln
