#include "cache/folder/new_file.hpp"

#include "cache/folder/open_folder.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <kiln/clock.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace kiln {
namespace {

constexpr std::string_view temporary_suffix = ".tmp";

std::string temporary_name() {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof random)) random = now_ns();
  char name[64];
  std::snprintf(name, sizeof name, ".%ld-%016llx.tmp", static_cast<long>(getpid()),
                static_cast<unsigned long long>(random));
  return name;
}

}  // namespace

Result<NewFile> NewFile::create(int folder, std::string name) {
  std::string temporary = temporary_name();
  UniqueFd file(openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return system_error("file " + name, "cannot be made", errno);
  return NewFile(folder, std::move(name), std::move(temporary), std::move(file));
}

NewFile::NewFile(int folder, std::string name, std::string temporary, UniqueFd file) noexcept
    : folder_(folder), name_(std::move(name)), temporary_(std::move(temporary)), file_(std::move(file)) {}

NewFile::~NewFile() {
  if (file_) unlinkat(folder_, temporary_.c_str(), 0);
}

Status NewFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error("file " + name_, "cannot be written", written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status NewFile::commit() {
  // Some filesystems tell only here that there was no room.
  if (close(file_.release()) != 0) {
    const int error = errno;
    unlinkat(folder_, temporary_.c_str(), 0);
    return system_error("file " + name_, "cannot be written", error);
  }
  if (renameat(folder_, temporary_.c_str(), folder_, name_.c_str()) != 0) {
    const int error = errno;
    unlinkat(folder_, temporary_.c_str(), 0);
    return system_error("file " + name_, "cannot be given its name", error);
  }
  return {};
}

bool NewFile::is_temporary(std::string_view name) noexcept {
  return name.starts_with('.') && name.ends_with(temporary_suffix);
}

bool overwrite_file(int folder, const std::string& name, std::span<const std::byte> bytes) noexcept {
  if (bytes.size() > most_overwritten_bytes) return false;
  const UniqueFd file(openat(folder, name.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat at {};
  // Another name of the same file would be written too.
  if (!file || fstat(file.get(), &at) != 0 || !S_ISREG(at.st_mode) || at.st_uid != geteuid() || at.st_nlink != 1 ||
      static_cast<std::uint64_t>(at.st_size) != bytes.size()) {
    return false;
  }
  ssize_t written = -1;
  do written = pwrite(file.get(), bytes.data(), bytes.size(), 0);
  while (written < 0 && errno == EINTR);
  return written == static_cast<ssize_t>(bytes.size());
}

Status write_file(int folder, const std::string& name, std::span<const std::byte> bytes) {
  Result<NewFile> file = NewFile::create(folder, name);
  if (!file) return file.error();
  if (Status status = file->write(bytes); !status.ok()) return status;
  return file->commit();
}

}  // namespace kiln
