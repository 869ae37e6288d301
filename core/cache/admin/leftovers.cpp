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
  return is_stored_file_name(name) || NewFile::is_temporary(name) || name.ends_with(quarantined_suffix) ||
         name.ends_with(suspect_suffix);
}

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

// Unless a process that is alive has its slot in it: that one and those that come after it would no longer see one
// another.
void remove_process_table(int folder) {
  const UniqueFd file(openat(folder, processes_name, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return;
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(file.get(), F_OFD_SETLK, &whole) == 0) unlinkat(folder, processes_name, 0);
}

}  // namespace

void remove_if_empty(int root, const std::string& device_folder) {
  const Result<UniqueFd> folder = open_subfolder(root, device_folder, device_folder, Create::no);
  if (!folder || !*folder) return;
  for (const std::string& name : names_in(folder->get())) {
    if (is_subfolder_name(name)) unlinkat(folder->get(), name.c_str(), AT_REMOVEDIR);  // fails where it is not empty
  }
  const auto goes_along = [](const std::string& name) { return name == manifest_name || name == processes_name; };
  if (!std::ranges::all_of(names_in(folder->get()), goes_along)) return;
  remove_process_table(folder->get());
  if (std::ranges::count(names_in(folder->get()), processes_name) != 0) return;
  unlinkat(folder->get(), manifest_name, 0);
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
