#include "witnesses/catalog/scalar.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

namespace kiln::witness {
namespace {

constexpr std::array<std::pair<std::string_view, Type>, 25> types{{
    {"int", {Scalar::int32, 1}},       {"ivec2", {Scalar::int32, 2}},     {"ivec4", {Scalar::int32, 4}},
    {"uint", {Scalar::uint32, 1}},     {"uvec2", {Scalar::uint32, 2}},    {"uvec4", {Scalar::uint32, 4}},
    {"float", {Scalar::float32, 1}},   {"vec2", {Scalar::float32, 2}},    {"vec4", {Scalar::float32, 4}},
    {"double", {Scalar::float64, 1}},  {"dvec2", {Scalar::float64, 2}},   {"dvec4", {Scalar::float64, 4}},
    {"int64_t", {Scalar::int64, 1}},   {"uint64_t", {Scalar::uint64, 1}}, {"float16_t", {Scalar::float16, 1}},
    {"f16vec2", {Scalar::float16, 2}}, {"f16vec4", {Scalar::float16, 4}}, {"int16_t", {Scalar::int16, 1}},
    {"i16vec2", {Scalar::int16, 2}},   {"uint16_t", {Scalar::uint16, 1}}, {"u16vec2", {Scalar::uint16, 2}},
    {"int8_t", {Scalar::int8, 1}},     {"i8vec4", {Scalar::int8, 4}},     {"uint8_t", {Scalar::uint8, 1}},
    {"u8vec4", {Scalar::uint8, 4}},
}};

}  // namespace

Type type_of(std::string_view glsl) {
  for (const auto& [name, type] : types) {
    if (name == glsl) return type;
  }
  return {};
}

std::size_t size_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::int8:
    case Scalar::uint8:
      return 1;
    case Scalar::int16:
    case Scalar::uint16:
    case Scalar::float16:
      return 2;
    case Scalar::int32:
    case Scalar::uint32:
    case Scalar::float32:
      return 4;
    case Scalar::int64:
    case Scalar::uint64:
    case Scalar::float64:
      return 8;
    case Scalar::invalid:
      break;
  }
  return 0;
}

bool is_float(Scalar scalar) {
  return scalar == Scalar::float16 || scalar == Scalar::float32 || scalar == Scalar::float64;
}

bool is_signed(Scalar scalar) {
  return scalar == Scalar::int8 || scalar == Scalar::int16 || scalar == Scalar::int32 || scalar == Scalar::int64;
}

std::uint16_t half_of(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00);
  const double size = std::fabs(value);
  if (size == 0.0) return sign;
  if (size >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(size, &exponent);  // size < 2^exponent
  const int step = std::max(exponent - 11, -24);
  const auto steps = static_cast<unsigned>(std::nearbyint(std::ldexp(size, -step)));
  // With a normal half, `steps` has its leading bit at 10, which adds one to the exponent field that is given here.
  const unsigned field = step == -24 ? 0u : static_cast<unsigned>(step + 24);
  return static_cast<std::uint16_t>(sign | ((field << 10) + steps));
}

double from_half(std::uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

std::uint64_t bits_at(Scalar scalar, const Bytes& array, std::size_t at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, array.data() + at * size_of(scalar),
              size_of(scalar));  // the disk and the device are little-endian
  return bits;
}

std::int64_t whole_at(Scalar scalar, const Bytes& array, std::size_t at) {
  const std::uint64_t bits = bits_at(scalar, array, at);
  if (!is_signed(scalar)) return static_cast<std::int64_t>(bits);
  const auto unused = static_cast<int>(64 - 8 * size_of(scalar));
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

double number_at(Scalar scalar, const Bytes& array, std::size_t at) {
  const std::uint64_t bits = bits_at(scalar, array, at);
  if (scalar == Scalar::float16) return from_half(static_cast<std::uint16_t>(bits));
  if (scalar == Scalar::float32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return std::bit_cast<double>(bits);
}

std::string text_at(Scalar scalar, const Bytes& array, std::size_t at) {
  const std::uint64_t bits = bits_at(scalar, array, at);
  const auto digits = static_cast<int>(2 * size_of(scalar));
  char text[96];
  if (is_float(scalar)) {
    std::snprintf(text, sizeof text, "%.17g (0x%0*" PRIx64 ")", number_at(scalar, array, at), digits, bits);
  } else if (is_signed(scalar)) {
    std::snprintf(text, sizeof text, "%" PRId64 " (0x%0*" PRIx64 ")", whole_at(scalar, array, at), digits, bits);
  } else {
    std::snprintf(text, sizeof text, "%" PRIu64 " (0x%0*" PRIx64 ")", bits, digits, bits);
  }
  return text;
}

}  // namespace kiln::witness
