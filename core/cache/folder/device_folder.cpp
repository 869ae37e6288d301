#include "cache/folder/device_folder.hpp"

#include "cache/folder/new_file.hpp"
#include "cache/folder/open_folder.hpp"
#include "cache/folder/survey.hpp"
#include "cache/format/key_material.hpp"
#include "cache/format/manifest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace kiln {
namespace {

constexpr std::uint64_t most_manifest_bytes = 64 << 10;
constexpr std::size_t most_other_drivers = 32;

std::string file_name(const Digest& digest, StoredFile file) {
  return file_name_of(digest, file == StoredFile::program ? ".bin" : ".meta");
}

// Somebody cleared the cache while this process has it open.
bool is_removed(int folder) noexcept {
  struct stat at {};
  return fstat(folder, &at) == 0 && at.st_nlink == 0;
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

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
  struct stat at {};
  manifest_seen_ = fstatat(folder_.get(), manifest_name, &at, AT_SYMLINK_NOFOLLOW) == 0 ||
                   write_file(folder_.get(), manifest_name, std::as_bytes(std::span(manifest_))).ok();
}

Result<UniqueFd> DeviceFolder::open_subfolder_of(const Digest& digest, Create create) {
  const Result<int> folder = open(create);
  if (!folder) return folder.error();
  if (*folder < 0) return UniqueFd();
  const std::string name = subfolder_of(digest);
  return open_subfolder(*folder, name, "folder " + name_ + "/" + name, create);
}

FileContents DeviceFolder::read(const Digest& digest, StoredFile file, std::uint64_t most_bytes) {
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
