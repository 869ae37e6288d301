// What the outputs of a spec must be, and how far off each may be: core's double-precision reference and its derived
// bound, the wider of the direct sum's and, where the spec allows them and they exist for it, of Winograd's algorithms.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <span>
#include <string>
#include <vector>

namespace kiln::conformance {

struct Expected {
  std::vector<double> values;
  std::vector<double> bounds;  // the largest difference allowed, per element
};

// From the tensors of a layer, in their order; the last is the output and is not read.
Expected expected_of(const KernelSpec& spec, const std::vector<std::vector<float>>& tensors);

// The same with bounds of nothing: for values whose sums are exact in fp32.
Expected exactly(Expected expected);

// Whether small integers must come out exact: not where the spec allows Winograd's fractions, divides or exponentiates.
bool exact_in_integers(const KernelSpec& spec) noexcept;

// The first element outside its bound (NaN always is), in words; empty: none.
std::string first_difference(const Expected& expected, std::span<const float> actual);

}  // namespace kiln::conformance
