// DepthController: how many slots keep the slowest stage busy, by the measured times of recent jobs' stages.
//
// A ring of N slots finishes a job every max(slowest stage, sum of stages ÷ N), so N = sum ÷ slowest suffices where
// times are steady. Where they vary, a slot that waits behind a long job has to be covered by others: the margin grows
// with the variation of the whole. Thread-safety: none. Ownership: a value.
#pragma once

#include <array>
#include <cstdint>

namespace kiln::executor {

class DepthController {
 public:
  explicit DepthController(std::uint32_t most) noexcept : most_(most) {}

  // What one job's upload, device and readback took. Answers the depth to use from now on.
  std::uint32_t add(const std::array<double, 3>& stages_ns) noexcept;
  std::uint32_t depth() const noexcept { return depth_; }

 private:
  const std::uint32_t most_;
  std::uint32_t depth_ = 3;
  std::uint32_t jobs_ = 0;
  std::array<double, 3> mean_{};
  std::array<double, 3> variance_{};
};

}  // namespace kiln::executor
