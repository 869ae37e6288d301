#include "reference/layers.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/reference/naive.hpp"
#include "reference/compare.hpp"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("reference gemm: equal to the three loops to the bit, for every thread count", "[reference]") {
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{1, 1, 1}, {1, 19, 7}, {67, 1, 33}, {5, 8, 64}, {70, 41, 13}, {130, 130, 70}}) {
    for (const bool full : {false, true}) {
      GemmSpec spec;
      spec.m = m, spec.n = n, spec.k = k;
      spec.bias = full ? Bias::per_channel : Bias::none;
      spec.activation = full ? Activation::relu : Activation::none;
      INFO(canonical_text(spec));
      const auto a = tensor_of({m, k}, 1, Values::uniform);
      const auto b = tensor_of({k, n}, 2, Values::uniform);
      const auto bias = tensor_of({n}, 3, Values::uniform);
      std::vector<double> value, magnitude;
      for (std::int64_t row = 0; row < m; ++row) {
        for (std::int64_t column = 0; column < n; ++column) {
          double sum = 0, absolute = 0;
          for (std::int64_t i = 0; i < k; ++i) {
            const double product = static_cast<double>(a->as<float>()[static_cast<std::size_t>(row * k + i)]) *
                                   static_cast<double>(b->as<float>()[static_cast<std::size_t>(i * n + column)]);
            sum += product;
            absolute += std::abs(product);
          }
          const double added = static_cast<double>(bias->as<float>()[static_cast<std::size_t>(column)]);
          value.push_back(full ? std::max(sum + added, 0.0) : sum);
          magnitude.push_back(full ? absolute + std::abs(added) : absolute);
        }
      }
      for (const unsigned threads : {1u, 3u}) {
        const auto got = reference::gemm(spec, a->as<float>(), b->as<float>(),
                                         full ? bias->as<float>() : std::span<float>(), threads);
        REQUIRE(got.value == value);
        REQUIRE(got.magnitude == magnitude);
      }
      const std::vector<float> rounded(value.begin(), value.end());
      const auto verdict = reference::compare_gemm(spec, *a, *b, full ? bias.get() : nullptr, rounded);
      REQUIRE(verdict);
      CHECK(verdict->within);
      CHECK(verdict->max_rel_error <= 0x1p-24);
    }
  }
}

TEST_CASE("compare gemm: a wrong element, a wrong size and a missing bias are found", "[reference]") {
  GemmSpec spec;
  spec.m = 6, spec.n = 5, spec.k = 4;
  const auto a = tensor_of({6, 4}, 1, Values::integers);
  const auto b = tensor_of({4, 5}, 2, Values::integers);
  const auto exact = reference::gemm(spec, a->as<float>(), b->as<float>(), {});
  std::vector<float> output(exact.value.begin(), exact.value.end());
  output[17] += static_cast<float>(exact.magnitude[17]) * 1e-3f + 1.0f;
  const auto verdict = reference::compare_gemm(spec, *a, *b, nullptr, output);
  REQUIRE(verdict);
  CHECK_FALSE(verdict->within);
  CHECK(verdict->worst_index == 17);
  output.pop_back();
  const auto size = reference::compare_gemm(spec, *a, *b, nullptr, output);
  REQUIRE_FALSE(size);
  CHECK_THAT(size.error().message, Catch::Contains("c: 29 elements, expected 30"));
  spec.bias = Bias::per_channel;
  output.push_back(0);
  CHECK_FALSE(reference::compare_gemm(spec, *a, *b, nullptr, output));
}
