#include "simulator/kernel/sync/sync_object.hpp"

#include <algorithm>

namespace kiln::simulator::kernel {

std::optional<Fences> SyncObject::find(std::uint64_t point) const {
  if (links_.empty()) return std::nullopt;
  if (point > 0 && links_.back().value < point) return std::nullopt;
  Fences fences;
  for (const Link& link : links_) {
    fences.insert(fences.end(), link.fences.begin(), link.fences.end());
    if (point > 0 && link.value >= point) break;
  }
  return fences;
}

void SyncObject::replace(FencePtr fence) {
  links_.clear();
  if (fence != nullptr) links_.push_back({0, {std::move(fence)}});
}

void SyncObject::replace(Fences fences) {
  links_.clear();
  links_.push_back({0, std::move(fences)});
}

void SyncObject::add_point(std::uint64_t point, Fences fences) {
  forget_reached();
  const std::uint64_t last = links_.empty() ? 0 : links_.back().value;
  links_.push_back({std::max(point, last), std::move(fences)});
}

std::uint64_t SyncObject::reached_point() const noexcept {
  std::uint64_t point = 0;
  for (const Link& link : links_) {
    if (!all_signaled(link.fences)) break;
    point = link.value;
  }
  return is_timeline() ? point : 0;
}

std::uint64_t SyncObject::submitted_point() const noexcept { return links_.empty() ? 0 : links_.back().value; }

void SyncObject::forget_reached() {
  const auto waiting =
      std::find_if(links_.begin(), links_.end(), [](const Link& link) { return !all_signaled(link.fences); });
  if (waiting - links_.begin() > 1) links_.erase(links_.begin(), waiting - 1);
}

}  // namespace kiln::simulator::kernel
