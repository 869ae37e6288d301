#include "cache/bundle/driver_files.hpp"

#include "cache/driver_cache/driver_folders.hpp"
#include "cache/folder/new_file.hpp"
#include "cache/folder/open_folder.hpp"
#include "cache/folder/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

namespace kiln {
namespace {

using Tell = std::function<void(const std::string&, std::span<const std::byte>)>;

UniqueFd inner_folder(int parent, const std::string& name) {
  return UniqueFd(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void read_all(int folder, const std::string& prefix, const Tell& tell) {
  std::vector<std::string> names = names_in(folder);
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const std::string path = prefix + name;
    struct stat at {};
    if (!is_safe_driver_path(path) || fstatat(folder, name.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(at.st_mode)) {
      if (const UniqueFd inner = inner_folder(folder, name)) read_all(inner.get(), path + "/", tell);
    } else if (S_ISREG(at.st_mode)) {
      const FileContents file = read_file(folder, name, BundleLimits{}.driver_file);
      if (file.state == FileState::read) tell(path, file.bytes);
    }
  }
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// "TOP/hh/38 digits", and the index beside them: where a file is an entry of its own.
bool is_of_one_entry(std::string_view path) {
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view rest = path.substr(slash + 1);
  return rest == "index" ||
         (rest.size() > 3 && rest[2] == '/' && is_hex(rest.substr(0, 2), 2) && is_hex(rest.substr(3), 38));
}

bool has_files(int folder) {
  for (const std::string& name : names_in(folder)) {
    struct stat at {};
    if (fstatat(folder, name.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(at.st_mode)) return true;
    const UniqueFd inner = S_ISDIR(at.st_mode) ? inner_folder(folder, name) : UniqueFd();
    if (inner && has_files(inner.get())) return true;
  }
  return false;
}

// The folder that the file lies in, made where it is missing.
Result<UniqueFd> folder_of(int cache, std::string_view path, const std::string& who) {
  UniqueFd folder(fcntl(cache, F_DUPFD_CLOEXEC, 0));
  std::string so_far = who;
  for (std::size_t slash; (slash = path.find('/')) != std::string_view::npos; path.remove_prefix(slash + 1)) {
    const std::string part(path.substr(0, slash));
    so_far += "/" + part;
    Result<UniqueFd> inner = open_subfolder(folder.get(), part, so_far, Create::yes);
    if (!inner) return inner.error();
    folder = std::move(*inner);
  }
  return folder;
}

Status place(int cache, const BundledDriverFile& file, const std::string& who, PlacedDriverFiles& placed) {
  const Result<UniqueFd> folder = folder_of(cache, file.path, who);
  if (!folder) return folder.error();
  const std::string name(file.path.substr(file.path.rfind('/') + 1));  // the whole path where there is no '/'
  struct stat at {};
  if (fstatat(folder->get(), name.c_str(), &at, AT_SYMLINK_NOFOLLOW) == 0) {
    ++placed.already;
    return {};
  }
  const Result<std::vector<std::byte>> content = inflate_driver_file(file);
  if (!content) return content.error();
  if (Status status = write_file(folder->get(), name, *content); !status.ok()) return status.within(who);
  ++placed.placed;
  placed.bytes += content->size();
  return {};
}

}  // namespace

void read_driver_files(int root, const std::string& name, const Tell& tell) {
  const Result<UniqueFd> all = open_subfolder(root, driver_caches_name, driver_caches_name, Create::no);
  if (!all || !*all) return;
  const Result<UniqueFd> cache = open_subfolder(all->get(), name, name, Create::no);
  if (cache && *cache) read_all(cache->get(), "", tell);
}

Result<PlacedDriverFiles> place_driver_files(int root, const std::string& name,
                                             std::span<const BundledDriverFile> files) {
  PlacedDriverFiles placed;
  const std::string who = std::string("folder ") + driver_caches_name + "/" + name;
  const Result<UniqueFd> all = open_subfolder(root, driver_caches_name, who, Create::yes);
  if (!all) return all.error();
  const Result<UniqueFd> cache = open_subfolder(all->get(), name, who, Create::yes);
  if (!cache) return cache.error();
  // By the first part of the path: each of the driver's ways to keep a cache has a folder of its own there.
  std::map<std::string_view, std::vector<const BundledDriverFile*>> tops;
  for (const BundledDriverFile& file : files) {
    if (file.cache == name) tops[file.path.substr(0, file.path.find('/'))].push_back(&file);
  }
  for (const auto& [top, below] : tops) {
    const bool merges = std::ranges::all_of(below, [](const auto* file) { return is_of_one_entry(file->path); });
    const UniqueFd there = inner_folder(cache->get(), std::string(top));
    if (!merges && there && has_files(there.get())) {
      placed.why_not = who + "/" + std::string(top) + ": the driver has files of its own there, which cannot be merged";
      placed.already += below.size();
      continue;
    }
    for (const BundledDriverFile* file : below) {
      if (Status status = place(cache->get(), *file, who, placed); !status.ok()) return status;
    }
  }
  return placed;
}

}  // namespace kiln
