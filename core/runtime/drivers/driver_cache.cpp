#include <kiln/driver_cache.hpp>

#include "base/os/private_folder.hpp"
#include "cache/driver_scratch.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace kiln {
namespace {

namespace fs = std::filesystem;

// Where Mesa maps its index, and its bytes: a sum and 65536 keys of 20 bytes. Another release keeps other files; then
// this one is room that was there when it was asked for.
constexpr const char* mapped_folder = "mesa_shader_cache";
constexpr const char* mapped_file = "index";
constexpr off_t mapped_bytes = 8 + 65536 * 20;

std::string octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

std::string name_of(const fs::path& folder) { return "folder " + folder.string(); }

Status give_blocks(const fs::path& folder) {
  const std::string who = name_of(folder / mapped_folder);
  const Result<UniqueFd> around = open_folder(folder, Create::no);
  if (!around) return around.error();
  const Result<UniqueFd> inner = open_subfolder(around->get(), mapped_folder, who, Create::yes);
  if (!inner) return inner.error();
  const std::string what = "file " + (folder / mapped_folder / mapped_file).string();
  const Result<UniqueFd> file = open_shared_file(inner->get(), mapped_file, what, Create::yes);
  if (!file) return file.error();
  struct stat at {};
  if (fstat(file->get(), &at) != 0) return system_error(what, "cannot be looked at", errno);
  if (at.st_size == mapped_bytes && at.st_blocks * 512 >= at.st_size) return {};
  struct rlimit limit {};
  const bool fits = getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(mapped_bytes);
  int error = fits ? EINTR : EFBIG;  // over the limit the system would send a signal that ends the process
  while (error == EINTR) error = posix_fallocate(file->get(), 0, mapped_bytes);
  if (error == 0) return {};
  if (at.st_size == 0) unlinkat(inner->get(), mapped_file, 0);
  return system_error(what, "cannot be given its " + std::to_string(mapped_bytes) + " bytes", error);
}

}  // namespace

Status check_private_folder(const fs::path& folder) {
  struct stat at {};
  if (lstat(folder.c_str(), &at) != 0) return system_error(name_of(folder), "cannot be looked at", errno);
  if (!S_ISDIR(at.st_mode)) return unavailable(name_of(folder) + ": is a link or a file, expected a folder");
  if (at.st_uid != geteuid()) {
    return unavailable(name_of(folder) + ": belongs to user " + std::to_string(at.st_uid) + ", expected " +
                       std::to_string(geteuid()));
  }
  if ((at.st_mode & 0777) != 0700) {
    return unavailable(name_of(folder) + ": has mode " + octal(at.st_mode) + ", expected 0700");
  }
  const auto led_to = followed_path(folder);
  return led_to ? Status() : led_to.error();
}

Status prepare_driver_cache(const fs::path& folder) {
  // Before anything is made: below a folder that others can write nothing is.
  if (const auto led_to = followed_path(folder); !led_to) return led_to.error();
  if (const Result<UniqueFd> made = open_folder(folder, Create::yes); !made) return made.error();
  if (Status status = check_private_folder(folder); !status.ok()) return status;
  if (const Result<UniqueFd> root = open_folder(folder.parent_path().parent_path(), Create::no); root && *root) {
    sweep_driver_folders(root->get());
  }
  return give_blocks(folder);
}

std::string driver_setting_of(const fs::path& folder) { return DriverScratch::setting_of(folder.filename().string()); }

}  // namespace kiln
