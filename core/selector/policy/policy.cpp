#include "selector/policy/policy.hpp"

#include <cmath>
#include <string>

namespace kiln::selector {

Policy::~Policy() = default;

double Option::expected_ns() const noexcept { return fixed_ns + std::exp(log_ns); }

std::size_t cheapest(std::span<const Option> options) noexcept {
  std::size_t best = 0;
  for (std::size_t i = 1; i < options.size(); ++i) {
    if (options[i].expected_ns() < options[best].expected_ns()) best = i;
  }
  return best;
}

Result<std::unique_ptr<Policy>> make_policy(const SelectorConfig& config) {
  if (config.policy == "ema") return make_ema();
  if (config.policy == "epsilon") return make_epsilon(config.exploration);
  if (config.policy == "ucb") return make_ucb();
  if (config.policy == "thompson") return make_thompson();
  return invalid_argument("[selector] policy = \"" + config.policy + "\": expected ema, epsilon, ucb or thompson");
}

}  // namespace kiln::selector
