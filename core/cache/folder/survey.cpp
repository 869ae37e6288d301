#include "cache/folder/survey.hpp"

#include "cache/folder/new_file.hpp"
#include "cache/folder/open_folder.hpp"
#include "cache/folder/read_file.hpp"
#include "cache/format/manifest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <map>
#include <optional>

namespace kiln {
namespace {

constexpr std::size_t digest_digits = 64;
constexpr std::size_t most_pruned = 4096;
constexpr std::time_t stale_after_s = 600;

std::optional<Digest> digest_of_file(std::string_view name) noexcept {
  if (name.size() < digest_digits) return std::nullopt;
  const std::string_view suffix = name.substr(digest_digits);
  if (suffix != ".bin" && suffix != ".meta") return std::nullopt;
  return Digest::from_hex(name.substr(0, digest_digits));
}

bool is_aside_name(std::string_view name) noexcept {
  return name.ends_with(quarantined_suffix) || name.ends_with(suspect_suffix);
}

// What is nobody's after some time: what a killed process was writing, and what is quarantined no more.
void sweep_if_stale(int folder, const std::string& name, const struct stat& at) {
  const std::time_t age_s = std::time(nullptr) - at.st_mtime;
  const bool stale =
      (NewFile::is_temporary(name) && age_s > stale_after_s) || (is_aside_name(name) && age_s > quarantine_s);
  if (stale) unlinkat(folder, name.c_str(), 0);
}

// Beside what is surveyed: a manifest, statistics.
void sweep_temporary(int folder, const std::string& name, Sweep sweep) {
  struct stat at {};
  if (sweep != Sweep::yes || !NewFile::is_temporary(name)) return;
  if (fstatat(folder, name.c_str(), &at, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(at.st_mode)) {
    sweep_if_stale(folder, name, at);
  }
}

void survey_subfolder(int folder, std::size_t index, Sweep sweep, Survey& found) {
  std::map<Digest, StoredEntry> entries;
  for (const std::string& name : names_in(folder)) {
    struct stat at {};
    if (fstatat(folder, name.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(at.st_mode)) continue;
    found.bytes += static_cast<std::uint64_t>(at.st_size);
    if (const auto digest = digest_of_file(name)) {
      StoredEntry& entry = entries[*digest];
      entry.folder = index;
      entry.digest = *digest;
      entry.bytes += static_cast<std::uint64_t>(at.st_size);
      entry.last_used_ns = std::max(entry.last_used_ns, modified_ns(at));
      entry.program = entry.program || name.ends_with(".bin");
      continue;
    }
    const auto aside = is_aside_name(name) ? Digest::from_hex(name.substr(0, digest_digits)) : std::nullopt;
    if (aside) found.aside.push_back({index, *aside, name.ends_with(quarantined_suffix), at.st_mtime});
    if (sweep == Sweep::yes) sweep_if_stale(folder, name, at);
  }
  for (const auto& [digest, entry] : entries) found.entries.push_back(entry);
}

enum class Removal : std::uint8_t { invalid = 0, done, gone, failed };

Removal remove_file(int folder, const std::string& name) {
  if (unlinkat(folder, name.c_str(), 0) == 0) return Removal::done;
  return errno == ENOENT ? Removal::gone : Removal::failed;
}

UniqueFd subfolder(int parent, const std::string& name) {
  return open_subfolder(parent, name, name, Create::no).value_or(UniqueFd());
}

}  // namespace

Survey survey(int root, Sweep sweep) {
  Survey found;
  for (const std::string& name : names_in(root)) {
    if (!is_device_folder_name(name)) {
      sweep_temporary(root, name, sweep);
      continue;
    }
    const UniqueFd device = subfolder(root, name);
    if (!device) continue;
    found.folders.push_back(name);
    for (const std::string& inner : names_in(device.get())) {
      if (!is_subfolder_name(inner)) {
        sweep_temporary(device.get(), inner, sweep);
        continue;
      }
      if (const UniqueFd folder = subfolder(device.get(), inner)) {
        survey_subfolder(folder.get(), found.folders.size() - 1, sweep, found);
      }
    }
  }
  return found;
}

std::size_t prune(int root, Survey& found, std::uint64_t bytes) {
  std::ranges::sort(found.entries, {}, &StoredEntry::last_used_ns);
  std::size_t removed = 0;
  for (const StoredEntry& entry : found.entries) {
    if (found.bytes <= bytes || removed == most_pruned) break;
    const UniqueFd device = subfolder(root, found.folders[entry.folder]);
    const UniqueFd folder = device ? subfolder(device.get(), subfolder_of(entry.digest)) : UniqueFd();
    if (!folder) continue;
    const Removal program = remove_file(folder.get(), file_name_of(entry.digest, ".bin"));
    const Removal meta = remove_file(folder.get(), file_name_of(entry.digest, ".meta"));
    if (program == Removal::failed || meta == Removal::failed) continue;
    // What somebody else has removed since it was seen makes room as well.
    found.bytes -= std::min(found.bytes, entry.bytes);
    if (program == Removal::done || meta == Removal::done) ++removed;
  }
  return removed;
}

Status remove_entry(int root, const std::string& folder, const Digest& digest) {
  const UniqueFd device = subfolder(root, folder);
  const UniqueFd inner = device ? subfolder(device.get(), subfolder_of(digest)) : UniqueFd();
  if (!inner) return {};
  for (const char* suffix : {".bin", ".meta"}) {
    const std::string name = file_name_of(digest, suffix);
    if (unlinkat(inner.get(), name.c_str(), 0) == 0 || errno == ENOENT) continue;
    return system_error("file " + folder + "/" + name, "cannot be removed", errno);
  }
  return {};
}

bool is_subfolder_name(std::string_view name) noexcept {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return name.size() == 2 && hex(name[0]) && hex(name[1]);
}

bool is_stored_file_name(std::string_view name) noexcept { return digest_of_file(name).has_value(); }

std::string subfolder_of(const Digest& digest) { return digest.hex().substr(0, 2); }

std::string file_name_of(const Digest& digest, std::string_view suffix) { return digest.hex().append(suffix); }

}  // namespace kiln
