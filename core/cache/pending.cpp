#include "cache/pending.hpp"

#include "base/os/private_folder.hpp"
#include "base/secret_key.hpp"
#include "cache/cache_root.hpp"
#include "cache/disk_bound.hpp"
#include "cache/manifest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <map>
#include <set>

namespace kiln {

namespace {

constexpr std::int64_t ns_of_second = 1'000'000'000;

// Another process stored all that was in it, or cleared the cache.
}  // namespace

Result<PendingArea::Opened*> PendingArea::open() {
  if (opened_ != nullptr && !is_removed(opened_->folder.get())) return opened_.get();
  const std::string who = "folder " + std::string(pending_name);
  Result<UniqueFd> folder = open_subfolder(root_, pending_name, who, Create::yes);
  if (!folder) return folder.error();
  if (opened_ != nullptr) {
    // In place: the folders of devices know the number.
    if (dup3(folder->get(), opened_->folder.get(), O_CLOEXEC) < 0) {
      return system_error(who, "cannot be opened again", errno);
    }
    return opened_.get();
  }
  const int fd = folder->get();
  expire_pending(fd, std::time(nullptr));
  opened_ = std::unique_ptr<Opened>(new Opened{std::move(*folder), {fd, most_bytes_, Figure::own}});
  return opened_.get();
}

Result<DeviceFolder*> PendingArea::keep(const DeviceInfo& device, const Digest& digest,
                                        std::span<const std::byte> bytes) {
  Opened* area = nullptr;
  DeviceFolder* folder = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const Result<Opened*> opened = open();
    if (!opened) return opened.error();
    area = *opened;
    auto& made = folders_[device_folder_name(device)];
    if (made == nullptr) made = std::make_unique<DeviceFolder>(area->folder.get(), device);
    folder = made.get();
  }
  if (Status status = folder->write(digest, StoredFile::program, bytes); !status.ok()) {
    return status.within(pending_name);
  }
  (void)area->bound.published(bytes.size());
  return folder;
}

void expire_pending(int pending, std::int64_t now_s) {
  const Survey found = survey(pending, Sweep::yes);
  for (const StoredEntry& entry : found.entries) {
    if (now_s - entry.last_used_ns / ns_of_second <= pending_s) continue;
    // What cannot be removed is tried again by the next.
    static_cast<void>(remove_entry(pending, found.folders[entry.folder], entry.digest));
  }
}

namespace {

// The stored folder `device`/hh, made where it is missing, with the manifest of the pending one.
Result<UniqueFd> stored_folder(const CacheRoot& root, int pending_device, const std::string& device,
                               const std::string& inner) {
  Result<UniqueFd> folder = open_subfolder(root.of(Area::stored), device, "folder " + device, Create::yes);
  if (!folder) return folder.error();
  struct stat at {};
  if (fstatat(folder->get(), manifest_name, &at, AT_SYMLINK_NOFOLLOW) != 0) {
    const FileContents manifest = read_file(pending_device, manifest_name, most_manifest_bytes);
    // A lost manifest costs words, never a program.
    if (manifest.state == FileState::read) static_cast<void>(write_file(folder->get(), manifest_name, manifest.bytes));
  }
  return open_subfolder(folder->get(), inner, "folder " + device + "/" + inner, Create::yes);
}

// .bin, then .meta, which stays where there is one already.
Status move_files(int from, int to, const Digest& digest, const std::string& who) {
  const std::string program = file_name_of(digest, ".bin"), meta = file_name_of(digest, ".meta");
  utimensat(from, program.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);  // stored now
  if (renameat(from, program.c_str(), to, program.c_str()) != 0) {
    return system_error("file " + who + "/" + program, "cannot be moved out of pending", errno);
  }
  struct stat at {};
  if (fstatat(to, meta.c_str(), &at, AT_SYMLINK_NOFOLLOW) == 0 || renameat(from, meta.c_str(), to, meta.c_str()) != 0) {
    unlinkat(from, meta.c_str(), 0);
  }
  return {};
}

}  // namespace

Result<Published> publish_pending(const CacheRoot& root, const std::string& folder, const Digest& digest,
                                  const EntryKey& key) {
  const FileContents file = root.read_program(Area::pending, folder, digest);
  if (file.state == FileState::absent) return Published{Publication::gone, 0, Rejection::none, {}};
  EntryVerdict verdict = judge(file, digest, key);
  if (verdict.reason != Rejection::none) {
    if (Status status = remove_entry(root.of(Area::pending), folder, digest); !status.ok()) return status;
    return Published{Publication::rejected, 0, verdict.reason, std::move(verdict.why)};
  }
  const FileContents there = root.read_program(Area::stored, folder, digest);
  if (there.state == FileState::read && judge(there, digest, key).reason == Rejection::none) {
    if (Status status = remove_entry(root.of(Area::pending), folder, digest); !status.ok()) return status;
    return Published{Publication::already, 0, Rejection::none, {}};
  }
  const std::string inner = subfolder_of(digest);
  const Result<UniqueFd> device = open_subfolder(root.of(Area::pending), folder, "folder " + folder, Create::no);
  if (!device) return device.error();
  if (!*device) return Published{Publication::gone, 0, Rejection::none, {}};
  const Result<UniqueFd> from = open_subfolder(device->get(), inner, "folder " + folder + "/" + inner, Create::no);
  if (!from) return from.error();
  if (!*from) return Published{Publication::gone, 0, Rejection::none, {}};
  const Result<UniqueFd> to = stored_folder(root, device->get(), folder, inner);
  if (!to) return to.error();
  if (Status status = move_files(from->get(), to->get(), digest, folder + "/" + inner); !status.ok()) return status;
  // What was set aside because a process died of it has been built anew.
  unlinkat(to->get(), file_name_of(digest, quarantined_suffix).c_str(), 0);
  return Published{Publication::stored, file.bytes.size(), Rejection::none, {}};
}

}  // namespace kiln
