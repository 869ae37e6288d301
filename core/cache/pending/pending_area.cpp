#include "cache/pending/pending_area.hpp"

#include "cache/folder/survey.hpp"
#include "cache/format/manifest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace kiln {
namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;

// Another process stored all that was in it, or cleared the cache.
bool is_removed(int folder) noexcept {
  struct stat at {};
  return fstat(folder, &at) == 0 && at.st_nlink == 0;
}

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
    if (now_s - entry.last_used_ns / ns_per_s <= pending_s) continue;
    // What cannot be removed is tried again by the next.
    static_cast<void>(remove_entry(pending, found.folders[entry.folder], entry.digest));
  }
}

}  // namespace kiln
