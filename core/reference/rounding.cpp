#include "reference/rounding.hpp"

#include <limits>

namespace kiln::reference {

double gamma(double n, double unit) noexcept {
  if (n * unit >= 1) return std::numeric_limits<double>::infinity();
  return n * unit / (1 - n * unit);
}

double roundings_of_sum(std::int64_t products, bool has_bias) noexcept {
  return static_cast<double>(products) + (has_bias ? 1 : 0) + 1;
}

double direct_bound(std::int64_t products, bool has_bias) noexcept {
  const double n = roundings_of_sum(products, has_bias);
  return gamma(n, unit_f32) + gamma(n, unit_f64);
}

double underflow_allowance(std::int64_t products) noexcept {
  return 2 * static_cast<double>(products) * least_normal_f32;
}

}  // namespace kiln::reference
