// FailedBuilds: what the compiler had to say about sources that it refuses, so that the same one is not asked again.
//
// Only failures that will come again are kept: what is wrong with the source (invalid_argument) or beyond the device
// (unsupported). One that another moment may mend is not. Bounded: the oldest goes. Of this process only: nothing is
// stored. Thread-safety: every method from any thread. Ownership: values.
#pragma once

#include "cache/recent_places.hpp"

#include <kiln/status.hpp>

#include <cstddef>
#include <optional>

namespace kiln {

class FailedBuilds {
 public:
  explicit FailedBuilds(std::size_t most = 256) : failures_(most) {}

  std::optional<Status> find(const ProgramPlace& place) const { return failures_.find(place); }
  void remember(const ProgramPlace& place, const Status& failure);

 private:
  RecentPlaces<Status> failures_;
};

}  // namespace kiln
