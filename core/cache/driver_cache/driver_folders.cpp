#include "cache/driver_cache/driver_folders.hpp"

#include "cache/folder/open_folder.hpp"
#include "cache/format/manifest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace kiln {
namespace {

constexpr std::size_t digest_digits = 64;
constexpr int most_levels = 8;  // Mesa's own have three
constexpr std::int64_t idle_ns = std::int64_t{24} * 3600 * 1'000'000'000;

std::int64_t ns_of(const struct timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

std::int64_t last_use(const struct stat& at) { return std::max(ns_of(at.st_mtim), ns_of(at.st_atim)); }

// The driver makes its folders with the modes that it likes: what counts is that nobody else got into the one around
// them.
UniqueFd inner_folder(int parent, const std::string& name) {
  return UniqueFd(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void count(int folder, int levels, DriverFolder& found) {
  for (const std::string& name : names_in(folder)) {
    struct stat at {};
    if (fstatat(folder, name.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(at.st_mode)) {
      const UniqueFd inner = levels > 0 ? inner_folder(folder, name) : UniqueFd();
      if (inner) count(inner.get(), levels - 1, found);
    } else if (S_ISREG(at.st_mode)) {
      ++found.files;
      // Mesa's index is a sparse file: what counts is what it takes.
      found.bytes += std::min(static_cast<std::uint64_t>(at.st_size), static_cast<std::uint64_t>(at.st_blocks) * 512);
      found.last_used_ns = std::max(found.last_used_ns, last_use(at));
    }
  }
}

Status remove_all_in(int folder, const std::string& who, int levels) {
  Status failure;
  for (const std::string& name : names_in(folder)) {
    struct stat at {};
    if (fstatat(folder, name.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0) continue;
    Status status;
    if (S_ISDIR(at.st_mode)) {
      const UniqueFd inner = levels > 0 ? inner_folder(folder, name) : UniqueFd();
      if (inner) status = remove_all_in(inner.get(), who + "/" + name, levels - 1);
    }
    if (status.ok() && unlinkat(folder, name.c_str(), S_ISDIR(at.st_mode) ? AT_REMOVEDIR : 0) != 0 && errno != ENOENT) {
      status = system_error(who + "/" + name, "cannot be removed", errno);
    }
    if (failure.ok()) failure = std::move(status);
  }
  return failure;
}

bool same_file(int fd, const char* path) {
  struct stat one {
  }, other{};
  return fstat(fd, &one) == 0 && lstat(path, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace

bool is_driver_folder_name(std::string_view name) noexcept {
  return name.size() == digest_digits &&
         std::ranges::all_of(name, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::vector<DriverFolder> driver_folders(int root) {
  std::vector<DriverFolder> folders;
  const Result<UniqueFd> all = open_subfolder(root, driver_caches_name, driver_caches_name, Create::no);
  if (!all || !*all) return folders;
  for (const std::string& name : names_in(all->get())) {
    if (!is_driver_folder_name(name)) continue;
    const Result<UniqueFd> folder = open_subfolder(all->get(), name, name, Create::no);
    struct stat at {};
    if (!folder || !*folder || fstat(folder->get(), &at) != 0) continue;
    DriverFolder found;
    found.name = name;
    found.last_used_ns = ns_of(at.st_mtim);
    for (const std::string& inner : names_in(folder->get())) {
      const UniqueFd below = inner_folder(folder->get(), inner);
      if (!below) continue;
      if (inner != served_devices_name) {
        count(below.get(), most_levels, found);
        continue;
      }
      found.devices = names_in(below.get());
      std::erase_if(found.devices, [](const std::string& device) { return !is_device_folder_name(device); });
      std::ranges::sort(found.devices);
    }
    folders.push_back(std::move(found));
  }
  std::ranges::sort(folders, {}, &DriverFolder::name);
  return folders;
}

bool serves_nobody(const DriverFolder& folder, const std::set<std::string>& devices, std::int64_t now_ns) {
  const bool served = std::ranges::any_of(folder.devices, [&](const auto& name) { return devices.contains(name); });
  return !folder.devices.empty() && !served && now_ns - folder.last_used_ns > idle_ns;
}

Status remove_driver_folder(int root, const std::string& name) {
  const std::string who = std::string("folder ") + driver_caches_name + "/" + name;
  const Result<UniqueFd> all = open_subfolder(root, driver_caches_name, driver_caches_name, Create::no);
  if (!all) return all.error();
  if (!*all) return {};
  const Result<UniqueFd> folder = open_subfolder(all->get(), name, who, Create::no);
  if (!folder) return folder.error();
  if (!*folder) return {};
  if (Status status = remove_all_in(folder->get(), who, most_levels); !status.ok()) return status;
  if (unlinkat(all->get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return system_error(who, "cannot be removed", errno);
}

void note_served(int root, const std::string& name, const std::string& device_folder) {
  const Result<UniqueFd> all = open_subfolder(root, driver_caches_name, driver_caches_name, Create::no);
  if (!all || !*all) return;
  const Result<UniqueFd> folder = open_subfolder(all->get(), name, name, Create::no);
  if (!folder || !*folder) return;
  futimens(folder->get(), nullptr);  // used now, also where the filesystem notes no reading
  const Result<UniqueFd> devices = open_subfolder(folder->get(), served_devices_name, served_devices_name, Create::yes);
  if (!devices || !*devices) return;
  const UniqueFd note(
      openat(devices->get(), device_folder.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
}

std::optional<std::string> driver_folder_in_use(int root) {
  const char* told = std::getenv("MESA_SHADER_CACHE_DIR");
  if (told == nullptr) return std::nullopt;
  std::string name = std::filesystem::path(told).filename().string();
  if (!is_driver_folder_name(name)) return std::nullopt;
  const Result<UniqueFd> all = open_subfolder(root, driver_caches_name, driver_caches_name, Create::no);
  if (!all || !*all) return std::nullopt;
  const Result<UniqueFd> folder = open_subfolder(all->get(), name, name, Create::no);
  if (!folder || !*folder || !same_file(folder->get(), told)) return std::nullopt;
  return name;
}

void note_driver_folder(int root, const std::string& device_folder) {
  if (const auto name = driver_folder_in_use(root)) note_served(root, *name, device_folder);
}

}  // namespace kiln
