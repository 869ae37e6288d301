// References of pool2d, add, softmax and activation, in double precision.
//
// Thread-safety: pure functions. Ownership: inputs are borrowed for the call; the result is the caller's.
// Reference::magnitude is what the error of an output is relative to: pool2d: the maximum's or average's Σ |x| / n; add:
// |a| + |b|; activation: |x|; softmax: see softmax_bound().
#pragma once

#include "reference/conv2d.hpp"

#include <cstdint>
#include <span>

namespace kiln::reference {

// REQUIRES of each: validate(spec) is ok; the spans have the spec's sizes. Throws std::bad_alloc. threads 0: one a core.
Reference pool2d(const Pool2dSpec& spec, std::span<const double> input, unsigned threads = 0);
Reference add(const AddSpec& spec, std::span<const double> a, std::span<const double> b);
Reference softmax(const SoftmaxSpec& spec, std::span<const double> input);
Reference activation(const ActivationSpec& spec, std::span<const double> input);

// Bounds of an fp32 result, relative to the magnitude (rounding.hpp). A maximum and an activation are exact.
double pool2d_bound(const Pool2dSpec& spec) noexcept;
double add_bound() noexcept;
// With d = max x - x of an element, y its result and n the elements of a row: an exponential of -d may be off by
// (3 + 2 d) units in the last place, which is what SPIR-V allows it, and by the rounding of d; the sum by the errors of
// its terms and by gamma_n. Together that is at most the bound times y ((1 + d) + Σ y (1 + d) + 1), the magnitude.
double softmax_bound(std::int64_t elements_of_row) noexcept;

}  // namespace kiln::reference
