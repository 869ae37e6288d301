#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "reference/compare.hpp"

using namespace kiln;

namespace {

template <class T>
std::shared_ptr<HostTensor> tensor_of(DType dtype, std::initializer_list<T> values) {
  auto tensor = HostTensor::create(dtype, {static_cast<std::int64_t>(values.size())});
  REQUIRE(tensor);
  std::copy(values.begin(), values.end(), (*tensor)->template as<T>().begin());
  return *tensor;
}

reference::Comparison verdict_of(const HostTensor& actual, const HostTensor& expected) {
  const auto verdict = reference::compare_tensors(actual, expected);
  if (!verdict) FAIL(verdict.error().text());
  return *verdict;
}

}  // namespace

TEST_CASE("compare tensors: floats under a relative bound", "[reference]") {
  const auto expected = tensor_of<float>(DType::f32, {1, -2, 3, 0});
  CHECK(verdict_of(*expected, *expected).within);
  CHECK(verdict_of(*expected, *expected).max_rel_error == 0);
  const auto close = verdict_of(*tensor_of<float>(DType::f32, {1.00001f, -2, 3, 1e-5f}), *expected);
  CHECK(close.within);
  CHECK(close.error_bound == Approx(2 * 1024 * 0x1p-24).epsilon(1e-4));
  const auto off = verdict_of(*tensor_of<float>(DType::f32, {1, -2, 3.003f, 0}), *expected);
  CHECK_FALSE(off.within);
  CHECK(off.worst_index == 2);
  CHECK(off.max_rel_error == Approx(0.001).epsilon(1e-3));
  CHECK_FALSE(verdict_of(*tensor_of<float>(DType::f32, {1, -2, 3, 0.01f}), *expected).within);
  const auto poisoned = verdict_of(*tensor_of<float>(DType::f32, {1, std::nanf(""), 3, 0}), *expected);
  CHECK_FALSE(poisoned.within);
  CHECK(poisoned.not_finite == 1);
  CHECK(poisoned.worst_index == 1);
}

TEST_CASE("compare tensors: an expectation that is not finite is never met", "[reference]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {infinity, -infinity, std::nanf("")}) {
    const auto expected = tensor_of<float>(DType::f32, {1, value});
    CHECK_FALSE(verdict_of(*tensor_of<float>(DType::f32, {1, 2}), *expected).within);
    CHECK_FALSE(verdict_of(*expected, *expected).within);
  }
}

TEST_CASE("compare tensors: doubles have the bound of doubles", "[reference]") {
  const auto expected = tensor_of<double>(DType::f64, {1, 2});
  CHECK(verdict_of(*tensor_of<double>(DType::f64, {1 + 1e-14, 2}), *expected).within);
  CHECK_FALSE(verdict_of(*tensor_of<double>(DType::f64, {1 + 1e-9, 2}), *expected).within);
}

TEST_CASE("compare tensors: integers are equal or wrong", "[reference]") {
  const auto expected = tensor_of<std::int32_t>(DType::i32, {1, -200, 3});
  CHECK(verdict_of(*expected, *expected).within);
  CHECK(verdict_of(*expected, *expected).error_bound == 0);
  const auto off = verdict_of(*tensor_of<std::int32_t>(DType::i32, {1, -201, 3}), *expected);
  CHECK_FALSE(off.within);
  CHECK(off.max_rel_error == Approx(0.005));
  CHECK(off.worst_index == 1);
  const auto extremes = tensor_of<std::uint32_t>(DType::u32, {0xFFFFFFFFu});
  CHECK_FALSE(verdict_of(*tensor_of<std::uint32_t>(DType::u32, {0xFFFFFFFEu}), *extremes).within);
  CHECK_FALSE(verdict_of(*tensor_of<std::uint8_t>(DType::u8, {7}), *tensor_of<std::uint8_t>(DType::u8, {8})).within);
}

TEST_CASE("compare tensors: another dtype or shape is an error", "[reference]") {
  const auto floats = tensor_of<float>(DType::f32, {1, 2});
  const auto other = reference::compare_tensors(*floats, *tensor_of<std::int32_t>(DType::i32, {1, 2}));
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().message, Catch::Contains("found f32 [2], expected i32 [2]"));
  CHECK_FALSE(reference::compare_tensors(*floats, *tensor_of<float>(DType::f32, {1})));
  const auto empty = tensor_of<float>(DType::f32, {});
  CHECK(verdict_of(*empty, *empty).within);
}
