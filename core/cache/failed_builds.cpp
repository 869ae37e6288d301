#include "cache/failed_builds.hpp"

namespace kiln {
namespace {

bool will_come_again(StatusCode code) noexcept {
  return code == StatusCode::invalid_argument || code == StatusCode::unsupported;
}

}  // namespace

std::optional<Status> FailedBuilds::find(const ProgramPlace& place) const {
  const std::lock_guard lock(mutex_);
  const auto at = failures_.find(place);
  return at == failures_.end() ? std::nullopt : std::optional(at->second);
}

void FailedBuilds::remember(const ProgramPlace& place, const Status& failure) {
  if (most_ == 0 || !will_come_again(failure.code)) return;
  const std::lock_guard lock(mutex_);
  if (failures_.contains(place)) return;
  if (order_.size() == most_) {
    failures_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(place);
  failures_.emplace(place, failure);
}

}  // namespace kiln
