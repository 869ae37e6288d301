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

Result<int> open_temporary(const std::filesystem::path& final_path, mode_t mode, std::filesystem::path& temporary) {
  int error = EEXIST;
  for (int attempt = 0; attempt < attempts && error == EEXIST; ++attempt) {
    temporary = final_path.parent_path() / temporary_name();
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd >= 0) return fd;
    error = errno;
  }
  return system_failure(final_path, "cannot create a temporary file beside it", error);
}

}  // namespace

Result<std::filesystem::path> followed(const std::filesystem::path& name) {
  constexpr int most_links = 40;  // as the kernel
  std::filesystem::path file = name;
  for (int link = 0; link <= most_links; ++link) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(file, error);
    const bool no_link = error == std::errc::invalid_argument || error == std::errc::no_such_file_or_directory ||
                         error == std::errc::not_a_directory;
    if (no_link) return file;
    if (error) return io_error("file " + name.string() + ": cannot follow " + file.string() + ": " + error.message());
    file = target.is_absolute() ? target : file.parent_path() / target;
  }
  return io_error("file " + name.string() + ": its symbolic links lead in a circle");
}

Status check_replaceable(const std::filesystem::path& file) {
  const std::string who = "file " + file.string() + ": ";
  struct stat found {};
  if (::lstat(file.c_str(), &found) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? Status() : system_failure(file, "cannot look at it", errno);
  }
  if (S_ISDIR(found.st_mode)) return invalid_argument(who + "is a folder, expected a file");
  if (!S_ISREG(found.st_mode)) return invalid_argument(who + "is a device, FIFO or socket, expected a regular file");
  if (found.st_nlink > 1) {
    return invalid_argument(
        who + "has " + std::to_string(found.st_nlink) +
        " hard links, and the others would keep the old content. Remove it first, or use a symbolic "
        "link");
  }
  if (::faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) != 0) return system_failure(file, "cannot write it", errno);
  return {};
}

Result<AtomicFile> AtomicFile::replace(const std::filesystem::path& name) {
  if (!name.has_filename()) return invalid_argument("file " + name.string() + ": expected a file name");
  const auto file = followed(name);
  if (!file) return file.error();
  if (Status status = check_replaceable(*file); !status.ok()) return status;
  struct stat found {};
  const bool exists = ::lstat(file->c_str(), &found) == 0;
  constexpr mode_t for_nobody_else = 0600, by_umask = 0666;
  std::filesystem::path temporary;
  const auto fd = open_temporary(*file, exists ? for_nobody_else : by_umask, temporary);
  if (!fd) return fd.error();
  AtomicFile made(*file, std::move(temporary), *fd);
  if (!exists) return made;
  made.mode_ = found.st_mode & 07777;
  if (Status status = made.keep_owner(found); !status.ok()) return status;
  return made;
}

Status AtomicFile::keep_owner(const struct stat& replaced) {
  struct stat made {};
  if (::fstat(fd_, &made) != 0) return system_failure(final_path_, "cannot look at it", errno);
  if (made.st_uid == replaced.st_uid && made.st_gid == replaced.st_gid) return {};
  if (::fchown(fd_, replaced.st_uid, replaced.st_gid) == 0) return {};
  if (made.st_uid == replaced.st_uid) {
    *mode_ &= ~static_cast<mode_t>(070);  // another group gets no rights that it did not have
    return {};
  }
  const std::string what =
      "belongs to user " + std::to_string(replaced.st_uid) + ", which cannot be kept. Remove it first";
  return system_failure(final_path_, what.c_str(), errno);
}

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
  std::filesystem::path temporary;
  const auto fd = open_temporary(final_path, mode, temporary);
  if (!fd) return fd.error();
  return AtomicFile(final_path, std::move(temporary), *fd);
}

AtomicFile::AtomicFile(std::filesystem::path final_path, std::filesystem::path temporary_path, int fd) noexcept
    : final_path_(std::move(final_path)), temporary_path_(std::move(temporary_path)), fd_(fd) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : final_path_(std::move(other.final_path_)),
      temporary_path_(std::exchange(other.temporary_path_, {})),
      fd_(std::exchange(other.fd_, -1)),
      mode_(other.mode_) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  final_path_ = std::move(other.final_path_);
  temporary_path_ = std::exchange(other.temporary_path_, {});
  fd_ = std::exchange(other.fd_, -1);
  mode_ = other.mode_;
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
  if (mode_ && ::fchmod(fd_, *mode_) != 0) {
    const int error = errno;
    discard();
    return system_failure(final_path_, "cannot keep its mode", error);
  }
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
