#include "objects/timeline.hpp"

#include <string>

namespace kiln::opengl {

std::uint64_t Timeline::begin() {
  const std::lock_guard lock(mutex_);
  results_.emplace(++last_, std::nullopt);
  return last_;
}

void Timeline::complete(std::uint64_t value, Result<FenceResult> result) {
  {
    const std::lock_guard lock(mutex_);
    results_[value] = std::move(result);
  }
  completed_.notify_all();
}

Result<FenceResult> Timeline::wait(std::uint64_t value, Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto at = results_.find(value);
    if (at == results_.end()) {
      return not_found("submission " + std::to_string(value) + ": " +
                       (value == 0 || value > last_ ? "never made; the last is " + std::to_string(last_)
                                                    : std::string("its result was taken already")));
    }
    if (at->second) {
      Result<FenceResult> result = *std::move(at->second);
      results_.erase(at);
      return result;
    }
    if (deadline.passed()) {
      return timed_out("submission " + std::to_string(value) +
                       ": not finished by its deadline; it may still be running");
    }
    // An endless deadline is not handed to wait_until: its conversion to the condition's clock could overflow.
    if (deadline.at == Clock::time_point::max()) {
      completed_.wait(lock);
    } else {
      completed_.wait_until(lock, deadline.at);
    }
  }
}

}  // namespace kiln::opengl
