// The oracle of the oracle: convolution and matrix product by the formula, one loop an index, nothing else.
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <memory>
#include <vector>

namespace kiln::test {

struct Naive {
  std::vector<double> value, magnitude;
};

// Which loops stand outermost. by_row is the order that reference/layers.hpp documents.
enum class Order { by_row, by_channel };

// T is the type of the sum: double for the oracle, float for a plain fp32 implementation to be judged.
template <class T>
std::vector<T> naive_sums(const Conv2dSpec& spec, const HostTensor& input, const HostTensor& weights,
                          const HostTensor* bias, Order order, bool absolute);

Naive naive_conv2d(const Conv2dSpec& spec, const HostTensor& input, const HostTensor& weights, const HostTensor* bias,
                   Order order);

// Tensors for a spec: input and weights uniform in [-1, 1), or small integers in fp32, whose sums are exact.
enum class Values { uniform, integers };

struct ConvTensors {
  std::shared_ptr<HostTensor> input, weights, bias;  // bias is null where the spec has none
};

ConvTensors tensors_for(const Conv2dSpec& spec, std::uint64_t seed, Values values);
std::shared_ptr<HostTensor> tensor_of(Shape shape, std::uint64_t seed, Values values);

}  // namespace kiln::test
