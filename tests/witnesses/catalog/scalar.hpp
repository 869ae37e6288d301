// Scalar: what the numbers of a buffer are, with half precision done by hand where the compiler has none.
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::witness {

using Bytes = std::vector<std::byte>;

enum class Scalar : std::uint8_t {
  invalid = 0,
  int8,
  uint8,
  int16,
  uint16,
  float16,
  int32,
  uint32,
  float32,
  int64,
  uint64,
  float64
};

// A type of GLSL: "uint" is {uint32, 1}, "vec4" {float32, 4}. lanes 0: not one that a buffer may have here. A vector of
// three is not, because an array of them has gaps.
struct Type {
  Scalar scalar = Scalar::invalid;
  std::size_t lanes = 0;
};
Type type_of(std::string_view glsl);

std::size_t size_of(Scalar scalar);
bool is_float(Scalar scalar);
bool is_signed(Scalar scalar);

// To nearest, ties to even; NaN stays a quiet NaN.
std::uint16_t half_of(double value);
double from_half(std::uint16_t bits);

// Element `at` of the array, for whole numbers up to 64 bits (sign-extended) and for the three float types.
std::uint64_t bits_at(Scalar scalar, const Bytes& array, std::size_t at);
std::int64_t whole_at(Scalar scalar, const Bytes& array, std::size_t at);
double number_at(Scalar scalar, const Bytes& array, std::size_t at);

// "3 (0x00000003)", "-0.5 (0xbf000000)".
std::string text_at(Scalar scalar, const Bytes& array, std::size_t at);

}  // namespace kiln::witness
