// Results: what became of the values of a queue's timeline, until somebody takes it.
//
// Thread-safety: one thread at a time. Ownership: holds results by value; one that nobody takes stays until the queue
// goes.
#pragma once

#include <kiln/device.hpp>

#include <cstdint>
#include <map>
#include <optional>

namespace kiln::amdgpu_pm4 {

class Results {
 public:
  std::uint64_t next() const noexcept { return last_ + 1; }
  // next() was submitted.
  void begin() noexcept { ++last_; }
  void finish(std::uint64_t value, Result<FenceResult> result) { finished_.insert_or_assign(value, std::move(result)); }
  // The result, which is then gone; nullopt where the value is not finished. not_found: never submitted, or taken.
  // `first_pending`: the oldest value in flight, next() where there is none.
  std::optional<Result<FenceResult>> take(std::uint64_t value, std::uint64_t first_pending);

 private:
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Result<FenceResult>> finished_;
};

}  // namespace kiln::amdgpu_pm4
