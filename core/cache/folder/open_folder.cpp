#include "cache/folder/open_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace kiln {
namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t ours_alone = 0700;

Status check_owner(const struct stat& at, const std::string& who) {
  if (at.st_uid == geteuid()) return {};
  return unavailable(who + ": belongs to user " + std::to_string(at.st_uid) + ", expected " +
                     std::to_string(geteuid()));
}

Status check_ours(int folder, const std::string& who) {
  struct stat at {};
  if (fstat(folder, &at) != 0) return system_error(who, "cannot be looked at", errno);
  if (Status status = check_owner(at, who); !status.ok()) return status;
  if ((at.st_mode & 022) != 0) {
    char mode[16];
    std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(at.st_mode & 07777));
    return unavailable(who + ": has mode " + mode + ", expected one that only its owner can write");
  }
  return {};
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
  const std::filesystem::path plain = without_slash(path);
  const std::string who = "folder " + plain.string();
  if (!plain.is_absolute()) return invalid_argument(who + ": expected an absolute path");
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
