#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

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

TEST_CASE("compare tensors: floats, each under a bound of its own", "[reference]") {
  const auto expected = tensor_of<float>(DType::f32, {1, -2, 3, 0});
  CHECK(verdict_of(*expected, *expected).within);
  CHECK(verdict_of(*expected, *expected).max_rel_error == 0);
  CHECK(verdict_of(*expected, *expected).elements == 4);
  const auto close = verdict_of(*tensor_of<float>(DType::f32, {1.00001f, -2, 3, 1e-38f}), *expected);
  CHECK(close.within);
  CHECK(close.wrong == 0);
  CHECK(close.error_bound == Approx(1.2207776e-4).epsilon(1e-4));
  const auto off = verdict_of(*tensor_of<float>(DType::f32, {1, -2, 3.003f, 0}), *expected);
  CHECK_FALSE(off.within);
  CHECK(off.wrong == 1);
  CHECK(off.worst_index == 2);
  CHECK(off.worst_found == Approx(3.003));
  CHECK(off.worst_expected == 3);
  CHECK(off.worst_allowed == Approx(3 * 1.2207776e-4).epsilon(1e-4));
  CHECK(off.max_rel_error == Approx(0.001).epsilon(1e-3));
  // No element is measured by another's size.
  CHECK_FALSE(verdict_of(*tensor_of<float>(DType::f32, {1, -2, 3, 1e-5f}), *expected).within);
  const auto beside_large = tensor_of<float>(DType::f32, {1e9f, 1, 1, 1});
  const auto zeros = verdict_of(*tensor_of<float>(DType::f32, {1e9f, 0, 0, 0}), *beside_large);
  CHECK(zeros.wrong == 3);
  CHECK(zeros.worst_index == 1);
  const auto poisoned = verdict_of(*tensor_of<float>(DType::f32, {1, std::nanf(""), 3, 0}), *expected);
  CHECK_FALSE(poisoned.within);
  CHECK(poisoned.not_finite == 1);
  CHECK(poisoned.worst_index == 1);
}

TEST_CASE("compare tensors: infinities and NaN match themselves alone", "[reference]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  for (const float value : {infinity, -infinity, nan}) {
    const auto expected = tensor_of<float>(DType::f32, {1, value});
    CHECK(verdict_of(*expected, *expected).within);
    for (const float other : {2.0f, infinity, -infinity, nan, std::numeric_limits<float>::max()}) {
      if (other == value || (std::isnan(other) && std::isnan(value))) continue;
      INFO(value << " beside " << other);
      const auto verdict = verdict_of(*tensor_of<float>(DType::f32, {1, other}), *expected);
      CHECK(verdict.wrong == 1);
      CHECK(verdict.worst_index == 1);
      CHECK(std::isinf(verdict.max_rel_error));
      // No tolerance makes them equal.
      const auto lenient =
          reference::compare_tensors(*tensor_of<float>(DType::f32, {1, other}), *expected, Tolerance{1e30, 1e30});
      REQUIRE(lenient);
      CHECK_FALSE(lenient->within);
    }
  }
}

TEST_CASE("compare tensors: a tolerance replaces the default", "[reference]") {
  const auto expected = tensor_of<float>(DType::f32, {0, 10, -100});
  const auto compare = [&](std::initializer_list<float> values, Tolerance tolerance) {
    const auto verdict = reference::compare_tensors(*tensor_of<float>(DType::f32, values), *expected, tolerance);
    REQUIRE(verdict);
    return verdict->wrong;
  };
  CHECK(compare({0, 10.09f, -100.9f}, {0, 0.01}) == 0);
  CHECK(compare({0, 10.11f, -101.1f}, {0, 0.01}) == 2);
  CHECK(compare({0.001f, 10.09f, -100.9f}, {0, 0.01}) == 1);
  CHECK(compare({0.001f, 10.001f, -100.1f}, {0.0011, 0}) == 1);
  CHECK(compare({0.0499f, 10.14f, -101.04f}, {0.05, 0.01}) == 0);
  CHECK(compare({0.06f, 10.16f, -101.06f}, {0.05, 0.01}) == 3);
  const auto integers = tensor_of<std::int32_t>(DType::i32, {100});
  const auto near = reference::compare_tensors(*tensor_of<std::int32_t>(DType::i32, {101}), *integers, Tolerance{1, 0});
  REQUIRE(near);
  CHECK(near->within);
}

TEST_CASE("compare tensors: a hundred seeds of planted errors are all found", "[reference]") {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    constexpr std::int64_t rows = 8, columns = 16;
    auto expected = *HostTensor::create(DType::f32, {rows, columns});
    std::uniform_real_distribution<float> values(-50, 50);
    for (float& value : expected->as<float>()) value = values(random);
    const auto at = static_cast<std::size_t>(random() % (rows * columns));
    const Tolerance tolerance{1e-3, 1e-3};
    auto actual = *HostTensor::create(DType::f32, {rows, columns});
    const auto reset = [&] { std::ranges::copy(expected->bytes(), actual->bytes().begin()); };
    const auto wrong = [&] { return reference::compare_tensors(*actual, *expected, tolerance)->wrong; };
    const auto want = expected->as<float>();
    auto got = actual->as<float>();
    INFO("seed " << seed << ", element " << at);
    const float allowed = 1e-3f + 1e-3f * std::abs(want[at]);
    reset(), got[at] += 0.98f * allowed;
    CHECK(wrong() == 0);
    reset(), got[at] += (random() % 2 == 0 ? 1.02f : -1.02f) * allowed;
    CHECK(wrong() == 1);
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), want[at] + 7}) {
      reset(), got[at] = bad;
      CHECK(wrong() == 1);
    }
    reset();
    for (std::size_t i = 0; i < columns; ++i) got[at / columns * columns + i] += 1;  // a row
    CHECK(wrong() == columns);
    reset();
    for (float& value : got) value += 0.2f;  // an offset
    CHECK(wrong() == rows * columns);
    reset(), std::swap(got[at], got[(at + 1) % (rows * columns)]);
    CHECK(wrong() == 2);
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
  CHECK(off.wrong == 1);
  CHECK(off.worst_index == 1);
  const auto extremes = tensor_of<std::uint32_t>(DType::u32, {0xFFFFFFFFu});
  CHECK_FALSE(verdict_of(*tensor_of<std::uint32_t>(DType::u32, {0xFFFFFFFEu}), *extremes).within);
  CHECK_FALSE(verdict_of(*tensor_of<std::uint8_t>(DType::u8, {7}), *tensor_of<std::uint8_t>(DType::u8, {8})).within);
}

namespace {

// Equal to itself; one element beside another is wrong, and lies within a tolerance of `apart`.
template <class T>
void check_integers(DType dtype, T least, T most, double apart) {
  INFO(to_string(dtype));
  const auto expected = tensor_of<T>(dtype, {least, 3, most});
  CHECK(verdict_of(*expected, *expected).within);
  CHECK(verdict_of(*expected, *expected).elements == 3);
  const auto other = tensor_of<T>(dtype, {least, 3, static_cast<T>(most - 1)});
  const auto verdict = verdict_of(*other, *expected);
  CHECK(verdict.wrong == 1);
  CHECK(verdict.worst_index == 2);
  CHECK(verdict_of(*tensor_of<T>(dtype, {static_cast<T>(least + 1), 3, most}), *expected).worst_index == 0);
  const auto lenient = reference::compare_tensors(*other, *expected, Tolerance{apart, 0});
  REQUIRE(lenient);
  CHECK(lenient->within);
}

}  // namespace

TEST_CASE("compare tensors: integers of every width, at both ends of their range", "[reference]") {
  check_integers<std::int8_t>(DType::i8, -128, 127, 1);
  check_integers<std::uint8_t>(DType::u8, 0, 255, 1);
  check_integers<std::int16_t>(DType::i16, -32768, 32767, 1);
  check_integers<std::uint16_t>(DType::u16, 0, 65535, 1);
  check_integers<std::int32_t>(DType::i32, std::numeric_limits<std::int32_t>::min(), 2147483647, 1);
  check_integers<std::uint32_t>(DType::u32, 0, 4294967295u, 1);
  // Next to these a double tells only every 1024th or 2048th integer apart.
  check_integers<std::int64_t>(DType::i64, std::numeric_limits<std::int64_t>::min(), 9223372036854775807, 1024);
  check_integers<std::uint64_t>(DType::u64, 0, 18446744073709551615u, 2048);
  CHECK_FALSE(
      verdict_of(*tensor_of<std::uint8_t>(DType::boolean, {1, 0}), *tensor_of<std::uint8_t>(DType::boolean, {1, 1}))
          .within);
}

TEST_CASE("compare tensors: integers that one double stands for still differ", "[reference]") {
  const auto expected = tensor_of<std::int64_t>(DType::i64, {9007199254740992});
  const auto above = tensor_of<std::int64_t>(DType::i64, {9007199254740993});
  const auto verdict = verdict_of(*above, *expected);
  CHECK(verdict.wrong == 1);
  CHECK(verdict.worst_found == 9007199254740991.0);
  CHECK(verdict.worst_expected == 9007199254740992.0);
  const auto lenient = reference::compare_tensors(*above, *expected, Tolerance{1, 0});
  REQUIRE(lenient);
  CHECK(lenient->within);
  CHECK_FALSE(reference::compare_tensors(*above, *expected, Tolerance{0.5, 0})->within);
}

TEST_CASE("compare tensors: halves are compared by value", "[reference]") {
  const auto expected = tensor_of<std::uint16_t>(DType::f16, {0x3C00, 0xC000});  // 1, -2
  CHECK(verdict_of(*expected, *expected).within);
  CHECK(verdict_of(*tensor_of<std::uint16_t>(DType::f16, {0x3C01, 0xC000}), *expected).within);  // 1 + 2^-10
  const auto verdict = verdict_of(*tensor_of<std::uint16_t>(DType::f16, {0x3C08, 0xC000}), *expected);
  CHECK(verdict.wrong == 1);
  CHECK(verdict.worst_found == 1.0078125);
  CHECK(verdict.max_rel_error == 0.0078125 - 0x1p-14);  // beyond the smallest normal half
  const auto zeros = tensor_of<std::uint16_t>(DType::f16, {0x8000, 0x0000});
  CHECK(verdict_of(*zeros, *tensor_of<std::uint16_t>(DType::f16, {0x0000, 0x8000})).within);
}

TEST_CASE("compare tensors: what is reported of an element that should be 0", "[reference]") {
  const auto zero = tensor_of<float>(DType::f32, {0, 4});
  const auto wrong = reference::compare_tensors(*tensor_of<float>(DType::f32, {1, 4}), *zero, Tolerance{0.5, 0.25});
  REQUIRE(wrong);
  CHECK(std::isinf(wrong->max_rel_error));
  CHECK(wrong->error_bound == 0.25);
  CHECK(wrong->worst_allowed == 0.5);
  const auto right =
      reference::compare_tensors(*tensor_of<float>(DType::f32, {0.5f, 5.5f}), *zero, Tolerance{0.5, 0.25});
  REQUIRE(right);
  CHECK(right->within);
  CHECK(right->max_rel_error == 0.25);  // 1.5 beside 4, of which 0.5 is allowed anyhow
  CHECK(right->worst_index == 0);       // the first of two that reach their bound
  CHECK(right->not_finite == 0);
}

TEST_CASE("compare expected: a tolerance replaces the derived bound", "[reference]") {
  reference::Expected expected;
  expected.reference = {{1, 2}, {1, 2}};
  expected.bound = 1e-7;
  const std::vector<float> output{1.125f, 2};
  const auto strict = reference::compare_expected(expected, output);
  REQUIRE(strict);
  CHECK(strict->wrong == 1);
  CHECK(strict->worst_allowed == 1e-7);
  const auto at_the_limit = reference::compare_expected(expected, output, Tolerance{0.125, 0});
  REQUIRE(at_the_limit);
  CHECK(at_the_limit->within);
  const auto relative = reference::compare_expected(expected, output, Tolerance{0, 0.125});
  REQUIRE(relative);
  CHECK(relative->within);
  CHECK(relative->error_bound == 0.125);
  CHECK_FALSE(reference::compare_expected(expected, output, Tolerance{0.0625, 0.03125})->within);
  CHECK_FALSE(reference::compare_expected(expected, std::span(output).first(1), Tolerance{9, 9}));
}

TEST_CASE("compare expected: an allowance raises the bound of its output, and only raises it", "[reference]") {
  reference::Expected expected;
  expected.reference = {{1, 1, 1}, {1, 1, 1}};
  expected.bound = 0x1p-10;
  expected.allowance = {0x1p-8, 0x1p-12, 0x1p-8};
  const auto wrong = [&](float first, float second, float third) {
    const auto verdict = reference::compare_expected(expected, std::vector<float>{first, second, third});
    REQUIRE(verdict);
    CHECK(verdict->error_bound == 0x1p-8);
    return verdict->wrong;
  };
  CHECK(wrong(1 + 0x1p-8f, 1 + 0x1p-10f, 1 - 0x1p-8f) == 0);
  CHECK(wrong(1 + 0x1.1p-8f, 1, 1) == 1);
  CHECK(wrong(1, 1 + 0x1.1p-10f, 1) == 1);
  CHECK(wrong(1, 1, 1 - 0x1.1p-8f) == 1);
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
