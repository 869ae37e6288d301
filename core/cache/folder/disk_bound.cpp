#include "cache/folder/disk_bound.hpp"

#include "cache/driver_cache/driver_pruning.hpp"
#include "cache/folder/survey.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kiln {
namespace {

std::uint64_t less(std::uint64_t from, std::uint64_t what) noexcept { return from - std::min(from, what); }

std::set<std::string> folders_with_programs(const Survey& found) {
  std::set<std::string> folders;
  for (const StoredEntry& entry : found.entries) folders.insert(found.folders[entry.folder]);
  return folders;
}

}  // namespace

std::size_t DiskBound::published(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  untold_.published += bytes;
  if (use_) use_->add(bytes);
  const auto file = figure_ == Figure::shared ? DiskUseFile::take(root_) : std::nullopt;
  bool known = use_.has_value();
  if (file) {
    if (auto told = file->read(); told && known) {
      told->add(untold_.published);
      told->remove(untold_.removed);
      use_ = told;
    } else {
      known = false;
    }
    untold_ = {};
  }
  // Where a walk could not get below the bound, because what is in use takes it up, the next comes after some writing.
  const bool over = use_ && use_->bytes() > most_bytes_ && use_->written > most_bytes_ / 64;
  const bool walks = !known || over || use_->written > most_bytes_ / 8;
  const std::size_t pruned = walks ? walk() : 0;
  if (file) file->write(*use_);
  return pruned;
}

std::size_t DiskBound::walk() {
  Survey found = survey(root_, Sweep::yes);
  std::vector<DriverFolder> drivers = driver_folders(root_);
  std::uint64_t drivers_bytes = bytes_of(drivers);
  std::size_t pruned = 0;
  if (found.bytes + drivers_bytes > most_bytes_) {
    const std::uint64_t enough = most_bytes_ / 8 * 7;
    const DriverRoom room{found.bytes + drivers_bytes - enough, most_bytes_ / 2};
    drivers_bytes = prune_driver_folders(root_, std::move(drivers), folders_with_programs(found), room);
    // An eighth is the programs' whatever a driver takes: a cache that keeps nothing would be of no use to anybody.
    pruned = prune(root_, found, std::max(less(enough, drivers_bytes), most_bytes_ / 8));
  }
  use_ = DiskUse{found.bytes, drivers_bytes, 0};
  return pruned;
}

void DiskBound::removed(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  untold_.removed += bytes;
  if (use_) use_->remove(bytes);
}

std::uint64_t DiskBound::bytes() {
  const std::lock_guard lock(mutex_);
  if (!use_) use_ = DiskUse{survey(root_, Sweep::no).bytes, bytes_of(driver_folders(root_)), 0};
  return use_->programs;
}

}  // namespace kiln
