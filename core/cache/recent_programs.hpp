// ProgramPlace: a program belongs to one device, also where another device has the same identity.
//
// Thread-safety: values. Ownership: borrows the device, by address.
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

// RecentPlaces: what is remembered of programs, by their place. Bounded: the oldest goes.
//
// Thread-safety: every method from any thread. Ownership: values; devices by address, as in ProgramPlace.

template <class Value>
class RecentPlaces {
 public:
  explicit RecentPlaces(std::size_t most) : most_(most) {}

  std::optional<Value> find(const ProgramPlace& place) const {
    const std::lock_guard lock(mutex_);
    const auto at = values_.find(place);
    return at == values_.end() ? std::nullopt : std::optional<Value>(at->second);
  }

  // What was remembered first stays.
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
  std::deque<ProgramPlace> order_;  // oldest first; the same as are in values_
};

// FailedBuilds: what the compiler had to say about sources that it refuses, so that the same one is not asked again.
//
// Only failures that will come again are kept: what is wrong with the source (invalid_argument) or beyond the device
// (unsupported). One that another moment may mend is not. Bounded: the oldest goes. Of this process only: nothing is
// stored. Thread-safety: every method from any thread. Ownership: values.

class FailedBuilds {
 public:
  explicit FailedBuilds(std::size_t most = 256) : failures_(most) {}

  std::optional<Status> find(const ProgramPlace& place) const { return failures_.find(place); }
  void remember(const ProgramPlace& place, const Status& failure);

 private:
  RecentPlaces<Status> failures_;
};

}  // namespace kiln
