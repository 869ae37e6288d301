// naive_difference: what is wrong with an output, by the plainest double-precision loops.
#pragma once

#include <kiln/kernel.hpp>

#include <span>
#include <string>
#include <vector>

namespace kiln::cpu_test {

// inputs: the tensors of the spec but its output, in order. Empty: every element is within its bound.
std::string naive_difference(const KernelSpec& spec, const std::vector<std::span<const float>>& inputs,
                             std::span<const float> output);

}  // namespace kiln::cpu_test
