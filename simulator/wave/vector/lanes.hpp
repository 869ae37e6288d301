// Lanes: turns the arithmetic of one lane (a lambda) into the handler of a vector instruction: sources with their
// modifiers, 32 lanes at a time, results with theirs, written where EXEC is set. The lambda's types say what the
// operands are:
//
//   float, double, Half           floats; a result that is NaN becomes the first source NaN, quiet, or the default NaN
//   Word, int32_t, Wide, int64_t  integers and raw bits
//   uint16_t, int16_t             half registers
//   HalfBits                      an f16 as its bits, sign modifiers done
//   Chosen<T>                     result: float bits that are right already, NaN too; only flushed
//   Precise                       result: a double to be rounded once to f16
//   bool                          result: one bit of a scalar mask
// A first parameter `const Wave&` gives the modes.
//
// Compiled once for each instruction set, see numbers.hpp. Thread-safety: as Wave's.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "simulator/wave/vector/numbers.hpp"
#include "simulator/wave/wave.hpp"

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

constexpr unsigned group = 32;  // lanes that one pass works on

template <class T>
struct TypeTag {};

// Raw lanes of a type: words, or double words for what takes two registers.
template <class T>
struct RawOf {
  using type = Word;
};
template <>
struct RawOf<double> {
  using type = Wide;
};
template <>
struct RawOf<Wide> {
  using type = Wide;
};
template <>
struct RawOf<std::int64_t> {
  using type = Wide;
};
template <class T>
using Raw = typename RawOf<T>::type;

template <class T>
constexpr bool is_half_register = false;
template <>
constexpr bool is_half_register<Half> = true;
template <>
constexpr bool is_half_register<std::uint16_t> = true;
template <>
constexpr bool is_half_register<std::int16_t> = true;

template <>
constexpr bool is_half_register<HalfBits> = true;

template <class T>
KILN_LANE T decoded(Raw<T> raw) {
  return static_cast<T>(raw);
}
template <>
KILN_LANE float decoded<float>(Word raw) {
  return as_float(raw);
}
template <>
KILN_LANE double decoded<double>(Wide raw) {
  return as_double(raw);
}
template <>
KILN_LANE HalfBits decoded<HalfBits>(Word raw) {
  return {raw};
}
template <>
KILN_LANE Half decoded<Half>(Word raw) {
  return {half_to_float(raw)};
}

template <class T>
struct Signature;
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> {
  using Result = R;
  static constexpr unsigned sources = sizeof...(A);
  static constexpr bool wave = false;
  template <unsigned N>
  static auto tag() {
    return pick<N, A...>();
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
template <class T>
T type_of(TypeTag<T>);

template <auto Body>
using SignatureOf = Signature<decltype(&decltype(Body)::operator())>;
template <auto Body, unsigned N>
using Argument = decltype(type_of(SignatureOf<Body>::template tag<N>()));

// --- sources

[[gnu::noinline, maybe_unused]] const Word* spread(const Wave& wave, const Op& op, unsigned source, Word* storage) {
  const Word value = op.kind[source] == SourceKind::scalar ? wave.scalar[op.reg[source]]
                                                           : special_value(wave, op.reg[source]);
  for (unsigned i = 0; i < group; ++i) storage[i] = value;
  return storage;
}

KILN_LANE const Word* words(Wave& wave, const Op& op, unsigned source, unsigned half, Word* storage) {
  if (op.kind[source] == SourceKind::row) [[likely]] return wave.row(op.reg[source], half);
  if (op.kind[source] == SourceKind::constant) return constant_words(op, source);
  return spread(wave, op, source, storage);
}

[[gnu::noinline, maybe_unused]] const Word* modified(const Op& op, unsigned source, const Word* in, Word* storage,
                                                     Word sign) {
  const Word keep = (op.absolute >> source & 1U) != 0 ? ~sign : ~0U;
  const Word flip = (op.negate >> source & 1U) != 0 ? sign : 0U;
  for (unsigned i = 0; i < group; ++i) storage[i] = (in[i] & keep) ^ flip;
  return storage;
}

[[gnu::noinline, maybe_unused]] void wides(Wave& wave, const Op& op, unsigned source, unsigned half, Wide* out) {
  const Word* low;
  const Word* high;
  if (op.kind[source] == SourceKind::row) {
    low = wave.row(op.reg[source], half);
    high = wave.row(op.reg[source] + 1U, half);
  } else if (op.kind[source] == SourceKind::constant) {
    low = constant_words(op, source);
    high = low + group;
  } else {
    const Wide value = scalar_source(wave, op, source);
    for (unsigned i = 0; i < group; ++i) out[i] = value;
    return;
  }
  for (unsigned i = 0; i < group; ++i) out[i] = low[i] | static_cast<Wide>(high[i]) << 32U;
}

[[gnu::noinline, maybe_unused]] const Word* half_words(Wave& wave, const Op& op, unsigned source, unsigned half,
                                                       Word* storage, bool is_float) {
  const Word* in = words(wave, op, source, half, storage);
  const unsigned shift = (op.select >> source & 1U) != 0 ? 16 : 0;
  const Word keep = is_float && (op.absolute >> source & 1U) != 0 ? 0x7FFFU : 0xFFFFU;
  const Word flip = is_float && (op.negate >> source & 1U) != 0 ? 0x8000U : 0U;
  for (unsigned i = 0; i < group; ++i) storage[i] = (in[i] >> shift & keep) ^ flip;
  if (is_float && wave.flush_in16) {
    for (unsigned i = 0; i < group; ++i) storage[i] = flushed_half(storage[i]);
  }
  return storage;
}

// The lanes of one source as Raw<T>; in `storage` or where the register lies.
template <class T>
KILN_LANE const Raw<T>* lanes_of(Wave& wave, const Op& op, unsigned source, unsigned half, Raw<T>* storage) {
  if constexpr (is_half_register<T>) {
    return half_words(wave, op, source, half, storage, __is_same(T, Half) || __is_same(T, HalfBits));
  } else if constexpr (sizeof(Raw<T>) == 8) {
    wides(wave, op, source, half, storage);
    if constexpr (__is_same(T, double)) {
      const Wide sign = Wide{1} << 63U;
      const Wide keep = (op.absolute >> source & 1U) != 0 ? ~sign : ~Wide{0};
      const Wide flip = (op.negate >> source & 1U) != 0 ? sign : 0U;
      if (op.absolute != 0 || op.negate != 0) {
        for (unsigned i = 0; i < group; ++i) storage[i] = (storage[i] & keep) ^ flip;
      }
    }
    return storage;
  } else {
    const Word* in = words(wave, op, source, half, storage);
    if constexpr (__is_same(T, float)) {
      if (((op.absolute | op.negate) >> source & 1U) != 0) [[unlikely]] {
        return modified(op, source, in, storage, 0x80000000U);
      }
    }
    return in;
  }
}

// --- results

KILN_LANE void put(Wave& wave, unsigned row, unsigned half, Word mask, const Word* values) {
  Word* to = wave.row(row, half);
  if (mask == ~0U) [[likely]] {
    for (unsigned i = 0; i < group; ++i) to[i] = values[i];
  } else {
    for (unsigned i = 0; i < group; ++i) to[i] = (mask >> i & 1U) != 0 ? values[i] : to[i];
  }
}

[[gnu::noinline, maybe_unused]] void put_wide(Wave& wave, unsigned row, unsigned half, Word mask, const Wide* values) {
  alignas(64) Word part[group];
  for (unsigned i = 0; i < group; ++i) part[i] = static_cast<Word>(values[i]);
  put(wave, row, half, mask, part);
  for (unsigned i = 0; i < group; ++i) part[i] = static_cast<Word>(values[i] >> 32U);
  put(wave, row + 1U, half, mask, part);
}

// Into one half of each lane's register; the other stays.
[[gnu::noinline, maybe_unused]] void put_half(Wave& wave, const Op& op, unsigned half, Word mask, Word* values) {
  const Word* old = wave.row(op.vdst, half);
  if ((op.select & 8U) != 0) {
    for (unsigned i = 0; i < group; ++i) values[i] = (old[i] & 0xFFFFU) | values[i] << 16U;
  } else {
    for (unsigned i = 0; i < group; ++i) values[i] = (old[i] & 0xFFFF0000U) | (values[i] & 0xFFFFU);
  }
  put(wave, op.vdst, half, mask, values);
}

[[gnu::noinline, maybe_unused]] void settle_nan(Word* out, const Word* a, const Word* b, const Word* c) {
  for (unsigned i = 0; i < group; ++i) {
    if (!is_nan(out[i])) continue;
    out[i] = a != nullptr && is_nan(a[i]) ? quiet(a[i])
             : b != nullptr && is_nan(b[i]) ? quiet(b[i])
             : c != nullptr && is_nan(c[i]) ? quiet(c[i])
                                            : default_nan;
  }
}
[[gnu::noinline, maybe_unused]] void settle_nan(Wide* out, const Wide* a, const Wide* b, const Wide* c) {
  for (unsigned i = 0; i < group; ++i) {
    if (!is_nan(out[i])) continue;
    out[i] = a != nullptr && is_nan(a[i]) ? quiet(a[i])
             : b != nullptr && is_nan(b[i]) ? quiet(b[i])
             : c != nullptr && is_nan(c[i]) ? quiet(c[i])
                                            : default_nan_wide;
  }
}
[[gnu::noinline, maybe_unused]] void settle_nan_half(Word* out, const Word* a, const Word* b, const Word* c) {
  for (unsigned i = 0; i < group; ++i) {
    if (!is_nan_half(out[i])) continue;
    out[i] = a != nullptr && is_nan_half(a[i]) ? a[i] | 0x200U
             : b != nullptr && is_nan_half(b[i]) ? b[i] | 0x200U
             : c != nullptr && is_nan_half(c[i]) ? c[i] | 0x200U
                                                 : default_nan_half;
  }
}

// omod counts only where denormals are flushed and IEEE is off; it gives no negative zero.
template <class Float>
KILN_LANE Float finished(Float value, unsigned omod, bool clamp, bool dx10) {
  if (omod != 0) {
    value *= omod == 1 ? Float(2) : omod == 2 ? Float(4) : Float(0.5);
    value = value == 0 ? Float(0) : value;
  }
  if (clamp) {
    if (value != value) return dx10 ? Float(0) : value;
    value = value > 0 ? value : Float(0);
    value = value < 1 ? value : Float(1);
  }
  return value;
}
[[gnu::noinline, maybe_unused]] void finish(const Wave& wave, const Op& op, Word* out) {
  const unsigned omod = wave.flush_out32 && !wave.ieee ? op.output & output_omod : 0;
  for (unsigned i = 0; i < group; ++i) {
    out[i] = as_bits(finished(as_float(out[i]), omod, (op.output & output_clamp) != 0, wave.dx10_clamp));
  }
}
[[gnu::noinline, maybe_unused]] void finish(const Wave& wave, const Op& op, Wide* out) {
  const unsigned omod = wave.flush_out16 && !wave.ieee ? op.output & output_omod : 0;
  for (unsigned i = 0; i < group; ++i) {
    out[i] = as_bits(finished(as_double(out[i]), omod, (op.output & output_clamp) != 0, wave.dx10_clamp));
  }
}
[[gnu::noinline, maybe_unused]] void finish_half(const Wave& wave, const Op& op, Word* out) {
  const unsigned omod = wave.flush_out16 && !wave.ieee ? op.output & output_omod : 0;
  for (unsigned i = 0; i < group; ++i) {
    const float value = finished(half_to_float(out[i]), omod, (op.output & output_clamp) != 0, wave.dx10_clamp);
    out[i] = double_to_half_slow(static_cast<double>(value), 0, false);
  }
}

[[gnu::noinline, maybe_unused]] void round_slowly(const Wave& wave, const double* values, Word* out) {
  const unsigned rounding = wave.mode >> mode_bit::round16_64 & 3U;
  const bool saturate = (wave.mode >> mode_bit::fp16_ovfl & 1U) != 0;
  for (unsigned i = 0; i < group; ++i) out[i] = double_to_half_slow(values[i], rounding, saturate);
}

// The highest bit of every lane, lane 0 lowest. REQUIRES: aligned to 32 bytes.
KILN_LANE Word highest_bits(const Word* values) {
  Word bits = 0;
#if defined(__AVX2__)
  for (unsigned i = 0; i < group; i += 8) {
    const __m256i eight = _mm256_load_si256(reinterpret_cast<const __m256i*>(values + i));
    bits |= static_cast<Word>(_mm256_movemask_ps(_mm256_castsi256_ps(eight))) << i;
  }
#else
  for (unsigned i = 0; i < group; i += 4) {
    const __m128i four = _mm_load_si128(reinterpret_cast<const __m128i*>(values + i));
    bits |= static_cast<Word>(_mm_movemask_ps(_mm_castsi128_ps(four))) << i;
  }
#endif
  return bits;
}

// --- one pass over 32 lanes

template <auto Body, class... T>
KILN_LANE auto call(const Wave& wave, T... values) {
  if constexpr (SignatureOf<Body>::wave) {
    return Body(wave, values...);
  } else {
    return Body(values...);
  }
}

template <auto Body, class S0, class S1, class S2>
KILN_LANE auto lane(const Wave& wave, const S0* a, const S1* b, const S2* c, unsigned i) {
  constexpr unsigned n = SignatureOf<Body>::sources;
  if constexpr (n == 1) {
    return call<Body>(wave, decoded<Argument<Body, 0>>(a[i]));
  } else if constexpr (n == 2) {
    return call<Body>(wave, decoded<Argument<Body, 0>>(a[i]), decoded<Argument<Body, 1>>(b[i]));
  } else {
    return call<Body>(wave, decoded<Argument<Body, 0>>(a[i]), decoded<Argument<Body, 1>>(b[i]),
                      decoded<Argument<Body, 2>>(c[i]));
  }
}

template <auto Body, unsigned N>
struct ArgumentOr {
  using type = Word;
};
template <auto Body, unsigned N>
  requires(N < SignatureOf<Body>::sources)
struct ArgumentOr<Body, N> {
  using type = Argument<Body, N>;
};

// Chooses the NaN of a result among the sources of its own type; a conversion, which has none, keeps its own, quiet.
template <class Float, class T0, class T1, class T2, unsigned n, class A, class B, class C>
KILN_LANE void settle(Raw<Float>* out, const A* a, const B* b, const C* c) {
  constexpr bool from_a = __is_same(T0, Float);
  constexpr bool from_b = n > 1 && __is_same(T1, Float);
  constexpr bool from_c = n > 2 && __is_same(T2, Float);
  const Raw<Float>* x = nullptr;
  const Raw<Float>* y = nullptr;
  const Raw<Float>* z = nullptr;
  if constexpr (from_a) x = a;
  if constexpr (from_b) y = b;
  if constexpr (from_c) z = c;
  if constexpr (__is_same(Float, Half)) {
    if constexpr (from_a || from_b || from_c) {
      settle_nan_half(out, x, y, z);
    } else {
      for (unsigned i = 0; i < group; ++i) out[i] = is_nan_half(out[i]) ? out[i] | 0x200U : out[i];
    }
  } else if constexpr (from_a || from_b || from_c) {
    settle_nan(out, x, y, z);
  } else {
    for (unsigned i = 0; i < group; ++i) out[i] = is_nan(out[i]) ? quiet(out[i]) : out[i];
  }
}

template <auto Body>
KILN_LANE Word pass(Wave& wave, const Op& op, unsigned half, Word mask) {
  using Result = typename SignatureOf<Body>::Result;
  constexpr unsigned n = SignatureOf<Body>::sources;
  using T0 = typename ArgumentOr<Body, 0>::type;
  using T1 = typename ArgumentOr<Body, 1>::type;
  using T2 = typename ArgumentOr<Body, 2>::type;
  alignas(64) Raw<T0> storage0[group];
  alignas(64) Raw<T1> storage1[group];
  alignas(64) Raw<T2> storage2[group];
  const Raw<T0>* a = lanes_of<T0>(wave, op, 0, half, storage0);
  const Raw<T1>* b = storage1;
  const Raw<T2>* c = storage2;
  if constexpr (n > 1) b = lanes_of<T1>(wave, op, 1, half, storage1);
  if constexpr (n > 2) c = lanes_of<T2>(wave, op, 2, half, storage2);

  if constexpr (__is_same(Result, bool)) {
    alignas(64) Word holds[group];
    for (unsigned i = 0; i < group; ++i) holds[i] = lane<Body>(wave, a, b, c, i) ? ~0U : 0U;
    return highest_bits(holds) & mask;
  } else if constexpr (__is_same(Result, float)) {
    alignas(64) Word out[group];
    Word unordered = 0;
    for (unsigned i = 0; i < group; ++i) {
      const float value = lane<Body>(wave, a, b, c, i);
      out[i] = as_bits(value);
      unordered |= value != value ? 1U : 0U;
    }
    if (unordered != 0) [[unlikely]] settle<float, T0, T1, T2, n>(out, a, b, c);
    if (op.output != 0) [[unlikely]] finish(wave, op, out);
    put(wave, op.vdst, half, mask, out);
  } else if constexpr (__is_same(Result, Chosen<Word>)) {
    alignas(64) Word out[group];
    for (unsigned i = 0; i < group; ++i) out[i] = lane<Body>(wave, a, b, c, i).bits;
    if (wave.flush_out32) {
      for (unsigned i = 0; i < group; ++i) out[i] = flushed(out[i]);
    }
    if (op.output != 0) [[unlikely]] finish(wave, op, out);
    put(wave, op.vdst, half, mask, out);
  } else if constexpr (__is_same(Result, double)) {
    alignas(64) Wide out[group];
    for (unsigned i = 0; i < group; ++i) out[i] = as_bits(lane<Body>(wave, a, b, c, i));
    settle<double, T0, T1, T2, n>(out, a, b, c);
    if (op.output != 0) finish(wave, op, out);
    put_wide(wave, op.vdst, half, mask, out);
  } else if constexpr (__is_same(Result, Chosen<Wide>)) {
    alignas(64) Wide out[group];
    for (unsigned i = 0; i < group; ++i) out[i] = lane<Body>(wave, a, b, c, i).bits;
    if (wave.flush_out16) {
      for (unsigned i = 0; i < group; ++i) out[i] = flushed(out[i]);
    }
    if (op.output != 0) finish(wave, op, out);
    put_wide(wave, op.vdst, half, mask, out);
  } else if constexpr (__is_same(Result, Half) || __is_same(Result, Precise)) {
    alignas(64) Word out[group];
    if (wave.nearest16) [[likely]] {
      for (unsigned i = 0; i < group; ++i) {
        const Result value = lane<Body>(wave, a, b, c, i);
        if constexpr (__is_same(Result, Half)) {
          out[i] = float_to_half(value.value);
        } else {
          out[i] = float_to_half(double_to_float_odd(value.value));
        }
      }
    } else {
      double values[group];
      for (unsigned i = 0; i < group; ++i) values[i] = static_cast<double>(lane<Body>(wave, a, b, c, i).value);
      round_slowly(wave, values, out);
    }
    settle<Half, T0, T1, T2, n>(out, a, b, c);
    if (wave.flush_out16) {
      for (unsigned i = 0; i < group; ++i) out[i] = flushed_half(out[i]);
    }
    if (op.output != 0) [[unlikely]] finish_half(wave, op, out);
    put_half(wave, op, half, mask, out);
  } else if constexpr (__is_same(Result, Chosen<std::uint16_t>)) {
    alignas(64) Word out[group];
    for (unsigned i = 0; i < group; ++i) out[i] = lane<Body>(wave, a, b, c, i).bits;
    if (wave.flush_out16) {
      for (unsigned i = 0; i < group; ++i) out[i] = flushed_half(out[i]);
    }
    if (op.output != 0) [[unlikely]] finish_half(wave, op, out);
    put_half(wave, op, half, mask, out);
  } else if constexpr (sizeof(Result) == 8) {
    alignas(64) Wide out[group];
    for (unsigned i = 0; i < group; ++i) out[i] = static_cast<Wide>(lane<Body>(wave, a, b, c, i));
    put_wide(wave, op.vdst, half, mask, out);
  } else if constexpr (sizeof(Result) == 2) {
    alignas(64) Word out[group];
    for (unsigned i = 0; i < group; ++i) out[i] = static_cast<std::uint16_t>(lane<Body>(wave, a, b, c, i));
    put_half(wave, op, half, mask, out);
  } else {
    alignas(64) Word out[group];
    for (unsigned i = 0; i < group; ++i) out[i] = static_cast<Word>(lane<Body>(wave, a, b, c, i));
    put(wave, op.vdst, half, mask, out);
  }
  return 0;
}

template <class T>
constexpr bool narrow_or_double = __is_same(T, Half) || __is_same(T, HalfBits) || __is_same(T, double) || __is_same(T, Precise) ||
                                  __is_same(T, Chosen<Wide>) || __is_same(T, Chosen<std::uint16_t>);

// f16 and f64 have rounding and denormals of their own, so MXCSR is theirs meanwhile.
struct ModeScope {
  explicit ModeScope(const Wave& w) : wave(w) {
    if (wave.split_mode) _mm_setcsr(wave.csr16);
  }
  ~ModeScope() {
    if (wave.split_mode) _mm_setcsr(wave.csr32);
  }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;
  const Wave& wave;
};

template <auto Body>
[[gnu::noinline]] Word pass_apart(Wave& wave, const Op& op, unsigned half, Word mask) {
  return pass<Body>(wave, op, half, mask);
}

// From one half of wave64 on.
template <auto Body>
[[gnu::noinline]] Next vector_from(Wave& wave, const Op& op, unsigned first) {
  using Result = typename SignatureOf<Body>::Result;
  constexpr bool own_mode = narrow_or_double<Result> ||
                            (narrow_or_double<typename ArgumentOr<Body, 0>::type> && !__is_same(Result, float));
  Word bits[2] = {0, 0};
  for (unsigned half = first; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    if constexpr (own_mode) {
      const ModeScope scope(wave);
      bits[half] = pass_apart<Body>(wave, op, half, mask);
    } else {
      bits[half] = pass<Body>(wave, op, half, mask);
    }
  }
  if constexpr (__is_same(Result, bool)) {
    for (unsigned half = 0; half < wave.halves; ++half) wave.set_mask(op.sdst, half, bits[half]);
  }
  return Next::go;
}

template <auto Body>
Next vector(Wave& wave, const Op& op) {
  return vector_from<Body>(wave, op, 0);
}

// --- the short way: all lanes on, no modifier, every source in lanes already but for one that is the same in all

KILN_LANE const Word* in_lanes(const Wave& wave, const Op& op, unsigned source, unsigned half) {
  const bool row = op.kind[source] == SourceKind::row;
  return reinterpret_cast<const Word*>(wave.base[static_cast<unsigned>(op.kind[source])] + op.place[source]) +
         (row ? half * group : 0U);
}

template <auto Body, bool ScalarFirst>
Next quick(Wave& wave, const Op& op) {
  using Result = typename SignatureOf<Body>::Result;
  constexpr unsigned n = SignatureOf<Body>::sources;
  if (wave.exec(0) != ~0U || (wave.halves == 2 && wave.exec(1) != ~0U)) return vector<Body>(wave, op);
  const Word same = ScalarFirst ? wave.scalar[op.reg[0]] : 0U;
  Word bits[2] = {0, 0};
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word* a = ScalarFirst ? nullptr : in_lanes(wave, op, 0, half);
    const Word* b = n > 1 ? in_lanes(wave, op, 1, half) : nullptr;
    const Word* c = n > 2 ? in_lanes(wave, op, 2, half) : nullptr;
    const auto value_of = [&](unsigned i) {
      const Word first = ScalarFirst ? same : a[i];
      if constexpr (n == 1) {
        return call<Body>(wave, decoded<Argument<Body, 0>>(first));
      } else if constexpr (n == 2) {
        return call<Body>(wave, decoded<Argument<Body, 0>>(first), decoded<Argument<Body, 1>>(b[i]));
      } else {
        return call<Body>(wave, decoded<Argument<Body, 0>>(first), decoded<Argument<Body, 1>>(b[i]),
                          decoded<Argument<Body, 2>>(c[i]));
      }
    };
    if constexpr (__is_same(Result, bool)) {
      alignas(64) Word holds[group];
      for (unsigned i = 0; i < group; ++i) holds[i] = value_of(i) ? ~0U : 0U;
      bits[half] = highest_bits(holds);
    } else {
      alignas(64) Word out[group];
      if constexpr (__is_same(Result, float)) {
        Word unordered = 0;
        for (unsigned i = 0; i < group; ++i) {
          const float value = value_of(i);
          out[i] = as_bits(value);
          unordered |= value != value ? 1U : 0U;
        }
        // Nothing of this half has been written: it is done again, the long way.
        if (unordered != 0) [[unlikely]] return vector_from<Body>(wave, op, half);
      } else if constexpr (__is_same(Result, Chosen<Word>)) {
        for (unsigned i = 0; i < group; ++i) out[i] = value_of(i).bits;
        if (wave.flush_out32) {
          for (unsigned i = 0; i < group; ++i) out[i] = flushed(out[i]);
        }
      } else {
        for (unsigned i = 0; i < group; ++i) out[i] = static_cast<Word>(value_of(i));
      }
      Word* to = wave.row(op.vdst, half);
      for (unsigned i = 0; i < group; ++i) to[i] = out[i];
    }
  }
  if constexpr (__is_same(Result, bool)) {
    for (unsigned half = 0; half < wave.halves; ++half) wave.set_mask(op.sdst, half, bits[half]);
  }
  return Next::go;
}

template <class T>
constexpr bool is_word_type = __is_same(T, float) || __is_same(T, Word) || __is_same(T, std::int32_t);
template <auto Body>
constexpr bool has_quick = is_word_type<typename ArgumentOr<Body, 0>::type> &&
                           is_word_type<typename ArgumentOr<Body, 1>::type> &&
                           is_word_type<typename ArgumentOr<Body, 2>::type> &&
                           (is_word_type<typename SignatureOf<Body>::Result> ||
                            __is_same(typename SignatureOf<Body>::Result, Chosen<Word>) ||
                            __is_same(typename SignatureOf<Body>::Result, bool));

template <class T>
constexpr bool is_float_type = __is_same(T, float) || narrow_or_double<T> || __is_same(T, Chosen<Word>);

// The table's entry for a lambda.
template <auto Body>
constexpr Semantics lanes(const char* name, std::uint8_t more = 0) {
  using Result = typename SignatureOf<Body>::Result;
  std::uint8_t modifiers = more;
  if (is_float_type<typename ArgumentOr<Body, 0>::type> || is_float_type<typename ArgumentOr<Body, 1>::type>) {
    modifiers |= takes::float_sources;
  }
  if (is_float_type<Result>) modifiers |= takes::float_result;
  // A comparison's clamp only asks for exceptions, and there are none.
  if (__is_same(Result, bool) && is_float_type<typename ArgumentOr<Body, 0>::type>) modifiers |= takes::saturation;
  if (is_half_register<typename ArgumentOr<Body, 0>::type> || is_half_register<Result> ||
      is_half_register<typename ArgumentOr<Body, 1>::type> || narrow_or_double<Result>) {
    modifiers |= takes::halves;
  }
  Semantics result{name, &vector<Body>, modifiers, 0};
  if constexpr (has_quick<Body>) {
    result.quick = &quick<Body, false>;
    result.quick_scalar = &quick<Body, true>;
  }
  return result;
}

template <unsigned N>
constexpr SemanticsList list_of(const Semantics (&entries)[N]) {
  return {entries, N};
}

}  // namespace
}  // namespace kiln::simulator::KILN_VECTOR_BUILD
