// Sources and results of vector instructions, 32 lanes at a time.
#pragma once

#include <immintrin.h>

#include "simulator/wave/vector/lane_function.hpp"
#include "simulator/wave/wave.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {

// Sources of vector instructions: 32 lanes of each, modifiers done, in the caller's storage or where the register lies.
//
// Compiled once for each instruction set, see number_formats.hpp. Thread-safety: as Wave's. Ownership: what is handed out
// lives as long as the storage and the wave.

namespace {

constexpr unsigned group = 32;  // lanes that one pass works on
constexpr unsigned most_sources = 3;

template <class F>
KILN_LANE bool flushes_in(const Wave& wave) {
  return F::has_mode_of_32 ? wave.flush_in32 : wave.flush_in16;
}
template <class F>
KILN_LANE void flush(typename F::Bits* lanes) {
  for (unsigned i = 0; i < group; ++i) lanes[i] = flushed<F>(lanes[i]);
}

[[gnu::noinline, maybe_unused]] const Word* spread(const Wave& wave, const Op& op, unsigned source, Word* storage) {
  const Word value =
      op.kind[source] == SourceKind::scalar ? wave.scalar[op.reg[source]] : special_value(wave, op.reg[source]);
  for (unsigned i = 0; i < group; ++i) storage[i] = value;
  return storage;
}

KILN_LANE const Word* words(Wave& wave, const Op& op, unsigned source, unsigned half, Word* storage) {
  if (op.kind[source] == SourceKind::row) [[likely]]
    return wave.row(op.reg[source], half);
  if (op.kind[source] == SourceKind::constant) return constant_words(op, source);
  return spread(wave, op, source, storage);
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

// With the sign modifiers of a source that has some.
template <class F>
[[gnu::noinline]] const typename F::Bits* modified(const Op& op, unsigned source, const typename F::Bits* in,
                                                   typename F::Bits* storage) {
  const typename F::Bits keep = (op.absolute >> source & 1U) != 0 ? F::sign - 1U : ~typename F::Bits{0};
  const typename F::Bits flip = (op.negate >> source & 1U) != 0 ? F::sign : 0U;
  for (unsigned i = 0; i < group; ++i) storage[i] = (in[i] & keep) ^ flip;
  return storage;
}

// The half of each lane that op_sel names. `flushes`: denormals as MODE says.
[[gnu::noinline, maybe_unused]] const Word* half_words(Wave& wave, const Op& op, unsigned source, unsigned half,
                                                       Word* storage, bool is_float, bool flushes = true) {
  const Word* in = words(wave, op, source, half, storage);
  const unsigned shift = (op.select >> source & 1U) != 0 ? 16 : 0;
  const Word keep = is_float && (op.absolute >> source & 1U) != 0 ? F16::sign - 1U : 0xFFFFU;
  const Word flip = is_float && (op.negate >> source & 1U) != 0 ? F16::sign : 0U;
  for (unsigned i = 0; i < group; ++i) storage[i] = (in[i] >> shift & keep) ^ flip;
  if (is_float && flushes && flushes_in<F16>(wave)) flush<F16>(storage);
  return storage;
}

// The half of each lane in `in` that a packed instruction uses for the low (0) or the high (1) half of its result.
KILN_LANE void packed_half_words(const Op& op, unsigned source, unsigned high, const Word* in, Word* out,
                                 bool is_float) {
  const unsigned shift = ((high != 0 ? op.select_high : op.select) >> source & 1U) * 16U;
  const Word flip = is_float && ((high != 0 ? op.absolute : op.negate) >> source & 1U) != 0 ? F16::sign : 0U;
  for (unsigned i = 0; i < group; ++i) out[i] = (in[i] >> shift & 0xFFFFU) ^ flip;
}

// The lanes of one source as Raw<T>.
template <class T>
KILN_LANE const Raw<T>* lanes_of(Wave& wave, const Op& op, unsigned source, unsigned half, Raw<T>* storage) {
  if constexpr (is_half_register<T>) {
    return half_words(wave, op, source, half, storage, is_float_type<T>);
  } else {
    const Raw<T>* in;
    if constexpr (is_register_pair<T>) {
      wides(wave, op, source, half, storage);
      in = storage;
    } else {
      in = words(wave, op, source, half, storage);
    }
    if constexpr (is_float_type<T>) {
      if (((op.absolute | op.negate) >> source & 1U) != 0) [[unlikely]] {
        return modified<Format<T>>(op, source, in, storage);
      }
    }
    return in;
  }
}

}  // namespace

// Results of vector instructions: computed for 32 lanes, their NaNs and denormals as AMD has them, output modifiers
// done, and written where a mask says.
//
// Compiled once for each instruction set, see number_formats.hpp. Thread-safety: as Wave's. Ownership: none of its own.

namespace {

template <class F>
KILN_LANE bool flushes_out(const Wave& wave) {
  return F::has_mode_of_32 ? wave.flush_out32 : wave.flush_out16;
}

// --- computing

// All lanes' results as bits; whether a NaN may be among those of Half, Precise, float and double.
// `value_of(i)` is the result of lane i.
template <class Result, class ValueOf>
KILN_LANE bool compute(const Wave& wave, const ValueOf& value_of, Raw<Result>* out) {
  if constexpr (__is_same(Result, float)) {
    Word unordered = 0;
    for (unsigned i = 0; i < group; ++i) {
      const float value = value_of(i);
      out[i] = as_bits(value);
      unordered |= value != value ? 1U : 0U;
    }
    return unordered != 0;
  } else if constexpr (__is_same(Result, Half) || __is_same(Result, Precise)) {
    if (wave.nearest16) [[likely]] {
      for (unsigned i = 0; i < group; ++i) {
        if constexpr (__is_same(Result, Half)) {
          out[i] = float_to_half(value_of(i).value);
        } else {
          out[i] = float_to_half(double_to_float_odd(value_of(i).value));
        }
      }
    } else {
      const unsigned rounding = wave.mode >> mode_bit::round16_64 & 3U;
      const bool saturate = (wave.mode >> mode_bit::fp16_ovfl & 1U) != 0;
      for (unsigned i = 0; i < group; ++i) {
        out[i] = double_to_half_slow(static_cast<double>(value_of(i).value), rounding, saturate);
      }
    }
    return true;
  } else {
    for (unsigned i = 0; i < group; ++i) out[i] = encoded(value_of(i));
    return true;
  }
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

// --- finishing

// A result that is NaN becomes the first of the sources' NaNs, quiet, or the default one. A source may be null.
template <class F>
[[gnu::noinline]] void settle_nan(typename F::Bits* out, const typename F::Bits* a, const typename F::Bits* b,
                                  const typename F::Bits* c) {
  for (unsigned i = 0; i < group; ++i) {
    if (!is_nan<F>(out[i])) continue;
    out[i] = a != nullptr && is_nan<F>(a[i])   ? quiet<F>(a[i])
             : b != nullptr && is_nan<F>(b[i]) ? quiet<F>(b[i])
             : c != nullptr && is_nan<F>(c[i]) ? quiet<F>(c[i])
                                               : default_nan<F>;
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
template <class F>
[[gnu::noinline]] void finish(const Wave& wave, const Op& op, typename F::Bits* out) {
  const unsigned omod = flushes_out<F>(wave) && !wave.ieee ? op.output & output_omod : 0;
  const bool clamp = (op.output & output_clamp) != 0;
  for (unsigned i = 0; i < group; ++i) {
    if constexpr (__is_same(F, F16)) {
      const float value = finished(half_to_float(out[i]), omod, clamp, wave.dx10_clamp);
      out[i] = double_to_half_slow(static_cast<double>(value), 0, false);
    } else {
      const auto value = __builtin_bit_cast(typename F::Float, out[i]);
      out[i] = as_bits(finished(value, omod, clamp, wave.dx10_clamp));
    }
  }
}

// --- writing

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

// Modifiers done, to where a result of this type goes.
template <class Result>
KILN_LANE void store(Wave& wave, const Op& op, unsigned half, Word mask, Raw<Result>* out) {
  if constexpr (is_float_type<Result>) {
    if (op.output != 0) [[unlikely]]
      finish<Format<Result>>(wave, op, out);
  }
  if constexpr (is_register_pair<Result>) {
    put_wide(wave, op.vdst, half, mask, out);
  } else if constexpr (is_half_register<Result>) {
    put_half(wave, op, half, mask, out);
  } else {
    put(wave, op.vdst, half, mask, out);
  }
}

}  // namespace

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
