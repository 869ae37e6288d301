// A tensor of the elements that random:SEED stands for.
// Thread-safety: a pure function. Ownership: the answer is the caller's.
#pragma once

#include "data/tensor_source.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <utility>

namespace kiln::test {

inline std::shared_ptr<HostTensor> random_of(DType dtype, Shape shape, std::uint64_t seed) {
  auto tensor = HostTensor::create(dtype, std::move(shape));
  REQUIRE(tensor);
  data::fill_random(**tensor, seed);
  return *tensor;
}

}  // namespace kiln::test
