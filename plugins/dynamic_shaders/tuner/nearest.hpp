// How alike two convolutions or two products are, for a shape of which nothing was measured: the winner of a shape near
// it may serve.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <optional>
#include <string_view>

namespace kiln::dynamic_shaders {

// The convolution whose canonical_text this is; absent: it is none.
std::optional<Conv2dSpec> conv_of(std::string_view canonical_text);

// Likewise the product of matrices.
std::optional<GemmSpec> gemm_of(std::string_view canonical_text);

// Sum of the doublings between their channels and filters of a group, groups, output rows and columns, and batch;
// absent: kernel, stride, dilation, grouping or accuracy differ, so that nothing follows from one for the other.
std::optional<double> distance(const Conv2dSpec& a, const Conv2dSpec& b);

// Likewise of two products of matrices: the doublings between their three extents.
std::optional<double> distance(const GemmSpec& a, const GemmSpec& b);

}  // namespace kiln::dynamic_shaders
