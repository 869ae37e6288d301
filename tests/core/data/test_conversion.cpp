// Conversions of elements: every type at both ends of its range, and what no longer fits.
#include <kiln/data.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

using namespace kiln;

namespace {

template <class T>
std::shared_ptr<HostTensor> tensor_of(DType dtype, const std::vector<T>& values) {
  auto made = HostTensor::create(dtype, {static_cast<std::int64_t>(values.size())});
  REQUIRE(made);
  REQUIRE(sizeof(T) == size_of(dtype));
  std::ranges::copy(values, (*made)->template as<T>().begin());
  return *made;
}

// The element as a To; nullopt: refused.
template <class To, class From>
std::optional<To> as(From value, DType from, DType to) {
  const auto made = data::converted(*tensor_of<From>(from, {value}), to);
  if (!made) {
    CHECK(made.error().code == StatusCode::invalid_argument);
    return std::nullopt;
  }
  CHECK((*made)->dtype() == to);
  CHECK((*made)->shape() == Shape{1});
  REQUIRE(sizeof(To) == size_of(to));
  return std::as_const(**made).template as<To>()[0];
}

// Every whole number from `least` to `most` fits, and none beside them.
template <class T>
void check_integer(DType dtype, std::int64_t least, std::int64_t most) {
  INFO(numpy_name(dtype));
  for (const std::int64_t value : {least, std::int64_t{0}, std::int64_t{1}, most}) {
    INFO(value);
    const T same = static_cast<T>(value);
    CHECK(as<T>(value, DType::i64, dtype) == same);
    CHECK(as<T>(static_cast<double>(value), DType::f64, dtype) == same);
    CHECK(as<std::int64_t>(same, dtype, DType::i64) == value);
    CHECK(as<double>(same, dtype, DType::f64) == static_cast<double>(value));
    if (value >= 0) CHECK(as<T>(static_cast<std::uint64_t>(value), DType::u64, dtype) == same);
  }
  for (const std::int64_t value : {least - 1, most + 1}) {
    INFO(value);
    CHECK_FALSE(as<T>(value, DType::i64, dtype).has_value());
    CHECK_FALSE(as<T>(static_cast<double>(value), DType::f64, dtype).has_value());
  }
  CHECK_FALSE(as<T>(static_cast<std::uint64_t>(most) + 1, DType::u64, dtype).has_value());
  CHECK_FALSE(as<T>(0.5, DType::f64, dtype).has_value());
  CHECK_FALSE(as<T>(std::nan(""), DType::f64, dtype).has_value());
  CHECK_FALSE(as<T>(std::numeric_limits<double>::infinity(), DType::f64, dtype).has_value());
  CHECK_FALSE(as<T>(-std::numeric_limits<double>::infinity(), DType::f64, dtype).has_value());
}

}  // namespace

TEST_CASE("conversion: each integer type has its whole range, and nothing beside it", "[conversion]") {
  check_integer<std::int8_t>(DType::i8, -128, 127);
  check_integer<std::int16_t>(DType::i16, -32768, 32767);
  check_integer<std::int32_t>(DType::i32, -2147483648, 2147483647);
  check_integer<std::uint8_t>(DType::u8, 0, 255);
  check_integer<std::uint16_t>(DType::u16, 0, 65535);
  check_integer<std::uint32_t>(DType::u32, 0, 4294967295);
  check_integer<std::uint8_t>(DType::boolean, 0, 1);
}

TEST_CASE("conversion: the ends of the integers of 64 bits", "[conversion]") {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                         most = std::numeric_limits<std::int64_t>::max();
  constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  CHECK(as<std::uint64_t>(most, DType::i64, DType::u64) == std::uint64_t{9223372036854775807});
  CHECK_FALSE(as<std::uint64_t>(std::int64_t{-1}, DType::i64, DType::u64).has_value());
  CHECK(as<std::int64_t>(std::uint64_t{9223372036854775807}, DType::u64, DType::i64) == most);
  CHECK_FALSE(as<std::int64_t>(std::uint64_t{9223372036854775808u}, DType::u64, DType::i64).has_value());
  CHECK(as<std::uint64_t>(all, DType::u64, DType::u64) == all);
  CHECK(as<double>(least, DType::i64, DType::f64) == -9223372036854775808.0);
  CHECK(as<double>(std::uint64_t{9223372036854775808u}, DType::u64, DType::f64) == 9223372036854775808.0);
  CHECK_FALSE(as<double>(all, DType::u64, DType::f64).has_value());
  CHECK(as<std::uint64_t>(18446744073709549568.0, DType::f64, DType::u64) == std::uint64_t{18446744073709549568u});
  CHECK_FALSE(as<std::uint64_t>(18446744073709551616.0, DType::f64, DType::u64).has_value());
  CHECK_FALSE(as<std::uint64_t>(-1.0, DType::f64, DType::u64).has_value());
  CHECK(as<std::uint64_t>(-0.0, DType::f64, DType::u64) == std::uint64_t{0});
  CHECK(as<std::int64_t>(-9223372036854775808.0, DType::f64, DType::i64) == least);
  CHECK_FALSE(as<std::int64_t>(-9223372036854777856.0, DType::f64, DType::i64).has_value());
  CHECK(as<std::int64_t>(9223372036854774784.0, DType::f64, DType::i64) == std::int64_t{9223372036854774784});
}

TEST_CASE("conversion: numbers with a fraction keep every bit, or are refused", "[conversion]") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  CHECK(as<float>(3.4028234663852886e38, DType::f64, DType::f32) == std::numeric_limits<float>::max());
  CHECK(as<float>(-3.4028234663852886e38, DType::f64, DType::f32) == -std::numeric_limits<float>::max());
  CHECK_FALSE(as<float>(3.402823466385289e38, DType::f64, DType::f32).has_value());
  CHECK_FALSE(as<float>(0.1, DType::f64, DType::f32).has_value());
  CHECK(as<float>(-inf, DType::f64, DType::f32) == -std::numeric_limits<float>::infinity());
  CHECK(as<double>(0.1f, DType::f32, DType::f64) == 0.100000001490116119384765625);
  CHECK(as<float>(std::uint32_t{16777216}, DType::u32, DType::f32) == 16777216.0f);
  CHECK_FALSE(as<float>(std::uint32_t{16777217}, DType::u32, DType::f32).has_value());
  CHECK(as<std::int8_t>(-2.0f, DType::f32, DType::i8) == std::int8_t{-2});

  const auto nan = as<float>(std::nan(""), DType::f64, DType::f32);
  REQUIRE(nan.has_value());
  CHECK(std::isnan(*nan));
}

TEST_CASE("conversion: numbers of 16 bits", "[conversion]") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto bits = [](auto value, DType from) { return as<std::uint16_t>(value, from, DType::f16); };
  CHECK(bits(1.0, DType::f64) == std::uint16_t{0x3C00});
  CHECK(bits(65504.0, DType::f64) == std::uint16_t{0x7BFF});
  CHECK(bits(-65504.0f, DType::f32) == std::uint16_t{0xFBFF});
  CHECK(bits(std::int32_t{-2}, DType::i32) == std::uint16_t{0xC000});
  CHECK(bits(std::uint8_t{3}, DType::u8) == std::uint16_t{0x4200});
  CHECK(bits(inf, DType::f64) == std::uint16_t{0x7C00});
  CHECK(bits(-inf, DType::f64) == std::uint16_t{0xFC00});
  for (const double value : {65505.0, 65536.0, 0.1, 1e-8}) {
    INFO(value);
    CHECK_FALSE(bits(value, DType::f64).has_value());
  }
  CHECK_FALSE(bits(std::numeric_limits<std::int64_t>::max(), DType::i64).has_value());
  const auto nan = bits(std::nan(""), DType::f64);
  REQUIRE(nan.has_value());
  CHECK((*nan & 0x7C00u) == 0x7C00u);
  CHECK((*nan & 0x03FFu) != 0u);
  CHECK(as<float>(std::uint16_t{0x3555}, DType::f16, DType::f32) == 0x1.554p-2f);
  CHECK(as<double>(std::uint16_t{0x8001}, DType::f16, DType::f64) == -0x1p-24);
  CHECK_FALSE(as<std::int16_t>(std::uint16_t{0xFBFF}, DType::f16, DType::i16).has_value());
}

TEST_CASE("conversion: every byte of a boolean but 0 is true", "[conversion]") {
  CHECK(as<std::int32_t>(std::uint8_t{7}, DType::boolean, DType::i32) == 1);
  CHECK(as<float>(std::uint8_t{255}, DType::boolean, DType::f32) == 1.0f);
  CHECK(as<std::uint8_t>(std::uint8_t{0}, DType::boolean, DType::u8) == std::uint8_t{0});
  CHECK(as<std::uint8_t>(std::int8_t{1}, DType::i8, DType::boolean) == std::uint8_t{1});
  CHECK_FALSE(as<std::uint8_t>(std::int8_t{-1}, DType::i8, DType::boolean).has_value());
  CHECK_FALSE(as<std::uint8_t>(std::uint8_t{2}, DType::u8, DType::boolean).has_value());
}

TEST_CASE("conversion: the error names both types, the element and its value", "[conversion]") {
  const auto message_of = [](const HostTensor& tensor, DType dtype) {
    const auto made = data::converted(tensor, dtype);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == StatusCode::invalid_argument);
    return made.error().message;
  };
  CHECK(message_of(*tensor_of<std::int64_t>(DType::i64, {1, 2, -3}), DType::u8) ==
        "cannot convert int64 to uint8 without loss: element [2] is -3, which uint8 cannot represent");
  CHECK(message_of(*tensor_of<std::uint64_t>(DType::u64, {18446744073709551615u}), DType::f32) ==
        "cannot convert uint64 to float32 without loss: element [0] is 18446744073709551615, which float32 cannot "
        "represent");
  CHECK(message_of(*tensor_of<float>(DType::f32, {0.5f, 0.1f}), DType::f16) ==
        "cannot convert float32 to float16 without loss: element [1] is 0.10000000149011612, which float16 cannot "
        "represent");
  auto cube = HostTensor::create(DType::f64, {2, 3, 4});
  REQUIRE(cube);
  (*cube)->as<double>()[17] = 2.5;
  (*cube)->as<double>()[18] = 3.5;  // only the first is told
  CHECK(message_of(**cube, DType::i32) ==
        "cannot convert float64 to int32 without loss: element [1, 1, 1] is 2.5, which int32 cannot represent");
}

TEST_CASE("conversion: a tensor keeps its shape and all its elements", "[conversion]") {
  auto matrix = HostTensor::create(DType::i16, {2, 3});
  REQUIRE(matrix);
  for (std::size_t i = 0; i < 6; ++i) (*matrix)->as<std::int16_t>()[i] = static_cast<std::int16_t>(100 * i);
  const auto made = data::converted(**matrix, DType::f32);
  REQUIRE(made);
  CHECK((*made)->shape() == Shape{2, 3});
  const auto values = (*made)->as<float>();
  CHECK(std::vector<float>(values.begin(), values.end()) == std::vector<float>{0, 100, 200, 300, 400, 500});
  const auto none = HostTensor::create(DType::f32, {0, 3});
  REQUIRE(none);
  const auto empty = data::converted(**none, DType::boolean);
  REQUIRE(empty);
  CHECK((*empty)->shape() == Shape{0, 3});
  CHECK((*empty)->dtype() == DType::boolean);
}
