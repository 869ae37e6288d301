#include "conv/judge.hpp"

#include "reference/rounding.hpp"
#include "reference/winograd_allowance.hpp"

#include <cmath>

namespace kiln::bench {

Judge::Judge(const Problem& problem)
    : problem_(problem),
      spec_(std::get<Conv2dSpec>(problem.spec)),
      reference_(reference::conv2d(spec_, problem.input.values, problem.weights.values, {})) {}

bool Judge::is_right(std::span<const float> output) {
  if (output.size() != reference_.value.size()) return false;
  if (within(output, {})) return true;
  Conv2dSpec allowing = spec_;
  allowing.accuracy = Accuracy::winograd;
  if (!reference::winograd_applies(allowing)) return false;
  if (winograd_.empty()) {
    winograd_ = reference::winograd_allowance(allowing, problem_.input.values, problem_.weights.values, {});
  }
  return within(output, winograd_);
}

bool Judge::within(std::span<const float> output, const std::vector<double>& allowance) const {
  const std::int64_t products = spec_.c / spec_.groups * spec_.r * spec_.s;
  const double bound = reference::direct_bound(products, false), underflow = reference::underflow_allowance(products);
  for (std::size_t i = 0; i < output.size(); ++i) {
    double allowed = bound * reference_.magnitude[i] + underflow;
    if (!allowance.empty()) allowed = std::max(allowed, allowance[i]);
    // NaN compares false.
    if (!(std::abs(static_cast<double>(output[i]) - reference_.value[i]) <= allowed)) return false;
  }
  return true;
}

}  // namespace kiln::bench
