// PlacesOnceHeld: programs that this process had, so that one which it has to build again is known to have been
// evicted.
//
// Bounded: the oldest is forgotten, and a program of its place then counts as one that was never there. Thread-safety:
// every method from any thread. Ownership: values; devices by address, as in ProgramPlace.
#pragma once

#include "cache/program_place.hpp"

#include <cstddef>
#include <deque>
#include <mutex>
#include <unordered_set>

namespace kiln {

class PlacesOnceHeld {
 public:
  explicit PlacesOnceHeld(std::size_t most = 65536) noexcept : most_(most) {}

  bool holds(const ProgramPlace& place) const {
    const std::lock_guard lock(mutex_);
    return places_.contains(place);
  }

  void remember(const ProgramPlace& place) {
    const std::lock_guard lock(mutex_);
    if (most_ == 0 || places_.contains(place)) return;
    if (order_.size() == most_) {
      places_.erase(order_.front());
      order_.pop_front();
    }
    places_.insert(place);
    order_.push_back(place);
  }

 private:
  const std::size_t most_;
  mutable std::mutex mutex_;
  std::unordered_set<ProgramPlace, ProgramPlaceHash> places_;
  std::deque<ProgramPlace> order_;  // oldest first; the same as are in places_
};

}  // namespace kiln
