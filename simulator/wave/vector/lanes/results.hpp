// Results of vector instructions: computed for 32 lanes, their NaNs and denormals as AMD has them, output modifiers
// done, and written where a mask says.
//
// Compiled once for each instruction set, see formats.hpp. Thread-safety: as Wave's. Ownership: none of its own.
#pragma once

#include <immintrin.h>

#include "simulator/wave/vector/lanes/sources.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
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
    if (op.output != 0) [[unlikely]] finish<Format<Result>>(wave, op, out);
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
