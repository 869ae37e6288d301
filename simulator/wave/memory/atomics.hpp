// The arithmetic of atomics: (old, operand, comparison) to the new value.
//
// Thread-safety and ownership: pure functions.
#pragma once

#include <cstdint>
#include <cstring>

namespace kiln::simulator::memory_unit::arithmetic {

using Word = std::uint32_t;
using Wide = std::uint64_t;

template <class T>
inline constexpr auto swap = [](T, T data, T) { return data; };
template <class T>
inline constexpr auto compare_swap = [](T old, T data, T compare) { return old == compare ? data : old; };
template <class T>
inline constexpr auto add = [](T old, T data, T) { return static_cast<T>(old + data); };
template <class T>
inline constexpr auto subtract = [](T old, T data, T) { return static_cast<T>(old - data); };
template <class T>
inline constexpr auto subtract_reversed = [](T old, T data, T) { return static_cast<T>(data - old); };
template <class T>
inline constexpr auto minimum = [](T old, T data, T) { return data < old ? data : old; };
template <class T>
inline constexpr auto maximum = [](T old, T data, T) { return old < data ? data : old; };
template <class T>
inline constexpr auto bit_and = [](T old, T data, T) { return static_cast<T>(old & data); };
template <class T>
inline constexpr auto bit_or = [](T old, T data, T) { return static_cast<T>(old | data); };
template <class T>
inline constexpr auto bit_xor = [](T old, T data, T) { return static_cast<T>(old ^ data); };
template <class T>  // counts up to the operand, then from 0
inline constexpr auto increment = [](T old, T data, T) { return old >= data ? T{0} : static_cast<T>(old + 1); };
template <class T>  // counts down from the operand
inline constexpr auto decrement = [](T old, T data, T) {
  return old == 0 || old > data ? data : static_cast<T>(old - 1);
};
template <class T>  // clears the bits of the first operand, sets those of the second
inline constexpr auto mask_or = [](T old, T mask, T bits) { return static_cast<T>((old & ~mask) | bits); };
// Down to zero, no further.
inline constexpr auto clamped_subtract = [](Word old, Word data, Word) { return old < data ? 0U : old - data; };
// A ring: down by the first operand, and below zero up by the second.
inline constexpr auto wrap = [](Word old, Word data, Word second) { return old >= data ? old - data : old + second; };

template <class Float, class Bits>
Float number(Bits bits) {
  static_assert(sizeof(Float) == sizeof(Bits));
  Float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
template <class Bits, class Float>
Bits bits(Float value) {
  static_assert(sizeof(Float) == sizeof(Bits));
  Bits result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}
inline constexpr auto add_float = [](Word old, Word data, Word) { return bits<Word>(number<float>(old) + number<float>(data)); };
template <class Float, class Bits>  // a number wins over a NaN
inline constexpr auto minimum_float = [](Bits old, Bits data, Bits) {
  const Float a = number<Float>(old), b = number<Float>(data);
  return a != a ? data : b != b ? old : b < a || (a == b && (data & ~(~Bits{0} >> 1U)) != 0) ? data : old;
};
template <class Float, class Bits>
inline constexpr auto maximum_float = [](Bits old, Bits data, Bits) {
  const Float a = number<Float>(old), b = number<Float>(data);
  return a != a ? data : b != b ? old : a < b || (a == b && (data & ~(~Bits{0} >> 1U)) == 0) ? data : old;
};
template <class Float, class Bits>
inline constexpr auto compare_swap_float = [](Bits old, Bits data, Bits compare) {
  return number<Float>(old) == number<Float>(compare) ? data : old;
};

}  // namespace kiln::simulator::memory_unit::arithmetic
