// The types that a lane's lambda names its operands and its result with, and how each is kept in registers:
//
//   float, double, Half           floats; a result that is NaN becomes the first source NaN, quiet, or the default NaN
//   Word, int32_t, Wide, int64_t  integers and raw bits
//   uint16_t, int16_t             half registers
//   HalfBits                      an f16 as its bits, sign modifiers done
//   Chosen<Bits>                  result: float bits that are right already, NaN too; only flushed
//   Precise                       result: a double to be rounded once to f16
//   bool                          result: one bit of a scalar mask
//
// Compiled once for each instruction set, see formats.hpp. Thread-safety and ownership: plain values.
#pragma once

#include "simulator/wave/vector/half_numbers.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

struct Half {
  float value;
};
struct HalfBits {
  Word bits;
};
struct Precise {
  double value;
};
template <class Bits>
struct Chosen {  // Word: f32; Wide: f64; uint16_t: f16
  Bits bits;
};

template <class T>
consteval auto format_of() {
  if constexpr (__is_same(T, float) || __is_same(T, Chosen<Word>)) {
    return F32{};
  } else if constexpr (__is_same(T, double) || __is_same(T, Chosen<Wide>)) {
    return F64{};
  } else if constexpr (__is_same(T, Half) || __is_same(T, HalfBits) || __is_same(T, Precise) ||
                       __is_same(T, Chosen<std::uint16_t>)) {
    return F16{};
  }
}
// The format that a type's lanes have in registers; void: they are no floats.
template <class T>
using Format = decltype(format_of<T>());

template <class T>
constexpr bool is_float_type = !__is_same(Format<T>, void);
template <class T>
constexpr bool is_chosen =
    __is_same(T, Chosen<Word>) || __is_same(T, Chosen<Wide>) || __is_same(T, Chosen<std::uint16_t>);
// In one half of each lane's register.
template <class T>
constexpr bool is_half_register = __is_same(Format<T>, F16) || sizeof(T) == 2;
// In two registers.
template <class T>
constexpr bool is_register_pair = sizeof(T) == 8 && !is_half_register<T>;
// In one register, whole.
template <class T>
constexpr bool is_word = sizeof(T) == 4 && !is_half_register<T>;
template <class T>
constexpr bool has_mode_of_16_64 = __is_same(Format<T>, F16) || __is_same(Format<T>, F64);  // see formats.hpp

template <class T>
consteval auto raw_of() {
  if constexpr (is_register_pair<T>) {
    return Wide{};
  } else {
    return Word{};
  }
}
// A lane as it is worked on: a word, or a double word for what takes two registers.
template <class T>
using Raw = decltype(raw_of<T>());

template <class T>
KILN_LANE T decoded(Raw<T> raw) {
  if constexpr (__is_same(T, HalfBits)) {
    return {raw};
  } else if constexpr (__is_same(T, Half)) {
    return {half_to_float(raw)};
  } else if constexpr (is_float_type<T>) {
    return __builtin_bit_cast(T, raw);
  } else {
    return static_cast<T>(raw);
  }
}

// Of Half and Precise, whose rounding is MODE's: see compute() of results.hpp.
template <class T>
KILN_LANE Raw<T> encoded(T value) {
  if constexpr (__is_same(T, bool)) {
    return value ? ~0U : 0U;
  } else if constexpr (is_chosen<T>) {
    return value.bits;
  } else if constexpr (is_float_type<T>) {
    return __builtin_bit_cast(Raw<T>, value);
  } else if constexpr (sizeof(T) == 2) {
    return static_cast<std::uint16_t>(value);
  } else {
    return static_cast<Raw<T>>(value);
  }
}

}  // namespace
}  // namespace kiln::simulator::KILN_VECTOR_BUILD
