// Rounding-error bounds, derived before anything is run; none is fitted to a measurement.
//
// Thread-safety: pure functions. Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition,
// SIAM 2002, chapter 3: where every operation is rounded with fl(x op y) = (x op y)(1 + d), |d| <= u, a sum of products
// in any order, fused or not, is off by at most gamma_n * Σ |products|, gamma_n = n u / (1 - n u), n being the most
// roundings that any one product goes through.
#pragma once

#include <cstdint>

namespace kiln::reference {

inline constexpr double unit_f32 = 0x1p-24;  // u for fp32, rounding to nearest
inline constexpr double unit_f64 = 0x1p-53;
inline constexpr double least_normal_f32 = 0x1p-126;

// gamma_n; infinity where n u >= 1, where the theory bounds nothing.
double gamma(double n, double unit) noexcept;

// Most roundings that one product of a sum of `products` goes through: its own, every addition but one, the bias's
// addition, and the store.
double roundings_of_sum(std::int64_t products, bool has_bias) noexcept;

// What a direct sum in fp32 may be off by relative to Σ |products| (+ |bias|), the reference's own error in double
// included.
double direct_bound(std::int64_t products, bool has_bias) noexcept;

// What underflow may add to it, absolutely: each product and each addition may lose a subnormal number to zero.
double underflow_allowance(std::int64_t products) noexcept;

}  // namespace kiln::reference
