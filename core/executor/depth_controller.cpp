#include "executor/depth_controller.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::executor {
namespace {

constexpr double alpha = 0.1;
constexpr std::uint32_t settled = 4;  // jobs before the first decision

// Additional slots per unit of relative deviation of the job time; determined on the simulated device.
constexpr double margin = 14.0;

}  // namespace

std::uint32_t DepthController::add(const std::array<double, 3>& stages_ns) noexcept {
  ++jobs_;
  const double weight = std::max(alpha, 1.0 / jobs_);
  for (std::size_t i = 0; i < stages_ns.size(); ++i) {
    const double apart = stages_ns[i] - mean_[i];
    mean_[i] += weight * apart;
    variance_[i] = (1 - weight) * (variance_[i] + weight * apart * apart);
  }
  if (jobs_ < settled) return depth_ = std::min(depth_, most_);
  const double sum = mean_[0] + mean_[1] + mean_[2];
  const double slowest = *std::max_element(mean_.begin(), mean_.end());
  if (slowest <= 0) return depth_;
  const double deviation = std::sqrt(variance_[0] + variance_[1] + variance_[2]);
  const double wanted = std::ceil(sum / slowest - 0.02) + std::ceil(margin * deviation / slowest - 0.1);
  depth_ = std::clamp(static_cast<std::uint32_t>(std::clamp(wanted, 1.0, 64.0)), 1u, most_);
  return depth_;
}

}  // namespace kiln::executor
