// Rounding-error bounds, derived before anything is run; none is fitted to a measurement.
//
// Thread-safety: pure functions. Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition,
// SIAM 2002, chapter 3: where every operation is rounded with fl(x op y) = (x op y)(1 + d), |d| <= u, a sum of products
// in any order, fused or not, is off by at most gamma_n * Σ |products|, gamma_n = n u / (1 - n u), n being the most
// roundings that any one product goes through.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <kiln/kernel.hpp>

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

// How far an fp32 Winograd convolution may be off, output by output, before anything is run.
//
// Thread-safety: a pure function. Ownership: the tensors are borrowed; the result is the caller's.
// F(m, 3) computes Y = A^T [Σ_c (G w G^T) ⊙ (B^T x B)] A on tiles of m x m outputs. Writing every matrix and tensor
// with absolute values gives, for each output, M = Σ |terms| of that evaluation; each term is rounded at most
//   N = 2 (3 + 1) + 2 (t + 1) + C + 2 (t + 1) + 2,   t = m + 2
// times (weights in: coefficient, product, additions, in both directions; input in: likewise; products and the sum over
// C channels; output: likewise; bias and store), so that |error| <= gamma_N (M + |bias|) (the
// same theory as for the direct sum, and as sharp). The analysis is that of B. Barabasz, A. Anderson, K. M. Soodhalter,
// D. Gregg, Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks, ACM TOMS 46(4),
// 2020, kept element by element instead of in norms, which would be some hundred times wider. M is invariant to
// scalings between A, G and B. Which algorithm ran is not known: the allowance is the largest over F(2, 3) with points
// 0, ±1 and F(4, 3) with points 0, ±1, ±2, with 0, ±1, ±1/2 and with 0, ±5/8, ±3/2, tiles counted from output (0, 0),
// and infinity besides.

// Whether Winograd's algorithm is allowed by the spec and exists for it: accuracy winograd, 3x3, stride 1, dilation 1.
bool winograd_applies(const Conv2dSpec& spec) noexcept;

// Absolute, one an output. REQUIRES: validate(spec) is ok, winograd_applies(spec); sizes as the spec's, bias empty
// where it has none. Throws std::bad_alloc.
std::vector<double> winograd_allowance(const Conv2dSpec& spec, std::span<const float> input,
                                       std::span<const float> weights, std::span<const float> bias,
                                       unsigned threads = 0);

}  // namespace kiln::reference
