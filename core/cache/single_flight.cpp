#include "cache/single_flight.hpp"

namespace kiln {

namespace {

bool will_come_again(StatusCode code) noexcept {
  return code == StatusCode::invalid_argument || code == StatusCode::unsupported;
}

}  // namespace

void FailedBuilds::remember(const ProgramPlace& place, const Status& failure) {
  if (will_come_again(failure.code)) failures_.remember(place, failure);
}

}  // namespace kiln
