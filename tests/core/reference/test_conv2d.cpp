#include "reference/layers.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/reference/naive.hpp"
#include "support/conv_cases.hpp"

using namespace kiln;
using namespace kiln::test;

namespace {

std::span<const float> floats_of(const std::shared_ptr<HostTensor>& tensor) {
  if (tensor == nullptr) return {};
  return std::as_const(*tensor).as<float>();
}

reference::Reference reference_of(const Conv2dSpec& spec, const ConvTensors& tensors, unsigned threads = 0) {
  return reference::conv2d(spec, floats_of(tensors.input), floats_of(tensors.weights), floats_of(tensors.bias),
                           threads);
}

}  // namespace

TEST_CASE("reference conv2d: equal to the seven loops to the bit, on 400 random shapes", "[reference]") {
  std::uint64_t seed = 0;
  for (const Conv2dSpec& spec : support::random_cases(400, 11, 60000)) {
    INFO(canonical_text(spec));
    const ConvTensors tensors = tensors_for(spec, ++seed, Values::uniform);
    const auto got = reference_of(spec, tensors);
    const Naive expected = naive_conv2d(spec, *tensors.input, *tensors.weights, tensors.bias.get(), Order::by_row);
    REQUIRE(got.value == expected.value);
    REQUIRE(got.magnitude == expected.magnitude);
  }
}

TEST_CASE("reference conv2d: the order of summation does not matter beyond double rounding", "[reference]") {
  for (const Conv2dSpec& spec : support::random_cases(60, 12, 60000)) {
    INFO(canonical_text(spec));
    const ConvTensors tensors = tensors_for(spec, 5, Values::uniform);
    const auto got = reference_of(spec, tensors);
    const Naive other = naive_conv2d(spec, *tensors.input, *tensors.weights, tensors.bias.get(), Order::by_channel);
    REQUIRE(got.value.size() == other.value.size());
    double worst = 0;
    for (std::size_t i = 0; i < got.value.size(); ++i) {
      if (got.magnitude[i] > 0) worst = std::max(worst, std::abs(got.value[i] - other.value[i]) / got.magnitude[i]);
    }
    CHECK(worst <= 1e-12);
  }
}

TEST_CASE("reference conv2d: integers are exact, in any order and in fp32 too", "[reference]") {
  for (const Conv2dSpec& spec : support::random_cases(60, 13, 60000)) {
    INFO(canonical_text(spec));
    const ConvTensors tensors = tensors_for(spec, 6, Values::integers);
    const auto got = reference_of(spec, tensors);
    const Naive other = naive_conv2d(spec, *tensors.input, *tensors.weights, tensors.bias.get(), Order::by_channel);
    const auto single =
        naive_sums<float>(spec, *tensors.input, *tensors.weights, tensors.bias.get(), Order::by_channel, false);
    REQUIRE(got.value == other.value);
    REQUIRE(got.value == std::vector<double>(single.begin(), single.end()));
  }
}

TEST_CASE("reference conv2d: the result does not depend on the number of threads", "[reference]") {
  Conv2dSpec spec;
  spec.n = 2, spec.c = 12, spec.h = 33, spec.w = 31, spec.k = 26, spec.r = 3, spec.s = 5;
  spec.pad_y = 1, spec.pad_x = 2, spec.groups = 2;
  REQUIRE(flops(spec) / 2 / 2 > 1e6);  // large enough to be shared out
  const ConvTensors tensors = tensors_for(spec, 1, Values::uniform);
  const auto one = reference_of(spec, tensors, 1);
  for (const unsigned threads : {2u, 3u, 16u}) {
    const auto several = reference_of(spec, tensors, threads);
    CHECK(several.value == one.value);
    CHECK(several.magnitude == one.magnitude);
  }
  CHECK(one.value == naive_conv2d(spec, *tensors.input, *tensors.weights, nullptr, Order::by_row).value);
}

TEST_CASE("reference conv2d: ones over ones count the taps inside the input", "[reference]") {
  Conv2dSpec spec;
  spec.c = 2, spec.h = 3, spec.w = 4, spec.k = 1, spec.r = 3, spec.s = 3, spec.pad_y = 1, spec.pad_x = 1;
  const std::vector<float> input(24, 1.0f), weights(18, 1.0f);
  const auto got = reference::conv2d(spec, input, weights, {});
  CHECK(got.value == std::vector<double>{8, 12, 12, 8, 12, 18, 18, 12, 8, 12, 12, 8});
  CHECK(got.magnitude == got.value);
}

TEST_CASE("reference conv2d: a wide stride reads no element that it does not need", "[reference]") {
  Conv2dSpec spec;
  spec.c = 1, spec.h = 2, spec.w = 100000, spec.k = 1, spec.r = 1, spec.s = 2, spec.stride_x = 99998, spec.stride_y = 2;
  std::vector<float> input(200000);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i);
  const auto got = reference::conv2d(spec, input, std::vector<float>{1, 100}, {});
  CHECK(got.value == std::vector<double>{100, 99998 + 100 * 99999.0});
}
