#include "base/os/private_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kiln/clock.hpp>
#include <kiln/regular_file.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

namespace kiln {

namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t ours_alone = 0700;

constexpr int most_links = 40;  // as the system's own bound

Status check_owner(const struct stat& at, const std::string& who) {
  if (is_trusted_owner(at.st_uid)) return {};
  return unavailable(who + ": belongs to user " + std::to_string(at.st_uid) + ", expected " +
                     std::to_string(geteuid()) + (geteuid() == 0 ? "" : " or root"));
}

Status check_mode(const struct stat& at, const std::string& who, mode_t others_may_not) {
  if ((at.st_mode & others_may_not) == 0) return {};
  char mode[16];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(at.st_mode & 07777));
  return unavailable(who + ": has mode " + mode + ", expected write permission only for the owner");
}

Status check_ours(int folder, const std::string& who) {
  struct stat at {};
  if (fstat(folder, &at) != 0) return system_error(who, "attributes cannot be read", errno);
  if (Status status = check_owner(at, who); !status.ok()) return status;
  return check_mode(at, who, 022);
}

// Of a folder in which a path goes on: in one with the sticky bit others can make names, and exchange none.
Status check_on_the_way(const std::filesystem::path& folder, const struct stat& at) {
  const std::string who = "folder " + folder.string();
  if (Status status = check_owner(at, who); !status.ok()) return status;
  return check_mode(at, who, (at.st_mode & S_ISVTX) != 0 ? 0 : 022);
}

Result<std::filesystem::path> target_of(const std::filesystem::path& link, const struct stat& at) {
  const std::string who = "symbolic link " + link.string();
  if (Status status = check_owner(at, who); !status.ok()) return status;
  std::error_code error;
  std::filesystem::path target = std::filesystem::read_symlink(link, error);
  if (error) return system_error(who, "cannot be read", error.value());
  return target;
}

// With O_DIRECTORY and O_NOFOLLOW a link and a file give the same errno: a person wants to know which.
Status not_openable(int parent, const std::string& name, const std::string& who, int error) {
  struct stat at {};
  if ((error == ENOTDIR || error == ELOOP) && fstatat(parent, name.c_str(), &at, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISLNK(at.st_mode)) return unavailable(who + ": is a symbolic link, expected a folder");
    if (!S_ISDIR(at.st_mode)) return unavailable(who + ": is not a folder");
  }
  return system_error(who, "cannot be opened", error);
}

Status make_parents(const std::filesystem::path& folder) {
  const std::filesystem::path parent = folder.parent_path();
  if (parent.empty() || parent == folder) return {};
  if (mkdir(parent.c_str(), ours_alone) == 0 || errno == EEXIST) return {};
  if (errno != ENOENT) return system_error("folder " + parent.string(), "cannot be created", errno);
  if (Status status = make_parents(parent); !status.ok()) return status;
  if (mkdir(parent.c_str(), ours_alone) == 0 || errno == EEXIST) return {};
  return system_error("folder " + parent.string(), "cannot be created", errno);
}

}  // namespace

bool is_trusted_owner(uid_t owner) noexcept { return owner == geteuid() || owner == 0; }

Result<std::filesystem::path> followed_path(const std::filesystem::path& path) {
  std::deque<std::filesystem::path> rest(path.begin(), path.end());
  std::filesystem::path at;
  int links = 0;
  while (!rest.empty()) {
    const std::filesystem::path name = rest.front();
    rest.pop_front();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      at = at.parent_path();  // `at` has no links
      continue;
    }
    const std::filesystem::path next = name.is_absolute() ? name : at / name;
    struct stat found {};
    if (lstat(next.c_str(), &found) != 0) {
      if (errno != ENOENT) return system_error("folder " + next.string(), "attributes cannot be read", errno);
      at = next;
      for (const std::filesystem::path& missing : rest) at /= missing;
      return without_slash(at);
    }
    if (S_ISLNK(found.st_mode)) {
      if (++links > most_links) {
        return unavailable("folder " + path.string() + ": path contains more than " + std::to_string(most_links) +
                           " symbolic links");
      }
      Result<std::filesystem::path> target = target_of(next, found);
      if (!target) return target.error();
      rest.insert(rest.begin(), target->begin(), target->end());
      continue;
    }
    at = next;
    if (rest.empty()) break;
    if (Status status = check_on_the_way(at, found); !status.ok()) return status;
  }
  return at;
}

// A slash at the end would make the system follow a link.
std::filesystem::path without_slash(const std::filesystem::path& path) {
  const std::filesystem::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

Result<UniqueFd> open_subfolder(int parent, const std::string& name, const std::string& who, Create create) {
  UniqueFd folder(openat(parent, name.c_str(), folder_flags));
  if (!folder && errno == ENOENT && create == Create::yes) {
    if (mkdirat(parent, name.c_str(), ours_alone) != 0 && errno != EEXIST) {
      return system_error(who, "cannot be created", errno);
    }
    folder = UniqueFd(openat(parent, name.c_str(), folder_flags));
  }
  if (!folder && errno == ENOENT && create != Create::yes) return UniqueFd();
  if (!folder) return not_openable(parent, name, who, errno);
  if (Status status = check_ours(folder.get(), who); !status.ok()) return status;
  return folder;
}

Result<UniqueFd> open_folder(const std::filesystem::path& path, Create create) {
  std::filesystem::path plain = without_slash(path);
  const std::string who = "folder " + plain.string();
  if (!plain.is_absolute()) return invalid_argument(who + ": expected an absolute path");
  struct stat at {};
  if (lstat(plain.c_str(), &at) == 0 && S_ISLNK(at.st_mode)) {
    Result<std::filesystem::path> led_to = followed_path(plain);
    if (!led_to) return led_to.error().within(who);
    plain = std::move(*led_to);
  }
  if (create == Create::yes) {
    // Only where it is missing: what exists need not have parents that this user could make.
    if (access(plain.c_str(), F_OK) != 0) {
      if (Status status = make_parents(plain); !status.ok()) return status;
    }
  }
  return open_subfolder(AT_FDCWD, plain.string(), who, create);
}

UniqueFd existing_subfolder(int parent, const std::string& name) {
  return open_subfolder(parent, name, name, Create::no).value_or(UniqueFd());
}

Result<UniqueFd> open_shared_file(int folder, const std::string& name, const std::string& who, Create create) {
  const int make = create == Create::yes ? O_CREAT : 0;
  UniqueFd file(openat(folder, name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | make, 0600));
  if (!file && errno == ENOENT && create != Create::yes) return UniqueFd();
  if (!file) return system_error(who, "cannot be opened", errno);
  struct stat at {};
  if (fstat(file.get(), &at) != 0) return system_error(who, "attributes cannot be read", errno);
  if (!S_ISREG(at.st_mode)) return unavailable(who + ": is not a regular file");
  if (Status status = check_owner(at, who); !status.ok()) return status;
  // What is written would be written to the file's other name too.
  if (at.st_nlink > 1) return unavailable(who + ": has " + std::to_string(at.st_nlink) + " hard links, expected 1");
  return file;
}

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  // Opened anew: a duplicate would share its place in the listing with every other reader.
  UniqueFd listed(openat(folder, ".", folder_flags));
  if (!listed) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(listed.get()), closedir);
  if (stream == nullptr) return names;
  listed.release();  // the stream closes it
  while (const dirent* entry = readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

Status system_error(std::string_view who, std::string_view what, int error) {
  return io_error(std::string(who) + ": " + std::string(what) + ": " + std::generic_category().message(error));
}

namespace {

FileContents without_bytes(FileState state, std::string why) { return {state, {}, std::move(why), 0}; }

}  // namespace

std::int64_t modified_ns(const struct stat& at) noexcept {
  return std::int64_t{at.st_mtim.tv_sec} * 1'000'000'000 + at.st_mtim.tv_nsec;
}

FileContents read_file(int folder, const std::string& name, std::uint64_t most_bytes) {
  const Result<RegularFile> file = RegularFile::open_at(folder, name, SymbolicLink::refuse);
  if (!file) {
    const Status& why = file.error();
    if (why.code == StatusCode::not_found) return without_bytes(FileState::absent, {});
    return without_bytes(why.code == StatusCode::invalid_argument ? FileState::misplaced : FileState::unreadable,
                         why.message);
  }
  const struct stat& at = file->facts();
  if (!is_trusted_owner(at.st_uid)) {
    return without_bytes(FileState::foreign,
                         "belongs to user " + std::to_string(at.st_uid) + ", expected " + std::to_string(geteuid()));
  }
  if (file->bytes() > most_bytes) {
    FileContents large =
        without_bytes(FileState::too_large, "has " + std::to_string(file->bytes()) + " bytes, expected at most " +
                                                std::to_string(most_bytes));
    large.modified_ns = modified_ns(at);
    return large;
  }
  Result<std::vector<std::byte>> bytes = file->contents(most_bytes);  // fewer where it was cut off: its checksum tells
  if (!bytes) return without_bytes(FileState::unreadable, bytes.error().message);
  return {FileState::read, std::move(*bytes), {}, modified_ns(at)};
}

namespace {

constexpr std::string_view new_file_suffix = ".tmp";

std::string new_file_name() {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof random)) random = now_ns();
  char name[64];
  std::snprintf(name, sizeof name, ".%ld-%016llx.tmp", static_cast<long>(getpid()),
                static_cast<unsigned long long>(random));
  return name;
}

}  // namespace

Result<NewFile> NewFile::create(int folder, std::string name, mode_t mode) {
  std::string temporary = new_file_name();
  UniqueFd file(openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file) return system_error("file " + name, "cannot be created", errno);
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
    return system_error("file " + name_, "cannot be renamed from its temporary name", error);
  }
  return {};
}

bool NewFile::is_temporary(std::string_view name) noexcept {
  return name.starts_with('.') && name.ends_with(new_file_suffix);
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

namespace {

bool lies_below(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const auto [in_folder, in_path] = std::ranges::mismatch(folder, path);
  return in_folder == folder.end();
}

// Links followed as far as the path exists.
std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  return without_slash(error ? path : real);
}

}  // namespace

Status no_key_file() {
  return not_found(
      "no key file is configured. Set HOME or XDG_STATE_HOME to an absolute path, or set KILN_KEY_FILE or [cache] "
      "key_file");
}

Status check_key_file_place(const CacheConfig& config) {
  if (config.key_file.empty() || config.directory.empty()) return {};
  // As written, too: a link inside the folder that leads out of it can be exchanged.
  if (lies_below(without_slash(config.key_file), without_slash(config.directory)) ||
      lies_below(resolved(config.key_file), resolved(config.directory))) {
    return invalid_argument("key file " + config.key_file.string() + ": is in the cache folder " +
                            config.directory.string() + ", expected a file outside that folder");
  }
  return {};
}

bool is_removed(int folder) noexcept {
  struct stat at {};
  return fstat(folder, &at) == 0 && at.st_nlink == 0;
}

}  // namespace kiln
