#include "cache/folder/open_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <deque>
#include <memory>
#include <system_error>

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
  return unavailable(who + ": has mode " + mode + ", expected one that only its owner can write");
}

Status check_ours(int folder, const std::string& who) {
  struct stat at {};
  if (fstat(folder, &at) != 0) return system_error(who, "cannot be looked at", errno);
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
  if (errno != ENOENT) return system_error("folder " + parent.string(), "cannot be made", errno);
  if (Status status = make_parents(parent); !status.ok()) return status;
  if (mkdir(parent.c_str(), ours_alone) == 0 || errno == EEXIST) return {};
  return system_error("folder " + parent.string(), "cannot be made", errno);
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
      if (errno != ENOENT) return system_error("folder " + next.string(), "cannot be looked at", errno);
      at = next;
      for (const std::filesystem::path& missing : rest) at /= missing;
      return without_slash(at);
    }
    if (S_ISLNK(found.st_mode)) {
      if (++links > most_links) {
        return unavailable("folder " + path.string() + ": leads through more than " + std::to_string(most_links) +
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
      return system_error(who, "cannot be made", errno);
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

Result<UniqueFd> open_shared_file(int folder, const std::string& name, const std::string& who, Create create) {
  const int make = create == Create::yes ? O_CREAT : 0;
  UniqueFd file(openat(folder, name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | make, 0600));
  if (!file && errno == ENOENT && create != Create::yes) return UniqueFd();
  if (!file) return system_error(who, "cannot be opened", errno);
  struct stat at {};
  if (fstat(file.get(), &at) != 0) return system_error(who, "cannot be looked at", errno);
  if (!S_ISREG(at.st_mode)) return unavailable(who + ": is not a regular file");
  if (Status status = check_owner(at, who); !status.ok()) return status;
  // What is written would be written to the file's other name too.
  if (at.st_nlink > 1) return unavailable(who + ": has " + std::to_string(at.st_nlink) + " names, expected 1");
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

}  // namespace kiln
