#include "amdgpu_pm4/device/queue/results.hpp"

#include <string>

namespace kiln::amdgpu_pm4 {

std::optional<Result<FenceResult>> Results::take(std::uint64_t value, std::uint64_t first_pending) {
  if (const auto at = finished_.find(value); at != finished_.end()) {
    std::optional<Result<FenceResult>> result(std::move(at->second));
    finished_.erase(at);
    return result;
  }
  if (value >= first_pending && value <= last_) return std::nullopt;
  return Result<FenceResult>(not_found("submission " + std::to_string(value) + ": " +
                                       (value == 0 || value > last_ ? "never made; the last is " + std::to_string(last_)
                                                                    : std::string("its result was taken already"))));
}

}  // namespace kiln::amdgpu_pm4
