// The comparison of a convolution's output with the reference, which has to be possible.
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include "core/reference/naive.hpp"
#include "reference/compare.hpp"

#include <catch2/catch.hpp>

#include <vector>

namespace kiln::test {

inline reference::Comparison verdict_of(const Conv2dSpec& spec, const ConvTensors& tensors,
                                        const std::vector<float>& output) {
  const auto verdict = reference::compare_conv2d(spec, *tensors.input, *tensors.weights, tensors.bias.get(), output);
  if (!verdict) FAIL(verdict.error().text());
  return *verdict;
}

}  // namespace kiln::test
