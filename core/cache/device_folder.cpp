#include "cache/device_folder.hpp"

#include "base/os/private_folder.hpp"
#include "cache/disk_bound.hpp"
#include "cache/key_material.hpp"
#include "cache/manifest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

namespace kiln {
namespace {

constexpr std::size_t most_other_drivers = 32;

std::string file_name(const Digest& digest, StoredFile file) {
  switch (file) {
    case StoredFile::program:
      return file_name_of(digest, ".bin");
    case StoredFile::suspect:
      return file_name_of(digest, suspect_suffix);
    case StoredFile::quarantined:
      return file_name_of(digest, quarantined_suffix);
    default:
      return file_name_of(digest, ".meta");
  }
}

// Somebody cleared the cache while this process has it open.
}  // namespace

DeviceFolder::DeviceFolder(int root, const DeviceInfo& device)
    : root_(root), name_(device_folder_name(device)), manifest_(encode_manifest(device)) {}

Result<int> DeviceFolder::open(Create create) {
  const std::lock_guard lock(mutex_);
  const bool removed = create == Create::yes && folder_ && is_removed(folder_.get());
  if (!folder_ || removed) {
    Result<UniqueFd> folder = open_subfolder(root_, name_, "folder " + name_, create);
    if (!folder) return folder.error();
    if (!*folder) return -1;
    manifest_seen_ = false;
    // In place: other threads may be using the number.
    if (!removed) {
      folder_ = std::move(*folder);
    } else if (dup3(folder->get(), folder_.get(), O_CLOEXEC) < 0) {
      return system_error("folder " + name_, "cannot be opened again", errno);
    }
  }
  if (create == Create::yes && !manifest_seen_) write_manifest();
  return folder_.get();
}

void DeviceFolder::write_manifest() {
  const FileContents there = read_file(folder_.get(), manifest_name, most_manifest_bytes);
  // What a power cut left of one is written anew; one that another version of Kiln wrote says as much and stays.
  const bool damaged = there.state == FileState::read && !driver_fields_of_manifest(text_of(there.bytes));
  manifest_seen_ = (there.state != FileState::absent && !damaged) ||
                   write_file(folder_.get(), manifest_name, std::as_bytes(std::span(manifest_))).ok();
}

Result<UniqueFd> DeviceFolder::open_subfolder_of(const Digest& digest, Create create) {
  const Result<int> folder = open(create);
  if (!folder) return folder.error();
  if (*folder < 0) return UniqueFd();
  const std::string name = subfolder_of(digest);
  Result<UniqueFd> subfolder = open_subfolder(*folder, name, "folder " + name_ + "/" + name, create);
  if (subfolder && *subfolder) subfolder_checked_[digest.bytes[0]].store(true, std::memory_order_relaxed);
  return subfolder;
}

FileContents DeviceFolder::read(const Digest& digest, StoredFile file, std::uint64_t most_bytes) {
  if (subfolder_checked_[digest.bytes[0]].load(std::memory_order_relaxed)) {
    const Result<int> whole = open(Create::no);
    if (whole) return read_file(*whole, subfolder_of(digest) + "/" + file_name(digest, file), most_bytes);
  }
  const Result<UniqueFd> folder = open_subfolder_of(digest, Create::no);
  if (!folder) return {FileState::unreadable, {}, folder.error().message};
  if (!*folder) return {FileState::absent, {}, {}};
  return read_file(folder->get(), file_name(digest, file), most_bytes);
}

Status DeviceFolder::write(const Digest& digest, StoredFile file, std::span<const std::byte> bytes) {
  const Result<UniqueFd> folder = open_subfolder_of(digest, Create::yes);
  if (!folder) return folder.error();
  return write_file(folder->get(), file_name(digest, file), bytes).within("folder " + name_);
}

Status DeviceFolder::update(const Digest& digest, StoredFile file, std::span<const std::byte> bytes) {
  if (subfolder_checked_[digest.bytes[0]].load(std::memory_order_relaxed)) {
    const Result<int> whole = open(Create::no);
    if (whole && overwrite_file(*whole, subfolder_of(digest) + "/" + file_name(digest, file), bytes)) return {};
  }
  return write(digest, file, bytes);
}

std::uint64_t DeviceFolder::remove(const Digest& digest) {
  const Result<UniqueFd> folder = open_subfolder_of(digest, Create::no);
  if (!folder || !*folder) return 0;
  std::uint64_t bytes = 0;
  for (const StoredFile file : {StoredFile::program, StoredFile::meta}) {
    const std::string name = file_name(digest, file);
    struct stat at {};
    if (fstatat(folder->get(), name.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (unlinkat(folder->get(), name.c_str(), 0) == 0) bytes += static_cast<std::uint64_t>(at.st_size);
  }
  return bytes;
}

std::optional<struct stat> DeviceFolder::look_at(const Digest& digest, StoredFile file) {
  const Result<int> folder = open(Create::no);
  if (!folder || *folder < 0) return std::nullopt;
  const std::string path = subfolder_of(digest) + "/" + file_name(digest, file);
  struct stat at {};
  if (fstatat(*folder, path.c_str(), &at, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(at.st_mode)) return std::nullopt;
  return at;
}

std::optional<std::int64_t> DeviceFolder::last_written_ns(const Digest& digest, StoredFile file) {
  const auto at = look_at(digest, file);
  return at ? std::optional(modified_ns(*at)) : std::nullopt;
}

bool DeviceFolder::rename(const Digest& digest, StoredFile from, StoredFile to) {
  const auto before = look_at(digest, from);
  const Result<UniqueFd> folder = open_subfolder_of(digest, Create::no);
  if (!before || !folder || !*folder) return false;
  const std::string old_name = file_name(digest, from);
  const std::string new_name = file_name(digest, to);
  // A power cut may have left both names on one file, and then renaming does nothing.
  const auto there = look_at(digest, to);
  const bool both_names = there && there->st_ino == before->st_ino;
  const int taken = both_names ? unlinkat(folder->get(), old_name.c_str(), 0)
                               : renameat(folder->get(), old_name.c_str(), folder->get(), new_name.c_str());
  if (taken != 0) return false;
  // It begins now; a program that is stored again keeps its time.
  if (to != StoredFile::program) utimensat(folder->get(), new_name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  return true;
}

bool DeviceFolder::set_aside(const Digest& digest, StoredFile as, std::int64_t written_by_s) {
  const auto stored = look_at(digest, StoredFile::program);
  return stored && stored->st_mtime <= written_by_s && rename(digest, StoredFile::program, as);
}

bool DeviceFolder::condemn(const Digest& digest) {
  return rename(digest, StoredFile::suspect, StoredFile::quarantined);
}

bool DeviceFolder::acquit(const Digest& digest) {
  if (!holds(digest, StoredFile::program)) return rename(digest, StoredFile::suspect, StoredFile::program);
  forget(digest, StoredFile::suspect);
  return true;
}

void DeviceFolder::forget(const Digest& digest, StoredFile aside) {
  const Result<UniqueFd> folder = open_subfolder_of(digest, Create::no);
  if (folder && *folder) unlinkat(folder->get(), file_name(digest, aside).c_str(), 0);
}

bool DeviceFolder::quarantine_lasts(const Digest& digest) {
  const auto aside = look_at(digest, StoredFile::quarantined);
  return aside && std::abs(std::time(nullptr) - aside->st_mtime) < quarantine_s;  // the clock may have been set back
}

std::vector<Digest> DeviceFolder::digests() {
  std::vector<Digest> found;
  const Result<int> folder = open(Create::no);
  if (!folder || *folder < 0) return found;
  constexpr std::string_view suffix = ".bin";
  for (const std::string& part : names_in(*folder)) {
    const Result<UniqueFd> subfolder = open_subfolder(*folder, part, "folder " + name_ + "/" + part, Create::no);
    if (!subfolder || !*subfolder) continue;
    for (const std::string& name : names_in(subfolder->get())) {
      if (!name.ends_with(suffix)) continue;
      const auto digest = Digest::from_hex(std::string_view(name).substr(0, name.size() - suffix.size()));
      if (digest && subfolder_of(*digest) == part) found.push_back(*digest);
    }
  }
  return found;
}

bool DeviceFolder::held_under_another_driver(const ProgramKey& key) {
  for (const OtherDriver& other : other_drivers()) {
    const auto material = with_driver(key.material, other.driver_fields);
    if (!material) return false;
    const Digest digest = sha256(*material);
    const std::string path = other.name + "/" + subfolder_of(digest) + "/" + file_name(digest, StoredFile::program);
    struct stat at {};
    if (fstatat(root_, path.c_str(), &at, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(at.st_mode)) return true;
  }
  return false;
}

const std::vector<DeviceFolder::OtherDriver>& DeviceFolder::other_drivers() {
  const std::lock_guard lock(mutex_);
  if (other_drivers_) return *other_drivers_;
  other_drivers_.emplace();
  for (const std::string& name : names_in(root_)) {
    if (other_drivers_->size() == most_other_drivers) break;
    if (!is_device_folder_name(name) || !differ_in_driver_only(name, name_)) continue;
    const Result<UniqueFd> folder = open_subfolder(root_, name, "folder " + name, Create::no);
    if (!folder || !*folder) continue;
    const FileContents manifest = read_file(folder->get(), manifest_name, most_manifest_bytes);
    if (manifest.state != FileState::read) continue;
    if (auto fields = driver_fields_of_manifest(text_of(manifest.bytes))) {
      other_drivers_->push_back({name, std::move(*fields)});
    }
  }
  return *other_drivers_;
}

}  // namespace kiln
