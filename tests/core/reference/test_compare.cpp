#include "reference/compare.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/reference/conv_verdict.hpp"
#include "core/reference/naive.hpp"
#include "reference/error_bounds.hpp"
#include "reference/layers.hpp"
#include "support/conv_cases.hpp"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

Conv2dSpec layer() {
  Conv2dSpec spec;
  spec.c = 8, spec.h = 9, spec.w = 11, spec.k = 6, spec.r = 3, spec.s = 3, spec.pad_y = 1, spec.pad_x = 1;
  return spec;
}

std::vector<float> single_of(const Conv2dSpec& spec, const ConvTensors& tensors) {
  return naive_sums<float>(spec, *tensors.input, *tensors.weights, tensors.bias.get(), Order::by_channel, false);
}

}  // namespace

TEST_CASE("rounding: gamma as Higham defines it", "[reference]") {
  CHECK(reference::gamma(1, 0x1p-24) == Approx(5.9604648e-8).epsilon(1e-6));
  CHECK(reference::gamma(1000, 0x1p-24) == Approx(1000.0 / ((1 << 24) - 1000)).epsilon(1e-12));
  CHECK(std::isinf(reference::gamma(1 << 24, 0x1p-24)));
  CHECK(reference::roundings_of_sum(9, false) == 10);
  CHECK(reference::roundings_of_sum(9, true) == 11);
}

// Computed with rational numbers from the definitions in the header, then rounded once.
TEST_CASE("rounding: the bounds have these values", "[reference]") {
  constexpr double exact = 1e-14;
  CHECK(reference::gamma(1, 0x1p-24) == Approx(5.9604648328104516e-08).epsilon(exact));
  CHECK(reference::gamma(73, 0x1p-24) == Approx(4.3511580010970881e-06).epsilon(exact));
  CHECK(reference::gamma(1000, 0x1p-24) == Approx(5.9608197700840286e-05).epsilon(exact));
  CHECK(reference::gamma(8388608, 0x1p-24) == Approx(1).epsilon(exact));
  CHECK(reference::gamma(16777215, 0x1p-24) == Approx(16777215).epsilon(exact));
  CHECK(reference::direct_bound(1, false) == Approx(1.1920930398368226e-07).epsilon(exact));
  CHECK(reference::direct_bound(1, true) == Approx(1.7881396663366761e-07).epsilon(exact));
  CHECK(reference::direct_bound(9, false) == Approx(5.9604680413570891e-07).epsilon(exact));
  CHECK(reference::direct_bound(72, false) == Approx(4.3511580092017162e-06).epsilon(exact));
  CHECK(reference::direct_bound(72, true) == Approx(4.4107631763404713e-06).epsilon(exact));
  CHECK(reference::direct_bound(4608, true) == Approx(0.00027485293630485533).epsilon(exact));
  CHECK(reference::direct_bound(25088, false) == Approx(0.0014976605685153904).epsilon(exact));
  CHECK(reference::underflow_allowance(1) == 2.350988701644575e-38);
  CHECK(reference::underflow_allowance(9) == 2.1158898314801175e-37);
  CHECK(reference::underflow_allowance(72) == 1.692711865184094e-36);
  CHECK(reference::default_tolerance(DType::f32).relative == Approx(0.00012207776353537203).epsilon(exact));
  CHECK(reference::default_tolerance(DType::f32).absolute == 1.17549435082228751e-38);
  CHECK(reference::default_tolerance(DType::f64).relative == Approx(2.2737367544325791e-13).epsilon(exact));
  CHECK(reference::default_tolerance(DType::f64).absolute == 2.2250738585072014e-308);
  CHECK(reference::default_tolerance(DType::f16).relative == Approx(0.0039138943248532287).epsilon(exact));
  CHECK(reference::default_tolerance(DType::f16).absolute == 6.103515625e-05);
  CHECK(reference::default_tolerance(DType::i32).relative == 0);
  CHECK(reference::default_tolerance(DType::i32).absolute == 0);
}

// One product of 1 and 1, so that the error relative to the sum of products is the output's distance from 1.
TEST_CASE("compare: 0.9 times the bound is within it, 1.5 times is not", "[reference]") {
  constexpr double bound_of_one = 1.1920930398368226e-07;   // 1 product
  constexpr double bound_of_bias = 1.7881396663366761e-07;  // and a bias
  constexpr double bound_of_72 = 4.3511580092017162e-06;    // 72 products
  const auto conv = [](std::int64_t channels, std::int64_t side, Bias bias) {
    Conv2dSpec spec;
    spec.c = channels, spec.h = side, spec.w = side, spec.k = 1, spec.r = side, spec.s = side, spec.bias = bias;
    return spec;
  };
  const auto ones = [](const Shape& shape) {
    auto made = HostTensor::create(DType::f32, shape).value();
    for (float& value : made->as<float>()) value = 1;
    return made;
  };
  const auto is_within = [&](const Conv2dSpec& spec, double expected, double error) {
    const auto input = ones({1, spec.c, spec.h, spec.w});
    const auto weights = ones({1, spec.c, spec.r, spec.s});
    const auto bias = spec.bias == Bias::none ? nullptr : ones({1});
    const std::vector<float> output{static_cast<float>(expected + error)};
    const auto verdict = reference::compare_conv2d(spec, *input, *weights, bias.get(), output);
    REQUIRE(verdict);
    const double found = std::abs(static_cast<double>(output[0]) - expected) / expected;
    CHECK(verdict->max_rel_error == Approx(found).epsilon(1e-9));
    return verdict->within;
  };
  for (const double sign : {1.0, -1.0}) {
    // What an fp32 number next to 1 can be off by: multiples of 2^-23 above, of 2^-24 below.
    CHECK(is_within(conv(1, 1, Bias::none), 1, sign * 0x1p-24));
    CHECK_FALSE(is_within(conv(1, 1, Bias::none), 1, sign * 1.5 * bound_of_one));
    CHECK(is_within(conv(1, 1, Bias::per_channel), 2, sign * 0.9 * 2 * bound_of_bias));
    CHECK_FALSE(is_within(conv(1, 1, Bias::per_channel), 2, sign * 1.5 * 2 * bound_of_bias));
    CHECK(is_within(conv(8, 3, Bias::none), 72, sign * 0.9 * 72 * bound_of_72));
    CHECK_FALSE(is_within(conv(8, 3, Bias::none), 72, sign * 1.5 * 72 * bound_of_72));
  }
  GemmSpec gemm;
  gemm.m = 1, gemm.n = 1, gemm.k = 72;
  for (const double share : {0.9, 1.5, -0.9, -1.5}) {
    CAPTURE(share);
    const std::vector<float> output{static_cast<float>(72 + share * 72 * bound_of_72)};
    const auto verdict = reference::compare_gemm(gemm, *ones({1, 72}), *ones({72, 1}), nullptr, output);
    REQUIRE(verdict);
    CHECK(verdict->within == (std::abs(share) < 1));
  }
}

TEST_CASE("compare: underflow allows two smallest normal numbers a product and no more", "[reference]") {
  Conv2dSpec spec;
  spec.c = 1, spec.h = 1, spec.w = 1, spec.k = 1, spec.r = 1, spec.s = 1;
  ConvTensors tensors = tensors_for(spec, 1, Values::uniform);
  tensors.input->as<float>()[0] = 1e-25f;
  tensors.weights->as<float>()[0] = 1e-25f;
  CHECK(verdict_of(spec, tensors, {2.3e-38f}).within);
  CHECK(verdict_of(spec, tensors, {-2.3e-38f}).within);
  CHECK_FALSE(verdict_of(spec, tensors, {3.5e-38f}).within);
  CHECK_FALSE(verdict_of(spec, tensors, {-3.5e-38f}).within);
  CHECK_FALSE(verdict_of(spec, tensors, {2.4e-35f}).within);
}

TEST_CASE("compare conv2d: plain fp32 sums are within the bound, and near to it by less than the bound",
          "[reference]") {
  std::uint64_t seed = 100;
  for (const Conv2dSpec& spec : support::random_cases(150, 21, 40000)) {
    INFO(canonical_text(spec));
    const ConvTensors tensors = tensors_for(spec, ++seed, Values::uniform);
    const auto verdict = verdict_of(spec, tensors, single_of(spec, tensors));
    CHECK(verdict.within);
    CHECK(verdict.max_rel_error <= verdict.error_bound);
    CHECK(verdict.not_finite == 0);
  }
}

TEST_CASE("compare conv2d: the reported error is max |out - ref| over the sum of |w*x|", "[reference]") {
  const Conv2dSpec spec = layer();
  const ConvTensors tensors = tensors_for(spec, 1, Values::integers);
  const Naive exact = naive_conv2d(spec, *tensors.input, *tensors.weights, nullptr, Order::by_row);
  std::vector<float> output(exact.value.begin(), exact.value.end());
  CHECK(verdict_of(spec, tensors, output).max_rel_error == 0);
  output[123] += 2;
  output[45] -= 1;
  const auto verdict = verdict_of(spec, tensors, output);
  CHECK_FALSE(verdict.within);
  CHECK(verdict.max_rel_error == Approx(std::max(2 / exact.magnitude[123], 1 / exact.magnitude[45])).epsilon(1e-12));
  CHECK(verdict.worst_index == (2 / exact.magnitude[123] > 1 / exact.magnitude[45] ? 123 : 45));
  CHECK(verdict.error_bound == Approx(4.3511580092017162e-06).epsilon(1e-12));  // of 72 products
}

TEST_CASE("compare conv2d: what is expected can be kept, and judges as if it were computed anew", "[reference]") {
  Conv2dSpec spec = layer();
  spec.accuracy = GENERATE(Accuracy::direct, Accuracy::winograd);
  const ConvTensors tensors = tensors_for(spec, 3, Values::uniform);
  const auto expected = reference::expect_conv2d(spec, *tensors.input, *tensors.weights, tensors.bias.get());
  REQUIRE(expected.has_value());
  std::vector<float> output = single_of(spec, tensors);
  for (const bool wrong : {false, true}) {
    if (wrong) output[45] += 1;
    const auto anew = verdict_of(spec, tensors, output);
    const auto kept = reference::compare_expected(*expected, output);
    REQUIRE(kept.has_value());
    CHECK(kept->within != wrong);
    CHECK(kept->within == anew.within);
    CHECK(kept->max_rel_error == anew.max_rel_error);
    CHECK(kept->error_bound == anew.error_bound);
    CHECK(kept->worst_index == anew.worst_index);
  }
  output.pop_back();
  const auto short_of_one = reference::compare_expected(*expected, output);
  REQUIRE_FALSE(short_of_one.has_value());
  CHECK_THAT(short_of_one.error().message, Catch::Contains("output: 593 elements, expected 594"));
}

TEST_CASE("compare conv2d: common faults are not within", "[reference]") {
  Conv2dSpec spec = layer();
  spec.bias = Bias::per_channel;
  spec.activation = Activation::relu;
  const ConvTensors tensors = tensors_for(spec, 2, Values::uniform);
  const std::vector<float> good = single_of(spec, tensors);
  REQUIRE(verdict_of(spec, tensors, good).within);

  SECTION("nothing was computed") {
    CHECK_FALSE(verdict_of(spec, tensors, std::vector<float>(good.size(), 0.0f)).within);
  }
  SECTION("the bias is missing") {
    Conv2dSpec other = spec;
    other.bias = Bias::none;
    CHECK_FALSE(verdict_of(spec, tensors,
                           naive_sums<float>(other, *tensors.input, *tensors.weights, nullptr, Order::by_row, false))
                    .within);
  }
  SECTION("the activation is missing") {
    Conv2dSpec other = spec;
    other.activation = Activation::none;
    CHECK_FALSE(verdict_of(spec, tensors, single_of(other, tensors)).within);
  }
  SECTION("one tap of one output is missing") {
    auto fewer = tensor_of({spec.k, spec.c, 3, 3}, 7, Values::uniform);  // seed of the weights above
    REQUIRE(fewer->as<float>()[40] == tensors.weights->as<float>()[40]);
    fewer->as<float>()[40] = 0;
    auto damaged = good;
    const auto without = naive_sums<float>(spec, *tensors.input, *fewer, tensors.bias.get(), Order::by_channel, false);
    std::size_t at = 0;
    while (good[at] == 0 || without[at] == good[at]) ++at;
    damaged[at] = without[at];
    const auto verdict = verdict_of(spec, tensors, damaged);
    CHECK_FALSE(verdict.within);
    CHECK(verdict.worst_index == static_cast<std::int64_t>(at));
  }
  SECTION("two rows are exchanged") {
    auto damaged = good;
    std::swap_ranges(damaged.begin(), damaged.begin() + 11, damaged.begin() + 11);
    CHECK_FALSE(verdict_of(spec, tensors, damaged).within);
  }
  SECTION("outputs that were never written keep their poison") {
    auto damaged = good;
    damaged[200] = not_a_number;
    damaged[300] = std::numeric_limits<float>::infinity();
    const auto verdict = verdict_of(spec, tensors, damaged);
    CHECK_FALSE(verdict.within);
    CHECK(verdict.not_finite == 2);
    CHECK(verdict.worst_index == 200);
    CHECK(std::isinf(verdict.max_rel_error));
  }
}

TEST_CASE("compare conv2d: zero over zero is no error, anything over zero is infinite", "[reference]") {
  Conv2dSpec spec;
  spec.c = 1, spec.h = 1, spec.w = 4, spec.k = 1, spec.r = 1, spec.s = 1;
  ConvTensors tensors = tensors_for(spec, 1, Values::integers);
  for (float& value : tensors.weights->as<float>()) value = 0;
  CHECK(verdict_of(spec, tensors, {0, -0.0f, 0, 0}).within);
  const auto verdict = verdict_of(spec, tensors, {0, 0, 1e-30f, 0});
  CHECK_FALSE(verdict.within);
  CHECK(std::isinf(verdict.max_rel_error));
  CHECK(verdict.worst_index == 2);
}

TEST_CASE("compare conv2d: products that underflow may be flushed to zero", "[reference]") {
  Conv2dSpec spec;
  spec.c = 1, spec.h = 1, spec.w = 1, spec.k = 1, spec.r = 1, spec.s = 1;
  ConvTensors tensors = tensors_for(spec, 1, Values::uniform);
  tensors.input->as<float>()[0] = 1e-20f;
  tensors.weights->as<float>()[0] = 1e-20f;
  CHECK(verdict_of(spec, tensors, {0}).within);
  CHECK_FALSE(verdict_of(spec, tensors, {1e-30f}).within);
}

TEST_CASE("compare conv2d: a reference that is not finite vouches for nothing", "[reference]") {
  Conv2dSpec spec;
  spec.c = 1, spec.h = 1, spec.w = 2, spec.k = 1, spec.r = 1, spec.s = 1;
  ConvTensors tensors = tensors_for(spec, 1, Values::uniform);
  for (const float value : {not_a_number, std::numeric_limits<float>::infinity()}) {
    tensors.input->as<float>()[1] = value;
    const auto verdict =
        verdict_of(spec, tensors, {tensors.input->as<float>()[0] * tensors.weights->as<float>()[0], 1});
    CHECK_FALSE(verdict.within);
    CHECK(verdict.worst_index == 1);
    CHECK(std::isinf(verdict.max_rel_error));
  }
}

TEST_CASE("compare conv2d: sizes that are not the spec's are errors that name both", "[reference]") {
  Conv2dSpec spec = layer();
  const ConvTensors tensors = tensors_for(spec, 1, Values::uniform);
  const std::vector<float> output(static_cast<std::size_t>(spec.k * 99));
  const auto message = [&](const auto& verdict) {
    REQUIRE_FALSE(verdict);
    CHECK(verdict.error().code == StatusCode::invalid_argument);
    return verdict.error().message;
  };
  CHECK_THAT(message(reference::compare_conv2d(spec, *tensors.weights, *tensors.weights, nullptr, output)),
             Catch::Contains("input: 432 elements, expected 792"));
  CHECK_THAT(message(reference::compare_conv2d(spec, *tensors.input, *tensors.input, nullptr, output)),
             Catch::Contains("weights: 792 elements, expected 432"));
  CHECK_THAT(
      message(reference::compare_conv2d(spec, *tensors.input, *tensors.weights, nullptr, std::span(output).first(3))),
      Catch::Contains("output: 3 elements, expected 594"));
  CHECK_THAT(message(reference::compare_conv2d(spec, *tensors.input, *tensors.weights, tensors.weights.get(), output)),
             Catch::Contains("3 inputs and constants, expected 2"));
  spec.stride_x = 0;
  CHECK_THAT(message(reference::compare_conv2d(spec, *tensors.input, *tensors.weights, nullptr, output)),
             Catch::Contains("stride"));
}

TEST_CASE("compare conv2d: no verdict where no bound exists", "[reference]") {
  Conv2dSpec spec;
  spec.c = 1, spec.h = 4096, spec.w = 4096, spec.k = 1, spec.r = 4096, spec.s = 4096;
  const ConvTensors tensors = tensors_for(spec, 1, Values::uniform);
  const float output[] = {0};
  const auto verdict = reference::compare_conv2d(spec, *tensors.input, *tensors.weights, nullptr, output);
  REQUIRE_FALSE(verdict);
  CHECK(verdict.error().code == StatusCode::unsupported);
  CHECK_THAT(verdict.error().message, Catch::Contains("16777216"));
}
