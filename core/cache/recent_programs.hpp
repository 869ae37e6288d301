// Bounded maps for programs: RecentPlaces for any value, FailedBuilds for compiler errors. Both evict the oldest
// element.
//
// Thread-safety: every method from any thread. Ownership: values; devices by address, not owned.
#pragma once

#include <kiln/device.hpp>
#include <kiln/digest.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace kiln {

// Identifies a program on one device. Two devices with the same identity are different places.
struct ProgramPlace {
  Digest digest;
  const Device* device = nullptr;
  bool operator==(const ProgramPlace&) const = default;
};

struct ProgramPlaceHash {
  std::size_t operator()(const ProgramPlace& place) const noexcept {
    return DigestHash{}(place.digest) ^ std::hash<const Device*>{}(place.device);
  }
};

// A bounded map from places to values.
template <class Value>
class RecentPlaces {
 public:
  explicit RecentPlaces(std::size_t most) : most_(most) {}

  std::optional<Value> find(const ProgramPlace& place) const {
    const std::lock_guard lock(mutex_);
    const auto at = values_.find(place);
    return at == values_.end() ? std::nullopt : std::optional<Value>(at->second);
  }

  // Does nothing if the place already has a value.
  void remember(const ProgramPlace& place, const Value& value) {
    if (most_ == 0) return;
    const std::lock_guard lock(mutex_);
    if (values_.contains(place)) return;
    if (order_.size() == most_) {
      values_.erase(order_.front());
      order_.pop_front();
    }
    order_.push_back(place);
    values_.emplace(place, value);
  }

 private:
  const std::size_t most_;
  mutable std::mutex mutex_;
  std::unordered_map<ProgramPlace, Value, ProgramPlaceHash> values_;
  std::deque<ProgramPlace> order_;  // the keys of values_, oldest first
};

// Compiler errors of this process, so that the same source is not compiled again.
//
// It stores only permanent failures: errors of the source (invalid_argument) and missing device features (unsupported).
class FailedBuilds {
 public:
  explicit FailedBuilds(std::size_t most = 256) : failures_(most) {}

  std::optional<Status> find(const ProgramPlace& place) const { return failures_.find(place); }
  void remember(const ProgramPlace& place, const Status& failure);

 private:
  RecentPlaces<Status> failures_;
};

}  // namespace kiln
