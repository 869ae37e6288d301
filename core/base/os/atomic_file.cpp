#include "base/os/atomic_file.hpp"

#include "base/os/file_lock.hpp"

#include <kiln/result_files.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace kiln {
namespace {

constexpr std::string_view temporary_prefix = ".kiln-", temporary_suffix = ".tmp";
constexpr std::size_t token_digits = 16;

// Short whatever the final name's length, so that a name of 255 bytes still has room for its temporary sibling.
Result<std::string> new_token(const std::filesystem::path& final_path) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    return file_failure(final_path, "cannot get a random number for a temporary name", errno);
  }
  std::string digits(token_digits, '0');
  char text[token_digits];
  const auto end = std::to_chars(text, text + sizeof text, random, 16).ptr;
  std::copy(text, end, digits.end() - (end - text));
  return digits;
}

bool is_temporary_name(std::string_view name) {
  return name.size() == temporary_prefix.size() + token_digits + temporary_suffix.size() &&
         name.starts_with(temporary_prefix) && name.ends_with(temporary_suffix);
}

// What killed processes left on a file system whose files always have names. A living writer holds the lock.
void sweep(int folder) noexcept {
  const int listed = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listed < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(listed), ::closedir);
  if (stream == nullptr) {
    ::close(listed);
    return;
  }
  while (const dirent* entry = ::readdir(stream.get())) {
    if (!is_temporary_name(entry->d_name)) continue;
    const UniqueFd file(::openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat found {};
    if (!file || ::fstat(file.get(), &found) != 0) continue;
    const bool ours = S_ISREG(found.st_mode) && found.st_uid == ::geteuid() && found.st_nlink == 1;
    if (ours && try_lock(file.get()) == LockAnswer::taken) ::unlinkat(folder, entry->d_name, 0);
  }
}

Result<UniqueFd> open_named(const std::filesystem::path& final_path, int folder, const std::string& token,
                            mode_t mode) {
  sweep(folder);
  constexpr int attempts = 16;
  const std::string name = temporary_name(token);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    UniqueFd file(::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!file) return file_failure(final_path, "cannot create a temporary file in the parent folder", errno);
    struct stat found {};
    // Between the two calls another process may have swept it.
    if (try_lock(file.get()) == LockAnswer::busy) continue;
    if (::fstat(file.get(), &found) == 0 && found.st_nlink == 1) return file;
  }
  return file_failure(final_path, "cannot create a temporary file in the parent folder", EBUSY);
}

}  // namespace

FileIdentity FileIdentity::of(const struct stat& found) noexcept {
  return {found.st_ino, static_cast<std::uint64_t>(found.st_size),
          static_cast<std::int64_t>(found.st_mtim.tv_sec) * 1'000'000'000 + found.st_mtim.tv_nsec, found.st_uid};
}

std::string temporary_name(const std::string& token) {
  return std::string(temporary_prefix) + token + std::string(temporary_suffix);
}

Status file_failure(const std::filesystem::path& path, const std::string& what, int error) {
  std::string message = "file " + path.string() + ": " + what + ": " + std::generic_category().message(error);
  return error == ENOENT || error == ENOTDIR ? not_found(std::move(message)) : io_error(std::move(message));
}

Result<std::filesystem::path> followed(const std::filesystem::path& name) {
  constexpr int most_links = 40;  // as the kernel
  std::filesystem::path file = name;
  for (int link = 0; link <= most_links; ++link) {
    char text[PATH_MAX];
    const ssize_t length = ::readlink(file.c_str(), text, sizeof text);
    const int error = length < 0 ? errno : 0;
    if (error == EINVAL || error == ENOENT || error == ENOTDIR) return file;  // no link
    if (error != 0) {
      return io_error("file " + name.string() + ": cannot resolve " + file.string() + ": " +
                      std::generic_category().message(error));
    }
    const std::filesystem::path target = std::string(text, static_cast<std::size_t>(length));
    file = target.is_absolute() ? target : file.parent_path() / target;
  }
  return io_error("file " + name.string() + ": path contains more than " + std::to_string(most_links) +
                  " symbolic links");
}

std::filesystem::path name_of_file(const std::filesystem::path& name) {
  std::error_code error;
  const auto file = followed(name);
  const std::filesystem::path whole = std::filesystem::absolute(file ? *file : name, error);
  std::filesystem::path real = std::filesystem::weakly_canonical(whole, error);
  return error ? whole.lexically_normal() : real;
}

const std::filesystem::path& FileNames::of(const std::filesystem::path& name) {
  if (const auto known = files_.find(name.native()); known != files_.end()) return known->second;
  const auto keep = [&](std::filesystem::path file) -> const std::filesystem::path& {
    return files_.emplace(name.native(), std::move(file)).first->second;
  };
  const auto file = followed(name);
  if (!file || !file->has_filename() || file->filename() == "." || file->filename() == "..") {
    return keep(name_of_file(name));
  }
  // What followed() returns is no link, so only its folder is left to resolve.
  const std::filesystem::path folder = file->parent_path();
  auto at = folders_.find(folder.native());
  if (at == folders_.end()) {
    const std::filesystem::path asked = folder.empty() ? "." : folder;
    std::error_code error;
    std::filesystem::path real = std::filesystem::weakly_canonical(std::filesystem::absolute(asked, error), error);
    if (error) return keep(name_of_file(name));
    at = folders_.emplace(folder.native(), std::move(real)).first;
  }
  return keep(at->second / file->filename());
}

Status check_replaceable(const std::filesystem::path& file) {
  const std::string who = "file " + file.string() + ": ";
  struct stat found {};
  if (::lstat(file.c_str(), &found) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? Status() : file_failure(file, "attributes cannot be read", errno);
  }
  if (S_ISDIR(found.st_mode)) return invalid_argument(who + "is a folder, expected a file");
  if (!S_ISREG(found.st_mode)) return invalid_argument(who + "is a device, FIFO or socket, expected a regular file");
  if (found.st_nlink > 1) {
    return invalid_argument(
        who + "has " + std::to_string(found.st_nlink) +
        " hard links, expected 1 (the other links would keep the old content). Remove the file first, or use a "
        "symbolic link");
  }
  return {};
}

namespace {

// file: links followed.
Status check_file_writable(const std::filesystem::path& file) {
  if (::faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) == 0 || errno == ENOENT || errno == ENOTDIR) return {};
  return file_failure(file, "cannot be written", errno);
}

Status check_folder_writable(const std::filesystem::path& file) {
  const auto may_write = [](const std::filesystem::path& folder) {
    return ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  };
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(file, error).parent_path();
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  if (may_write(folder)) return {};
  return file_failure(file, "folder " + folder.string() + " cannot be written", errno);
}

}  // namespace

Status check_writable(const std::filesystem::path& name) {
  const auto file = followed(name);
  if (!file) return file.error();
  if (Status status = check_file_writable(*file); !status.ok()) return status;
  return check_folder_writable(*file);
}

Result<AtomicFile> AtomicFile::create(const std::filesystem::path& name) {
  if (!name.has_filename()) {
    return invalid_argument("file '" + name.string() + "': expected a path that ends with a file name");
  }
  const auto leads_to = followed(name);
  if (!leads_to) return leads_to.error();
  if (Status status = check_replaceable(*leads_to); !status.ok()) return status;
  if (Status status = check_file_writable(*leads_to); !status.ok()) return status;
  std::error_code error;
  std::filesystem::path file = std::filesystem::absolute(*leads_to, error);
  if (error) return file_failure(*leads_to, "cannot determine the parent folder", error.value());
  // The folder is examined only for the words of a failure: the system refuses the file by itself.
  const auto refused = [&](const std::string& what, int code) -> Status {
    Status status = check_folder_writable(file);
    return status.ok() ? file_failure(file, what, code) : status;
  };
  auto token = new_token(file);
  if (!token) return std::move(token).error();
  const std::filesystem::path parent = file.parent_path();
  const UniqueFd folder(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return refused("cannot open the parent folder", errno);
  struct stat replaced {};
  const bool exists = ::fstatat(folder.get(), file.filename().c_str(), &replaced, AT_SYMLINK_NOFOLLOW) == 0;
  constexpr mode_t for_nobody_else = 0600, by_umask = 0666;
  const mode_t mode = exists ? for_nobody_else : by_umask;
  // Without /proc a file cannot be given a name later.
  static const bool can_name_later = ::access("/proc/self/fd", X_OK) == 0;
  UniqueFd nameless(can_name_later ? ::openat(folder.get(), ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, mode) : -1);
  if (!nameless && can_name_later && (errno == EACCES || errno == EROFS || errno == EMFILE || errno == ENFILE)) {
    return refused("cannot create a temporary file in the parent folder", errno);
  }
  const bool is_named = !nameless;
  if (is_named) {
    if (Status status = check_folder_writable(file); !status.ok()) return status;
    auto named = open_named(file, folder.get(), *token, mode);
    if (!named) return std::move(named).error();
    nameless = std::move(*named);
  }
  AtomicFile made(std::move(file), std::move(*token), std::move(nameless), is_named);
  if (!exists) return made;
  if (Status status = made.match(replaced); !status.ok()) return status;
  // The mode comes with the name.
  if (::fchmod(made.file_.get(), for_nobody_else) != 0)
    return file_failure(made.final_path_, "cannot keep the mode of the old file", errno);
  return made;
}

// Owner, group and mode of the file that is replaced.
Status AtomicFile::match(const struct stat& replaced) {
  struct stat made {};
  if (::fstat(file_.get(), &made) != 0) return file_failure(final_path_, "attributes cannot be read", errno);
  mode_t mode = replaced.st_mode & 07777;
  const bool differs = made.st_uid != replaced.st_uid || made.st_gid != replaced.st_gid;
  if (differs && ::fchown(file_.get(), replaced.st_uid, replaced.st_gid) != 0) {
    if (made.st_uid != replaced.st_uid) {
      return file_failure(
          final_path_, "cannot keep owner " + std::to_string(replaced.st_uid) + " (remove the old file first)", errno);
    }
    mode &= ~static_cast<mode_t>(070);  // another group gets no rights that it did not have
  }
  if (::fchmod(file_.get(), mode) != 0) return file_failure(final_path_, "cannot keep the mode of the old file", errno);
  return {};
}

AtomicFile::AtomicFile(std::filesystem::path final_path, std::string token, UniqueFd file, bool is_named) noexcept
    : final_path_(std::move(final_path)), token_(std::move(token)), file_(std::move(file)), is_named_(is_named) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : final_path_(std::move(other.final_path_)),
      token_(std::move(other.token_)),
      file_(std::move(other.file_)),
      is_named_(std::exchange(other.is_named_, false)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  final_path_ = std::move(other.final_path_);
  token_ = std::move(other.token_);
  file_ = std::move(other.file_);
  is_named_ = std::exchange(other.is_named_, false);
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

Status AtomicFile::write(std::span<const std::byte> bytes) {
  if (!file_) return internal_error("file " + final_path_.string() + ": cannot write after commit or discard");
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      discard();
      return file_failure(final_path_, "cannot write", error);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status AtomicFile::commit(const std::filesystem::path& journal) {
  std::vector<std::vector<AtomicFile>> alone(1);
  alone.front().push_back(std::move(*this));
  Status status = commit_files(journal, alone).front();
  *this = std::move(alone.front().front());
  return status;
}

void AtomicFile::discard() noexcept {
  file_ = UniqueFd();
  if (std::exchange(is_named_, false)) ::unlink((final_path_.parent_path() / temporary_name(token_)).c_str());
}

}  // namespace kiln
