// Corner operands: zeros, ones, extremes, denormals, infinities, both kinds of NaN, shifts by the width and beyond. And
// what the types of operands make of their bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {

inline constexpr std::uint32_t corners32[] = {
    0,          1,          2,          31,         32,         33,         0x7F,       0x80,
    0xFF,       0x7FFF,     0x8000,     0xFFFF,     0x10000,    0x7FFFFFFF, 0x80000000, 0x80000001,
    0xFFFFFFFE, 0xFFFFFFFF, 0x3F800000, 0xBF800000, 0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF,
    0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345, 0x80800000, 0x55555555, 0xAAAAAAAA};
inline constexpr std::uint32_t corners16[] = {0,      1,      2,      15,     16,     17,     0x7F,   0x80,
                                              0xFF,   0x100,  0x7FFE, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF,
                                              0x3C00, 0xBC00, 0x03FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00,
                                              0x7E00, 0x7D01, 0xFE55, 0x83FF, 0x4200, 0x3800, 0x5555, 0xAAAA};
inline constexpr std::uint64_t corners64[] = {0,
                                              1,
                                              2,
                                              63,
                                              64,
                                              65,
                                              0x7FFFFFFF,
                                              0x80000000,
                                              0xFFFFFFFF,
                                              0x100000000,
                                              0x7FFFFFFFFFFFFFFF,
                                              0x8000000000000000,
                                              0x8000000000000001,
                                              0xFFFFFFFFFFFFFFFE,
                                              0xFFFFFFFFFFFFFFFF,
                                              0x3FF0000000000000,
                                              0xBFF0000000000000,
                                              0x000FFFFFFFFFFFFF,
                                              0x0010000000000000,
                                              0x7FEFFFFFFFFFFFFF,
                                              0x7FF0000000000000,
                                              0xFFF0000000000000,
                                              0x7FF8000000000000,
                                              0x7FF0000000000001,
                                              0xFFF8000000012345,
                                              0x4000000000000000,
                                              0x3FE0000000000000,
                                              0x8010000000000000,
                                              0x5555555555555555,
                                              0xAAAAAAAAAAAAAAAA,
                                              0x00000001FFFFFFFF,
                                              0xFFFFFFFF00000000};
static_assert(std::size(corners32) == 32 && std::size(corners16) == 32 && std::size(corners64) == 32);

enum class Type : std::uint8_t { f16, f32, f64, i16, u16, i32, u32, i64, u64 };
inline constexpr std::pair<const char*, Type> types[] = {{"_f16", Type::f16}, {"_f32", Type::f32}, {"_f64", Type::f64},
                                                         {"_i16", Type::i16}, {"_u16", Type::u16}, {"_i32", Type::i32},
                                                         {"_u32", Type::u32}, {"_i64", Type::i64}, {"_u64", Type::u64}};

inline bool is_float(Type type) { return type <= Type::f64; }
inline unsigned bits_of(Type type) {
  return type == Type::f16 || type == Type::i16 || type == Type::u16   ? 16
         : type == Type::f32 || type == Type::i32 || type == Type::u32 ? 32
                                                                       : 64;
}
inline std::uint64_t corner(Type type, unsigned i) {
  return bits_of(type) == 16 ? corners16[i] : bits_of(type) == 32 ? corners32[i] : corners64[i];
}

inline double number_of(Type type, std::uint64_t bits) {
  if (type == Type::f16) {
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double fraction = static_cast<double>(bits & 1023);
    double value = exponent == 31  ? ((bits & 1023) != 0 ? std::nan("") : std::numeric_limits<double>::infinity())
                   : exponent == 0 ? std::ldexp(fraction, -24)
                                   : std::ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) != 0 ? -value : value;
  }
  if (type == Type::f32) {
    const std::uint32_t narrow = static_cast<std::uint32_t>(bits);
    float value = 0;
    std::memcpy(&value, &narrow, sizeof value);
    return static_cast<double>(value);
  }
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// A bit for each order: less 1, equal 2, greater 4, unordered 8.
inline unsigned order_of(Type type, std::uint64_t a, std::uint64_t b) {
  const auto order = [](auto x, auto y) { return x < y ? 1U : x == y ? 2U : x > y ? 4U : 8U; };
  switch (type) {
    case Type::i16:
      return order(static_cast<std::int16_t>(a), static_cast<std::int16_t>(b));
    case Type::i32:
      return order(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b));
    case Type::i64:
      return order(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b));
    case Type::u16:
    case Type::u32:
    case Type::u64:
      return order(a, b);
    default:
      return order(number_of(type, a), number_of(type, b));
  }
}

inline void set_operand(Bench& bench, unsigned index, unsigned lane, Type type, std::uint64_t bits) {
  if (bits_of(type) == 64) {
    bench.set_vgpr64(index, lane, bits);
  } else {
    bench.vgpr(index, lane) = static_cast<std::uint32_t>(bits);
  }
}

}  // namespace kiln::simulator::test
