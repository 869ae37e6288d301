// RecentPlaces: what is remembered of programs, by their place. Bounded: the oldest goes.
//
// Thread-safety: every method from any thread. Ownership: values; devices by address, as in ProgramPlace.
#pragma once

#include "cache/program_place.hpp"

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace kiln {

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

}  // namespace kiln
