#include "cache_admin/selection.hpp"

#include "base/os/file_lock.hpp"
#include "base/os/private_folder.hpp"
#include "cache/disk_bound.hpp"
#include "cache/manifest.hpp"
#include "cache/process_table.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace kiln {

namespace {

constexpr std::size_t least_digits = 4;
constexpr std::size_t most_digits = 64;
constexpr std::size_t most_listed = 8;
constexpr std::size_t shown_digits = 12;

}  // namespace

bool may_be_key(std::string_view which) noexcept {
  return which.size() >= least_digits && which.size() <= most_digits &&
         std::ranges::all_of(which, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_label_of(std::string_view which, std::string_view label) noexcept {
  return !which.empty() && label.starts_with(which) && (label.size() == which.size() || label[which.size()] == '/');
}

bool is_named(std::string_view which, const SelectedProgram& program) noexcept {
  return is_label_of(which, program.description.label) ||
         (may_be_key(which) && program.entry.digest.hex().starts_with(which));
}

std::vector<SelectedProgram> select_programs(const CacheRoot& root, std::string_view which) {
  std::vector<SelectedProgram> selected;
  for (const Area area : areas) {
    const Survey found = root.survey(area);
    for (const StoredEntry& entry : found.entries) {
      if (!entry.program) continue;
      const std::string& folder = found.folders[entry.folder];
      SelectedProgram program{area, folder, entry, root.describe(area, folder, entry)};
      if (is_named(which, program)) selected.push_back(std::move(program));
    }
  }
  return selected;
}

Result<std::vector<SelectedProgram>> select_stored(const CacheRoot& root, std::span<const std::string> which,
                                                   const CacheConfig& cache) {
  std::vector<SelectedProgram> all, chosen;
  const Survey found = root.survey(Area::stored);
  for (const StoredEntry& entry : found.entries) {
    if (!entry.program) continue;
    const std::string& folder = found.folders[entry.folder];
    all.push_back({Area::stored, folder, entry, root.describe(Area::stored, folder, entry)});
  }
  for (const std::string& one : which) {
    if (std::ranges::any_of(all, [&](const SelectedProgram& program) { return is_named(one, program); })) continue;
    return not_found("program '" + one + "': no stored program has this label or key prefix in " +
                     cache.directory.string());
  }
  for (SelectedProgram& program : all) {
    const auto names = [&](const std::string& one) { return is_named(one, program); };
    if (which.empty() || std::ranges::any_of(which, names)) chosen.push_back(std::move(program));
  }
  if (chosen.empty()) return not_found("cache " + cache.directory.string() + ": no program is stored");
  return chosen;
}

std::vector<AsideProgram> select_aside(const CacheRoot& root, std::string_view which) {
  std::vector<AsideProgram> selected = root.aside(root.survey(Area::stored));
  std::erase_if(selected, [&](const AsideProgram& program) {
    return !is_label_of(which, program.label) && !(may_be_key(which) && program.key.hex().starts_with(which));
  });
  return selected;
}

std::string list_of(const std::vector<SelectedProgram>& programs) {
  std::string list = std::to_string(programs.size()) + " programs: ";
  for (std::size_t i = 0; i < std::min(programs.size(), most_listed); ++i) {
    const SelectedProgram& program = programs[i];
    if (i != 0) list += ", ";
    list += program.entry.digest.hex().substr(0, shown_digits);
    list += " (" + (program.description.label.empty() ? "no label" : program.description.label) + ", in ";
    list += program.folder + (program.area == Area::pending ? ", pending)" : ")");
  }
  return programs.size() > most_listed ? list + ", …" : list;
}

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
  if (try_lock_all_bytes(file.get()) == LockAnswer::taken) unlinkat(folder, processes_name, 0);
}

}  // namespace

void remove_if_empty(int root, const std::string& device_folder) {
  const UniqueFd folder = existing_subfolder(root, device_folder);
  if (!folder) return;
  for (const std::string& name : names_in(folder.get())) {
    if (is_subfolder_name(name)) unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR);  // fails where it is not empty
  }
  const auto goes_along = [](const std::string& name) { return name == manifest_name || name == processes_name; };
  if (!std::ranges::all_of(names_in(folder.get()), goes_along)) return;
  remove_process_table(folder.get());
  if (std::ranges::count(names_in(folder.get()), processes_name) != 0) return;
  unlinkat(folder.get(), manifest_name, 0);
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
