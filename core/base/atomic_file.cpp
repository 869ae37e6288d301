#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

namespace kiln {
namespace {

constexpr int attempts = 16;

Status system_failure(const std::filesystem::path& path, const char* what, int error) {
  std::string message = "file " + path.string() + ": " + what + ": " + std::generic_category().message(error);
  return error == ENOENT || error == ENOTDIR ? not_found(std::move(message)) : io_error(std::move(message));
}

// Short whatever the final name's length, so that a name of 255 bytes still has room for its temporary sibling.
std::string temporary_name() {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    random = static_cast<std::uint64_t>(::getpid());
  }
  return ".kiln-" + std::to_string(random) + ".tmp";
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::filesystem::path& final_path, mode_t mode) {
  if (!final_path.has_filename()) return invalid_argument("file " + final_path.string() + ": expected a file name");
  struct stat found {};
  if (::lstat(final_path.c_str(), &found) == 0) {
    if (!S_ISREG(found.st_mode) && !S_ISLNK(found.st_mode)) {
      return invalid_argument("file " + final_path.string() +
                              ": found something that is not a regular file, expected " + "a regular file or none");
    }
  } else if (errno != ENOENT) {
    return system_failure(final_path, "cannot look at it", errno);
  }
  int error = EEXIST;
  for (int attempt = 0; attempt < attempts && error == EEXIST; ++attempt) {
    std::filesystem::path temporary = final_path.parent_path() / temporary_name();
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd >= 0) return AtomicFile(final_path, std::move(temporary), fd);
    error = errno;
  }
  return system_failure(final_path, "cannot create a temporary file beside it", error);
}

AtomicFile::AtomicFile(std::filesystem::path final_path, std::filesystem::path temporary_path, int fd) noexcept
    : final_path_(std::move(final_path)), temporary_path_(std::move(temporary_path)), fd_(fd) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : final_path_(std::move(other.final_path_)),
      temporary_path_(std::exchange(other.temporary_path_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  final_path_ = std::move(other.final_path_);
  temporary_path_ = std::exchange(other.temporary_path_, {});
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

Status AtomicFile::write(std::span<const std::byte> bytes) {
  if (fd_ < 0) return internal_error("file " + final_path_.string() + ": written after it was committed or discarded");
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      discard();
      return system_failure(final_path_, "cannot write", error);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status AtomicFile::commit() {
  if (fd_ < 0)
    return internal_error("file " + final_path_.string() + ": committed after it was committed or discarded");
  // Without the flush a crash of the machine could leave the new name on an empty file.
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) {
    const int error = errno;
    discard();
    return system_failure(final_path_, "cannot flush", error);
  }
  if (::close(std::exchange(fd_, -1)) != 0) {
    const int error = errno;
    discard();
    return system_failure(final_path_, "cannot close", error);
  }
  if (::rename(temporary_path_.c_str(), final_path_.c_str()) != 0) {
    const int error = errno;
    discard();
    return system_failure(final_path_, "cannot move the temporary file onto it", error);
  }
  temporary_path_.clear();
  return {};
}

void AtomicFile::discard() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
  temporary_path_.clear();
}

}  // namespace kiln
