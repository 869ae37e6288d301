#include "cache/folder/disk_bound.hpp"

#include "cache/folder/survey.hpp"
#include "cache/history/brief_lock.hpp"

#include <algorithm>
#include <chrono>

namespace kiln {
namespace {

constexpr std::chrono::milliseconds no_patience{0};
// Of one publication, where others write an eighth of the bound as fast as that is removed.
constexpr int most_walks = 8;

std::uint64_t less(std::uint64_t from, std::uint64_t what) noexcept { return from - std::min(from, what); }

}  // namespace

std::size_t DiskBound::published(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  untold_.published += bytes;
  if (use_) use_->add(bytes);
  std::size_t pruned = 0;
  for (int walks = 0; walks < most_walks; ++walks) {
    const Told told = tell();
    if (!is_walk_due(told)) break;
    const auto turn = told == Told::alone ? std::nullopt : BriefLock::take(root_, disk_walk_name, no_patience);
    // Who walks adds what was told meanwhile. He may also have been stopped: nobody exceeds the bound for that for
    // ever.
    if (!turn && told != Told::alone && use_->since_walk() <= most_bytes_ / 4) break;
    pruned += walk(told);
    if (told == Told::alone) break;
  }
  return pruned;
}

DiskBound::Told DiskBound::tell() {
  const auto file = figure_ == Figure::shared ? DiskUseFile::take(root_) : std::nullopt;
  if (!file) return Told::alone;
  const auto told = file->read();
  const bool known = told && surveyed_;
  use_ = told.value_or(DiskUse{});
  use_->add(untold_.published);
  use_->remove(untold_.removed);
  untold_ = {};
  file->write(*use_);
  return known ? Told::known : Told::unknown;
}

bool DiskBound::is_walk_due(Told told) const noexcept {
  if (told == Told::unknown || !surveyed_) return true;
  // Where a walk could not get below the bound, because what is in use takes it up, the next comes after some writing.
  return use_->since_walk() > most_bytes_ / 8 ||
         (use_->programs > most_bytes_ && use_->since_walk() > most_bytes_ / 64);
}

std::size_t DiskBound::walk(Told told) {
  const std::uint64_t published_before = told == Told::alone ? 0 : use_->published;
  Survey found = survey(root_, Sweep::yes);
  const std::size_t pruned = found.bytes > most_bytes_ ? prune(root_, found, most_bytes_ / 8 * 7) : 0;
  surveyed_ = true;
  settle({found.bytes}, published_before);
  return pruned;
}

void DiskBound::settle(DiskUse found, std::uint64_t published_before) {
  const auto file = figure_ == Figure::shared ? DiskUseFile::take(root_) : std::nullopt;
  if (file) {
    // Some of it the walk has seen as well: a figure that is too high costs a walk, one that is too low the bound.
    found.published = found.walked = published_before;
    if (const auto told = file->read()) found.add(less(told->published, published_before));
    file->write(found);
    untold_ = {};  // the walk has seen it
  }
  use_ = found;
}

void DiskBound::removed(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  untold_.removed += bytes;
  if (use_) use_->remove(bytes);
}

std::uint64_t DiskBound::bytes() {
  const std::lock_guard lock(mutex_);
  if (!use_) {
    use_ = DiskUse{survey(root_, Sweep::no).bytes};
    surveyed_ = true;
  }
  return use_->programs;
}

}  // namespace kiln
