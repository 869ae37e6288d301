#include "cache/folder/disk_bound.hpp"

#include "cache/folder/survey.hpp"

#include <algorithm>

namespace kiln {

std::size_t DiskBound::published(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  written_ += bytes;
  if (bytes_) *bytes_ += bytes;
  if (bytes_ && *bytes_ <= most_bytes_ && written_ <= most_bytes_ / 8) return 0;
  Survey found = survey(root_, Sweep::yes);
  const std::size_t pruned = found.bytes > most_bytes_ ? prune(root_, found, most_bytes_ / 8 * 7) : 0;
  bytes_ = found.bytes;
  written_ = 0;
  return pruned;
}

void DiskBound::removed(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes_) *bytes_ -= std::min(*bytes_, bytes);
}

std::uint64_t DiskBound::bytes() {
  const std::lock_guard lock(mutex_);
  if (!bytes_) bytes_ = survey(root_, Sweep::no).bytes;
  return *bytes_;
}

}  // namespace kiln
