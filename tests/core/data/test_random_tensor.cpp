#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "core/data/random_of.hpp"
#include "data/tensor_source.hpp"

using namespace kiln;
using kiln::test::random_of;

namespace {

// SplitMix64 written a second time, from the paper.
std::uint64_t splitmix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

template <class T>
std::vector<T> first_two(DType dtype) {
  const auto tensor = random_of(dtype, {2}, 42);
  const auto values = tensor->as<T>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("random: elements are those of the documented generator", "[random]") {
  const auto floats = random_of(DType::f32, {4}, 42);
  const auto doubles = random_of(DType::f64, {4}, 42);
  const auto bytes = random_of(DType::u8, {4}, 42);
  for (std::uint64_t i = 0; i < 4; ++i) {
    const std::uint64_t bits = splitmix(splitmix(42) + (i + 1) * 0x9e3779b97f4a7c15ull);
    CHECK(floats->as<float>()[i] == static_cast<float>(static_cast<double>(bits >> 40) / 8388608.0 - 1.0));
    CHECK(doubles->as<double>()[i] == static_cast<double>(bits >> 11) / 4503599627370496.0 - 1.0);
    CHECK(bytes->as<std::uint8_t>()[i] == bits >> 56);
  }
}

// Computed with arbitrary precision from the formula in the header.
TEST_CASE("random: the other types have these elements", "[random]") {
  CHECK(first_two<std::int8_t>(DType::i8) == std::vector<std::int8_t>{-104, 41});
  CHECK(first_two<std::int16_t>(DType::i16) == std::vector<std::int16_t>{-26469, 10509});
  CHECK(first_two<std::uint16_t>(DType::u16) == std::vector<std::uint16_t>{39067, 10509});
  CHECK(first_two<std::int32_t>(DType::i32) == std::vector<std::int32_t>{-1734656237, 688764095});
  CHECK(first_two<std::uint32_t>(DType::u32) == std::vector<std::uint32_t>{2560311059u, 688764095u});
  CHECK(first_two<std::int64_t>(DType::i64) == std::vector<std::int64_t>{-7450291807549245335, 2958219263312191191});
  CHECK(first_two<std::uint64_t>(DType::u64) ==
        std::vector<std::uint64_t>{10996452266160306281u, 2958219263312191191u});
  CHECK(first_two<std::uint8_t>(DType::boolean) == std::vector<std::uint8_t>{1, 0});
  CHECK(first_two<std::uint16_t>(DType::f16) == std::vector<std::uint16_t>{12832, 47472});
}

TEST_CASE("random: uniform in [-1, 1), different for each seed, independent of the shape", "[random]") {
  const auto tensor = random_of(DType::f32, {100, 1000}, 1);
  const auto values = tensor->as<float>();
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  CHECK(*least >= -1.0f);
  CHECK(*least < -0.999f);
  CHECK(*most < 1.0f);
  CHECK(*most > 0.999f);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 100000;
  CHECK(std::abs(mean) < 0.01);  // five standard deviations
  const double square = std::inner_product(values.begin(), values.end(), values.begin(), 0.0) / 100000;
  CHECK(square == Approx(1.0 / 3).margin(0.005));

  const auto other = random_of(DType::f32, {100000}, 2);
  const auto flat = random_of(DType::f32, {100000}, 1);
  CHECK(std::equal(values.begin(), values.end(), flat->as<float>().begin()));
  int equal = 0;
  for (std::size_t i = 0; i < 100000; ++i) equal += values[i] == other->as<float>()[i];
  CHECK(equal < 10);
}

TEST_CASE("he: the elements of random times sqrt(6 / products)", "[random]") {
  auto weights = HostTensor::create(DType::f32, {5, 2, 3, 4}).value();
  auto plain = HostTensor::create(DType::f32, {5, 2, 3, 4}).value();
  REQUIRE(data::fill_he(*weights, 7).ok());
  data::fill_random(*plain, 7);
  for (std::size_t i = 0; i < 120; ++i) CHECK(weights->as<float>()[i] == plain->as<float>()[i] * 0.5f);  // 6 / 24
  auto matrix = HostTensor::create(DType::f32, {6, 4}).value();
  REQUIRE(data::fill_he(*matrix, 1).ok());
  auto unit = HostTensor::create(DType::f32, {6, 4}).value();
  data::fill_random(*unit, 1);
  CHECK(matrix->as<float>()[3] == unit->as<float>()[3]);
  auto bias = HostTensor::create(DType::f32, {6}).value();
  CHECK_THAT(data::fill_he(*bias, 1).message, Catch::Contains("float32 [6], expected weights"));
  CHECK_FALSE(data::parse_he("random:1"));
  CHECK(data::parse_he("he:12")->value() == 12);
  CHECK_THAT(data::parse_he("he:x")->error().message, Catch::Contains("he:SEED"));
}

TEST_CASE("random: the source's text", "[random]") {
  CHECK_FALSE(data::parse_random("input.npy"));
  CHECK_FALSE(data::parse_random("random.npy"));
  const auto good = data::parse_random("random:42");
  REQUIRE(good);
  REQUIRE(*good);
  CHECK(**good == 42);
  const auto most = data::parse_random("random:18446744073709551615");
  REQUIRE(most);
  REQUIRE(*most);
  CHECK(**most == ~std::uint64_t{0});
  for (const char* bad :
       {"random:", "random:x", "random:-1", "random:1.5", "random: 1", "random:18446744073709551616", "random:1 "}) {
    INFO(bad);
    const auto seed = data::parse_random(bad);
    REQUIRE(seed);
    REQUIRE_FALSE(*seed);
    CHECK(seed->error().code == StatusCode::invalid_argument);
    CHECK_THAT(seed->error().message, Catch::Contains(bad) && Catch::Contains("random:SEED"));
  }
}
