// Timeline: the values of one device's queue and their results.
//
// Thread-safety: every method from any thread. Ownership: holds results by value until they are taken, once each; one
// that nobody takes stays until the timeline goes.
#pragma once

#include <kiln/device.hpp>

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

namespace kiln::opengl {

class Timeline {
 public:
  // The next value, from 1; its result is pending.
  std::uint64_t begin();
  void complete(std::uint64_t value, Result<FenceResult> result);
  // timeout: not complete by the deadline. not_found: never begun, or taken already.
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline);

 private:
  std::mutex mutex_;
  std::condition_variable completed_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::optional<Result<FenceResult>>> results_;  // nullopt: pending
};

}  // namespace kiln::opengl
