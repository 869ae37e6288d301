#include "cache/admin/leftovers.hpp"

#include "cache/folder/new_file.hpp"
#include "cache/folder/open_folder.hpp"
#include "cache/folder/survey.hpp"
#include "cache/format/manifest.hpp"
#include "cache/process/process_slot.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace kiln {
namespace {

bool is_ours(std::string_view name) {
  return is_stored_file_name(name) || NewFile::is_temporary(name) || name.ends_with(quarantined_suffix);
}

// What says something about programs, and nothing where there are none.
bool goes_with_the_last(std::string_view name) { return name == manifest_name || name == processes_name; }

void clear_files(int folder, const std::string& who, Cleared& cleared) {
  for (const std::string& name : names_in(folder)) {
    struct stat at {};
    if (!is_ours(name) || fstatat(folder, name.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (unlinkat(folder, name.c_str(), 0) != 0) {
      if (errno != ENOENT && cleared.failure.ok()) {
        cleared.failure = system_error("file " + who + "/" + name, "cannot be removed", errno);
      }
      continue;
    }
    cleared.bytes += static_cast<std::uint64_t>(at.st_size);
    cleared.programs += name.ends_with(".bin") ? 1 : 0;
  }
}

}  // namespace

void remove_if_empty(int root, const std::string& device_folder) {
  const Result<UniqueFd> folder = open_subfolder(root, device_folder, device_folder, Create::no);
  if (!folder || !*folder) return;
  for (const std::string& name : names_in(folder->get())) {
    if (is_subfolder_name(name)) unlinkat(folder->get(), name.c_str(), AT_REMOVEDIR);  // fails where it is not empty
  }
  const auto left = names_in(folder->get());
  if (!std::ranges::all_of(left, goes_with_the_last)) return;
  for (const std::string& name : left) unlinkat(folder->get(), name.c_str(), 0);
  unlinkat(root, device_folder.c_str(), AT_REMOVEDIR);
}

Cleared clear_device_folder(int root, const std::string& device_folder) {
  Cleared cleared;
  const std::string who = "folder " + device_folder;
  const Result<UniqueFd> folder = open_subfolder(root, device_folder, who, Create::no);
  if (!folder) cleared.failure = folder.error();
  if (!folder || !*folder) return cleared;
  for (const std::string& name : names_in(folder->get())) {
    if (!is_subfolder_name(name)) continue;
    const Result<UniqueFd> inner = open_subfolder(folder->get(), name, who + "/" + name, Create::no);
    if (!inner && cleared.failure.ok()) cleared.failure = inner.error();
    if (inner && *inner) clear_files(inner->get(), device_folder + "/" + name, cleared);
  }
  clear_files(folder->get(), device_folder, cleared);  // a manifest that was being written
  remove_if_empty(root, device_folder);
  return cleared;
}

}  // namespace kiln
