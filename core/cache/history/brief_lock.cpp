#include "cache/history/brief_lock.hpp"

#include "cache/process/filesystem_kind.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace kiln {
namespace {

constexpr std::chrono::milliseconds between_attempts{1};

}  // namespace

std::optional<BriefLock> BriefLock::take(int folder, const std::string& name, std::chrono::milliseconds most) {
  const Result<FilesystemMagic> filesystem = filesystem_of(folder);
  if (!filesystem || !locks_hold_on(*filesystem)) return std::nullopt;  // over a network a lock may also never answer
  UniqueFd file(openat(folder, name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat at {};
  if (!file || fstat(file.get(), &at) != 0 || !S_ISREG(at.st_mode) || at.st_uid != geteuid()) return std::nullopt;
  const auto end = std::chrono::steady_clock::now() + most;
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return std::nullopt;
    if (std::chrono::steady_clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(between_attempts);
  }
  return BriefLock(std::move(file));
}

}  // namespace kiln
