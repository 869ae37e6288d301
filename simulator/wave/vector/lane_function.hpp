// Lambdas of one lane as template arguments, and the types of their operands.
#pragma once

#include "simulator/wave/vector/number_formats.hpp"
#include "simulator/wave/wave.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {

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
// Compiled once for each instruction set, see number_formats.hpp. Thread-safety and ownership: plain values.

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
constexpr bool is_chosen = __is_same(T, Chosen<Word>) || __is_same(T, Chosen<Wide>) ||
                           __is_same(T, Chosen<std::uint16_t>);
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
constexpr bool has_mode_of_16_64 = __is_same(Format<T>, F16) || __is_same(Format<T>, F64);  // see number_formats.hpp

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

// A lane's lambda as a template argument: its operand types, and calling it for one lane.
//
// Compiled once for each instruction set, see number_formats.hpp. Thread-safety and ownership: none of its own.

namespace {

template <class T>
struct TypeTag {
  using type = T;
};

template <class T>
struct Signature;
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> {
  using Result = R;
  static constexpr unsigned sources = sizeof...(A);
  static constexpr bool wave = false;

  // Word where the lambda has no such source.
  template <unsigned N>
  static auto tag() {
    return pick<N, A..., Word, Word, Word>();
  }
  template <unsigned N, class First, class... Rest>
  static auto pick() {
    if constexpr (N == 0) {
      return TypeTag<First>{};
    } else {
      return pick<N - 1, Rest...>();
    }
  }
};
template <class C, class R, class... A>
struct Signature<R (C::*)(const Wave&, A...) const> : Signature<R (C::*)(A...) const> {
  static constexpr bool wave = true;
};

template <auto Body>
using SignatureOf = Signature<decltype(&decltype(Body)::operator())>;
template <auto Body>
using ResultOf = typename SignatureOf<Body>::Result;
template <auto Body>
constexpr unsigned sources_of = SignatureOf<Body>::sources;
template <auto Body, unsigned N>
using Argument = typename decltype(SignatureOf<Body>::template tag<N>())::type;

template <auto Body, class... T>
KILN_LANE auto call(const Wave& wave, T... values) {
  if constexpr (SignatureOf<Body>::wave) {
    return Body(wave, values...);
  } else {
    return Body(values...);
  }
}

// A source that is the same in all lanes.
struct Uniform {
  Word value;
  KILN_LANE Word operator[](unsigned) const { return value; }
};

// Of lane `i`. The sources are whatever `[i]` gives raw lanes; those that the lambda has not are not looked at.
template <auto Body, class A, class B, class C>
KILN_LANE auto lane(const Wave& wave, A a, B b, C c, unsigned i) {
  constexpr unsigned n = sources_of<Body>;
  if constexpr (n == 1) {
    return call<Body>(wave, decoded<Argument<Body, 0>>(a[i]));
  } else if constexpr (n == 2) {
    return call<Body>(wave, decoded<Argument<Body, 0>>(a[i]), decoded<Argument<Body, 1>>(b[i]));
  } else {
    return call<Body>(wave, decoded<Argument<Body, 0>>(a[i]), decoded<Argument<Body, 1>>(b[i]),
                      decoded<Argument<Body, 2>>(c[i]));
  }
}

}  // namespace

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
