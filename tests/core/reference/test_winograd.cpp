// The Winograd allowance against a plain fp32 Winograd F(4, 3) and F(2, 3) with the textbook matrices.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/reference/conv_verdict.hpp"
#include "core/reference/naive.hpp"
#include "reference/compare.hpp"
#include "reference/error_bounds.hpp"
#include "support/conv_cases.hpp"

using namespace kiln;
using namespace kiln::test;

namespace {

struct Algorithm {
  std::int64_t m;
  std::vector<std::vector<float>> a, g, b;  // A^T, G, B^T
};

const Algorithm& f4() {
  static const Algorithm algorithm{4,
                                   {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}},
                                   {{1 / 4.f, 0, 0},
                                    {-1 / 6.f, -1 / 6.f, -1 / 6.f},
                                    {-1 / 6.f, 1 / 6.f, -1 / 6.f},
                                    {1 / 24.f, 1 / 12.f, 1 / 6.f},
                                    {1 / 24.f, -1 / 12.f, 1 / 6.f},
                                    {0, 0, 1}},
                                   {{4, 0, -5, 0, 1, 0},
                                    {0, -4, -4, 1, 1, 0},
                                    {0, 4, -4, -1, 1, 0},
                                    {0, -2, -1, 2, 1, 0},
                                    {0, 2, -1, -2, 1, 0},
                                    {0, 4, 0, -5, 0, 1}}};
  return algorithm;
}

const Algorithm& f2() {
  static const Algorithm algorithm{2,
                                   {{1, 1, 1, 0}, {0, 1, -1, -1}},
                                   {{1, 0, 0}, {.5f, .5f, .5f}, {.5f, -.5f, .5f}, {0, 0, 1}},
                                   {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}};
  return algorithm;
}

using Matrix = std::vector<std::vector<float>>;

// left * middle * left^T, in fp32.
Matrix sandwich(const Matrix& left, const Matrix& middle) {
  Matrix half(left.size(), std::vector<float>(middle.size(), 0)),
      whole(left.size(), std::vector<float>(left.size(), 0));
  for (std::size_t i = 0; i < left.size(); ++i)
    for (std::size_t j = 0; j < middle.size(); ++j)
      for (std::size_t l = 0; l < middle.size(); ++l) half[i][j] += left[i][l] * middle[l][j];
  for (std::size_t i = 0; i < left.size(); ++i)
    for (std::size_t j = 0; j < left.size(); ++j)
      for (std::size_t l = 0; l < middle.size(); ++l) whole[i][j] += half[i][l] * left[j][l];
  return whole;
}

// One image, one group; fp32 throughout.
std::vector<float> winograd(const Conv2dSpec& spec, const ConvTensors& tensors, const Algorithm& algorithm) {
  const std::size_t t = algorithm.b.size();
  const auto in = tensors.input->as<float>();
  const auto w = tensors.weights->as<float>();
  std::vector<float> out(static_cast<std::size_t>(spec.k * spec.out_h() * spec.out_w()));
  for (std::int64_t k = 0; k < spec.k; ++k) {
    for (std::int64_t top = 0; top < spec.out_h(); top += algorithm.m) {
      for (std::int64_t left = 0; left < spec.out_w(); left += algorithm.m) {
        Matrix sum(t, std::vector<float>(t, 0));
        for (std::int64_t c = 0; c < spec.c; ++c) {
          Matrix tile(t, std::vector<float>(t, 0)), kernel(3, std::vector<float>(3));
          for (std::size_t i = 0; i < 9; ++i)
            kernel[i / 3][i % 3] = w[static_cast<std::size_t>((k * spec.c + c) * 9) + i];
          for (std::size_t i = 0; i < t * t; ++i) {
            const std::int64_t y = top - spec.pad_y + static_cast<std::int64_t>(i / t);
            const std::int64_t x = left - spec.pad_x + static_cast<std::int64_t>(i % t);
            if (y >= 0 && y < spec.h && x >= 0 && x < spec.w) {
              tile[i / t][i % t] = in[static_cast<std::size_t>((c * spec.h + y) * spec.w + x)];
            }
          }
          const Matrix u = sandwich(algorithm.g, kernel), v = sandwich(algorithm.b, tile);
          for (std::size_t i = 0; i < t * t; ++i) sum[i / t][i % t] += u[i / t][i % t] * v[i / t][i % t];
        }
        const Matrix result = sandwich(algorithm.a, sum);
        for (std::int64_t y = top; y < std::min(top + algorithm.m, spec.out_h()); ++y) {
          for (std::int64_t x = left; x < std::min(left + algorithm.m, spec.out_w()); ++x) {
            out[static_cast<std::size_t>((k * spec.out_h() + y) * spec.out_w() + x)] =
                result[static_cast<std::size_t>(y - top)][static_cast<std::size_t>(x - left)];
          }
        }
      }
    }
  }
  return out;
}

Conv2dSpec layer(std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t k) {
  Conv2dSpec spec;
  spec.c = c, spec.h = h, spec.w = w, spec.k = k, spec.r = 3, spec.s = 3, spec.pad_y = 1, spec.pad_x = 1;
  spec.accuracy = Accuracy::winograd;
  return spec;
}

}  // namespace

TEST_CASE("winograd: fp32 Winograd is within its allowance, of either tile size", "[reference]") {
  for (const Conv2dSpec& spec : {layer(1, 4, 4, 1), layer(3, 13, 11, 5), layer(64, 14, 15, 6), layer(200, 7, 7, 3)}) {
    INFO(canonical_text(spec));
    for (const std::uint64_t seed : {1, 2, 3}) {
      const ConvTensors tensors = tensors_for(spec, seed, Values::uniform);
      for (const Algorithm* algorithm : {&f2(), &f4()}) {
        const auto verdict = verdict_of(spec, tensors, winograd(spec, tensors, *algorithm));
        CHECK(verdict.within);
        CHECK(verdict.max_rel_error <= verdict.error_bound);
        CHECK(verdict.max_rel_error > 0);
      }
    }
  }
}

TEST_CASE("winograd: what accuracy direct refuses, accuracy winograd may allow", "[reference]") {
  Conv2dSpec spec = layer(1, 16, 16, 8);
  const ConvTensors tensors = tensors_for(spec, 4, Values::uniform);
  const auto output = winograd(spec, tensors, f4());
  CHECK(verdict_of(spec, tensors, output).within);
  spec.accuracy = Accuracy::direct;
  CHECK_FALSE(verdict_of(spec, tensors, output).within);
}

TEST_CASE("winograd: an output that is wrong is not within the wider bound either", "[reference]") {
  const Conv2dSpec spec = layer(512, 14, 14, 4);
  const ConvTensors tensors = tensors_for(spec, 5, Values::uniform);
  const Naive exact = naive_conv2d(spec, *tensors.input, *tensors.weights, nullptr, Order::by_row);
  const std::vector<float> good(exact.value.begin(), exact.value.end());
  CHECK(verdict_of(spec, tensors, good).within);
  CHECK_FALSE(verdict_of(spec, tensors, std::vector<float>(good.size(), 0.0f)).within);
  auto exchanged = good;
  std::swap_ranges(exchanged.begin(), exchanged.begin() + 196, exchanged.begin() + 196);
  CHECK_FALSE(verdict_of(spec, tensors, exchanged).within);
  auto shifted = good;
  std::rotate(shifted.begin(), shifted.begin() + 1, shifted.end());
  CHECK_FALSE(verdict_of(spec, tensors, shifted).within);
}

TEST_CASE("winograd: an output of nothing but zeros beside a loud neighbour is allowed its tile's rounding",
          "[reference]") {
  const Conv2dSpec spec = layer(1, 12, 12, 1);
  ConvTensors tensors = tensors_for(spec, 6, Values::uniform);
  for (std::size_t i = 0; i < 144; ++i) {
    if (i % 12 < 6) tensors.input->as<float>()[i] = 0;
  }
  const auto verdict = verdict_of(spec, tensors, winograd(spec, tensors, f4()));
  CHECK(verdict.within);
  CHECK(std::isfinite(verdict.max_rel_error));
}

TEST_CASE("winograd: groups, batch, bias and odd sizes have an allowance that is never below a fp32 sum's error",
          "[reference]") {
  for (Conv2dSpec spec : support::random_cases(400, 31, 60000)) {
    spec.accuracy = Accuracy::winograd;
    if (!reference::winograd_applies(spec)) continue;
    INFO(canonical_text(spec));
    const ConvTensors tensors = tensors_for(spec, 7, Values::uniform);
    const auto bias = tensors.bias ? std::span<const float>(tensors.bias->as<float>()) : std::span<const float>();
    const auto one =
        reference::winograd_allowance(spec, tensors.input->as<float>(), tensors.weights->as<float>(), bias, 1);
    CHECK(one ==
          reference::winograd_allowance(spec, tensors.input->as<float>(), tensors.weights->as<float>(), bias, 3));
    const Naive exact = naive_conv2d(spec, *tensors.input, *tensors.weights, tensors.bias.get(), Order::by_row);
    REQUIRE(one.size() == exact.value.size());
    const auto single =
        naive_sums<float>(spec, *tensors.input, *tensors.weights, tensors.bias.get(), Order::by_row, false);
    for (std::size_t i = 0; i < one.size(); ++i) REQUIRE(std::abs(single[i] - exact.value[i]) <= one[i]);
  }
}

// Computed with rational numbers from the construction in the header, for a plane of ones and a kernel of ones.
TEST_CASE("winograd: the allowance has these values", "[reference]") {
  const Conv2dSpec spec = layer(1, 4, 4, 1);
  const std::vector<float> input(16, 1), weights(9, 1), bias{-8};
  const auto plain = reference::winograd_allowance(spec, input, weights, {}, 1);
  REQUIRE(plain.size() == 16);
  CHECK(plain[0] == Approx(0.0051350116887960351).epsilon(1e-12));
  CHECK(plain[5] == Approx(0.0013389618527598535).epsilon(1e-12));
  CHECK(plain[11] == Approx(0.0026221336283213798).epsilon(1e-12));
  const auto biased = reference::winograd_allowance(spec, input, weights, bias, 1);
  CHECK(biased[0] == Approx(0.0051536083811954776).epsilon(1e-12));
  CHECK(biased[5] == Approx(0.0013575585451592958).epsilon(1e-12));
  CHECK(biased[11] == Approx(0.0026407303207208223).epsilon(1e-12));
}

TEST_CASE("winograd: only 3x3 without stride and dilation, and only where it is allowed", "[reference]") {
  Conv2dSpec spec = layer(4, 8, 8, 4);
  CHECK(reference::winograd_applies(spec));
  spec.stride_x = 2;
  CHECK_FALSE(reference::winograd_applies(spec));
  spec = layer(4, 8, 8, 4);
  spec.r = 5;
  CHECK_FALSE(reference::winograd_applies(spec));
  spec = layer(4, 8, 8, 4);
  spec.dilation_y = 2;
  CHECK_FALSE(reference::winograd_applies(spec));
  spec = layer(4, 8, 8, 4);
  spec.accuracy = Accuracy::direct;
  CHECK_FALSE(reference::winograd_applies(spec));
}
