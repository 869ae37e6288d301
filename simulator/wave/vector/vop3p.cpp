// Packed instructions: one operation on both halves of a register, each half of the result choosing its sources' halves;
// dot products; and multiply-adds that mix f16 with f32.
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

using Int = std::int32_t;
using Long = std::int64_t;
using U16 = std::uint16_t;
using I16 = std::int16_t;

constexpr unsigned most_sources = 3;

// One half of each lane of a source, for the low (0) or the high (1) half of the result.
void element(const Op& op, unsigned source, unsigned high, const Word* in, Word* out, bool is_float) {
  const unsigned chosen = (high != 0 ? op.select_high : op.select) >> source & 1U;
  const unsigned shift = chosen * 16U;
  const Word flip = is_float && ((high != 0 ? op.absolute : op.negate) >> source & 1U) != 0 ? 0x8000U : 0U;
  for (unsigned i = 0; i < group; ++i) out[i] = (in[i] >> shift & 0xFFFFU) ^ flip;
}

template <auto Body>
[[gnu::noinline]] void packed_half(const Wave& wave, const Op& op, const Word* (&in)[most_sources], unsigned high,
                                   Word* out) {
  using Result = typename SignatureOf<Body>::Result;
  using T0 = typename ArgumentOr<Body, 0>::type;
  constexpr unsigned n = SignatureOf<Body>::sources;
  constexpr bool is_float = __is_same(T0, Half) || __is_same(T0, HalfBits);
  alignas(64) Word storage[most_sources][group] = {};
  for (unsigned s = 0; s < n; ++s) {
    element(op, s, high, in[s], storage[s], is_float);
    if (is_float && wave.flush_in16) {
      for (unsigned i = 0; i < group; ++i) storage[s][i] = flushed_half(storage[s][i]);
    }
  }
  const Word *a = storage[0], *b = storage[1], *c = storage[2];
  if constexpr (__is_same(Result, Half) || __is_same(Result, Precise)) {
    if (wave.nearest16) {
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
    settle_nan_half(out, a, n > 1 ? b : nullptr, n > 2 ? c : nullptr);
  } else if constexpr (__is_same(Result, Chosen<U16>)) {
    for (unsigned i = 0; i < group; ++i) out[i] = lane<Body>(wave, a, b, c, i).bits;
  } else {
    for (unsigned i = 0; i < group; ++i) out[i] = static_cast<U16>(lane<Body>(wave, a, b, c, i));
  }
  if constexpr (is_float) {
    if (wave.flush_out16) {
      for (unsigned i = 0; i < group; ++i) out[i] = flushed_half(out[i]);
    }
    if (op.output != 0) finish_half(wave, op, out);
  }
}

template <auto Body>
Next packed(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Word storage[most_sources][group], low[group], high[group];
    const Word* in[most_sources] = {};
    for (unsigned s = 0; s < SignatureOf<Body>::sources; ++s) in[s] = words(wave, op, s, half, storage[s]);
    {
      const ModeScope scope(wave);
      packed_half<Body>(wave, op, in, 0, low);
      packed_half<Body>(wave, op, in, 1, high);
    }
    for (unsigned i = 0; i < group; ++i) low[i] |= high[i] << 16U;
    put(wave, op.vdst, half, mask, low);
  }
  return Next::go;
}
template <auto Plain, auto Saturating>
Next packed_limited(Wave& wave, const Op& op) {
  return (op.output & output_clamp) != 0 ? packed<Saturating>(wave, op) : packed<Plain>(wave, op);
}

constexpr std::uint8_t whole = takes::packed | takes::halves;
constexpr std::uint8_t whole_float = whole | takes::float_sources | takes::float_result;
template <auto Body>
constexpr Semantics pk(const char* name) {
  using T0 = Argument<Body, 0>;
  return {name, &packed<Body>, __is_same(T0, Half) || __is_same(T0, HalfBits) ? whole_float : whole, 0};
}
template <auto Plain, auto Saturating>
constexpr Semantics pk(const char* name) {
  return {name, &packed_limited<Plain, Saturating>, whole | takes::saturation, 0};
}

KILN_LANE I16 limited(Int x) { return static_cast<I16>(x > 0x7FFF ? 0x7FFF : x < -0x8000 ? -0x8000 : x); }
KILN_LANE U16 limited_unsigned(Long x) { return static_cast<U16>(x > 0xFFFF ? 0xFFFF : x < 0 ? 0 : x); }
template <class T>
KILN_LANE T smaller(T a, T b) {
  return a < b ? a : b;
}
template <class T>
KILN_LANE T larger(T a, T b) {
  return a > b ? a : b;
}

// Products of `Bits`-wide fields, added to source 2. Signedness by the negate bits where the instruction says so.
template <unsigned Bits>
KILN_LANE Long dot(Word a, Word b, bool a_signed, bool b_signed) {
  Long total = 0;
  for (unsigned at = 0; at < 32; at += Bits) {
    const Word x = a << (32U - Bits - at), y = b << (32U - Bits - at);
    const Long p = a_signed ? static_cast<Int>(x) >> (32U - Bits) : static_cast<Long>(x >> (32U - Bits));
    const Long q = b_signed ? static_cast<Int>(y) >> (32U - Bits) : static_cast<Long>(y >> (32U - Bits));
    total += p * q;
  }
  return total;
}
enum : std::uint8_t { unsigned_fields = 0, signed_fields = 1, fields_by_negate = 2 };

template <unsigned Bits>
Next integer_dot(Wave& wave, const Op& op) {
  const bool a_signed = op.detail == signed_fields || (op.detail == fields_by_negate && (op.negate & 1U) != 0);
  const bool b_signed = op.detail == signed_fields || (op.detail == fields_by_negate && (op.negate & 2U) != 0);
  const bool is_signed = op.detail != unsigned_fields;
  const bool clamp = (op.output & output_clamp) != 0;
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Word storage[most_sources][group], out[group];
    const Word* a = words(wave, op, 0, half, storage[0]);
    const Word* b = words(wave, op, 1, half, storage[1]);
    const Word* c = words(wave, op, 2, half, storage[2]);
    for (unsigned i = 0; i < group; ++i) {
      Long total = dot<Bits>(a[i], b[i], a_signed, b_signed) +
                   (is_signed ? static_cast<Long>(static_cast<Int>(c[i])) : static_cast<Long>(c[i]));
      if (clamp) {
        const Long low = is_signed ? -0x80000000LL : 0, high = is_signed ? 0x7FFFFFFFLL : 0xFFFFFFFFLL;
        total = total < low ? low : total > high ? high : total;
      }
      out[i] = static_cast<Word>(total);
    }
    put(wave, op.vdst, half, mask, out);
  }
  return Next::go;
}

// Two products of 16-bit floats are added to source 2, the low halves' first.
enum : std::uint8_t { of_half = 0, of_bfloat = 1 };
Next float_dot(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Word storage[most_sources][group], x[4][group], out[group];
    for (unsigned s = 0; s < 2; ++s) {
      const Word* in = words(wave, op, s, half, storage[s]);
      element(op, s, 0, in, x[2 * s], true);
      element(op, s, 1, in, x[2 * s + 1], true);
    }
    const Word* c = words(wave, op, 2, half, storage[2]);
    const Word flip = (op.negate & 4U) != 0 ? 0x80000000U : 0U;
    for (unsigned i = 0; i < group; ++i) {
      float v[4];
      for (unsigned k = 0; k < 4; ++k) v[k] = op.detail == of_bfloat ? as_float(x[k][i] << 16U) : half_to_float(x[k][i]);
      const float low = __builtin_fmaf(v[0], v[2], as_float(c[i] ^ flip));
      out[i] = as_bits(__builtin_fmaf(v[1], v[3], low));
      out[i] = is_nan(out[i]) ? is_nan(c[i]) ? quiet(c[i]) : default_nan : out[i];
    }
    if (op.output != 0) finish(wave, op, out);
    put(wave, op.vdst, half, mask, out);
  }
  return Next::go;
}

// A source is a whole f32, or where op_sel_hi says so an f16 in the half that op_sel chooses.
const Word* mixed(Wave& wave, const Op& op, unsigned source, unsigned half, Word* storage) {
  const Word* in = words(wave, op, source, half, storage);
  const Word keep = (op.absolute >> source & 1U) != 0 ? 0x7FFFFFFFU : ~0U;
  const Word flip = (op.negate >> source & 1U) != 0 ? 0x80000000U : 0U;
  if ((op.select_high >> source & 1U) != 0) {
    const unsigned shift = (op.select >> source & 1U) * 16U;
    for (unsigned i = 0; i < group; ++i) storage[i] = as_bits(half_to_float(in[i] >> shift & 0xFFFFU));
    in = storage;
  }
  for (unsigned i = 0; i < group; ++i) storage[i] = (in[i] & keep) ^ flip;
  return storage;
}

enum : std::uint8_t { to_single = 0, to_low_half = 1, to_high_half = 2 };
Next fma_mix(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Word storage[most_sources][group], out[group];
    const Word* a = mixed(wave, op, 0, half, storage[0]);
    const Word* b = mixed(wave, op, 1, half, storage[1]);
    const Word* c = mixed(wave, op, 2, half, storage[2]);
    for (unsigned i = 0; i < group; ++i) out[i] = as_bits(__builtin_fmaf(as_float(a[i]), as_float(b[i]), as_float(c[i])));
    settle_nan(out, a, b, c);
    if (op.detail == to_single) {
      if (op.output != 0) finish(wave, op, out);
      put(wave, op.vdst, half, mask, out);
      continue;
    }
    const unsigned rounding = wave.mode >> mode_bit::round16_64 & 3U;
    for (unsigned i = 0; i < group; ++i) {
      out[i] = double_to_half_slow(static_cast<double>(as_float(out[i])), rounding, false);
    }
    if (op.output != 0) finish_half(wave, op, out);
    Op where = op;
    where.select = op.detail == to_high_half ? 8 : 0;
    put_half(wave, where, half, mask, out);
  }
  return Next::go;
}

// The wider sum of halves.
template <bool Signed>
Next half_dot(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Word storage[most_sources][group], x[4][group], out[group];
    for (unsigned s = 0; s < 2; ++s) {
      const Word* in = words(wave, op, s, half, storage[s]);
      element(op, s, 0, in, x[2 * s], false);
      element(op, s, 1, in, x[2 * s + 1], false);
    }
    const Word* c = words(wave, op, 2, half, storage[2]);
    for (unsigned i = 0; i < group; ++i) {
      const auto value = [&](unsigned k) {
        return Signed ? static_cast<Long>(static_cast<I16>(x[k][i])) : static_cast<Long>(x[k][i]);
      };
      const Long start = Signed ? static_cast<Long>(static_cast<Int>(c[i])) : static_cast<Long>(c[i]);
      Long total = start + value(0) * value(2) + value(1) * value(3);
      if ((op.output & output_clamp) != 0) {
        const Long low = Signed ? -0x80000000LL : 0, high = Signed ? 0x7FFFFFFFLL : 0xFFFFFFFFLL;
        total = total < low ? low : total > high ? high : total;
      }
      out[i] = static_cast<Word>(total);
    }
    put(wave, op.vdst, half, mask, out);
  }
  return Next::go;
}

constexpr Semantics entries[] = {
    pk<[](U16 a, U16 b, U16 c) { return static_cast<U16>(Word{a} * b + c); },
       [](I16 a, I16 b, I16 c) { return limited(a * b + c); }>("v_pk_mad_i16"),
    pk<[](U16 a, U16 b, U16 c) { return static_cast<U16>(Word{a} * b + c); },
       [](U16 a, U16 b, U16 c) { return limited_unsigned(static_cast<Long>(a) * b + c); }>("v_pk_mad_u16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(Word{a} * b); }>("v_pk_mul_lo_u16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(a + b); }, [](I16 a, I16 b) { return limited(a + b); }>(
        "v_pk_add_i16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(a - b); }, [](I16 a, I16 b) { return limited(a - b); }>(
        "v_pk_sub_i16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(a + b); }, [](U16 a, U16 b) { return limited_unsigned(a + b); }>(
        "v_pk_add_u16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(a - b); }, [](U16 a, U16 b) { return limited_unsigned(a - b); }>(
        "v_pk_sub_u16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(Word{b} << (a & 15U)); }>("v_pk_lshlrev_b16"),
    pk<[](U16 a, U16 b) { return static_cast<U16>(b >> (a & 15U)); }>("v_pk_lshrrev_b16"),
    pk<[](U16 a, I16 b) { return static_cast<I16>(b >> (a & 15U)); }>("v_pk_ashrrev_i16"),
    pk<[](I16 a, I16 b) { return larger(a, b); }>("v_pk_max_i16"),
    pk<[](I16 a, I16 b) { return smaller(a, b); }>("v_pk_min_i16"),
    pk<[](U16 a, U16 b) { return larger(a, b); }>("v_pk_max_u16"),
    pk<[](U16 a, U16 b) { return smaller(a, b); }>("v_pk_min_u16"),
    pk<[](Half a, Half b, Half c) -> Precise {
      return {static_cast<double>(a.value) * static_cast<double>(b.value) + static_cast<double>(c.value)};
    }>("v_pk_fma_f16"),
    pk<[](Half a, Half b) { return Half{a.value + b.value}; }>("v_pk_add_f16"),
    pk<[](Half a, Half b) { return Half{a.value * b.value}; }>("v_pk_mul_f16"),
    pk<[](const Wave& w, HalfBits a, HalfBits b) -> Chosen<U16> {
      return {static_cast<U16>(minimum_half(a.bits, b.bits, w.ieee))};
    }>("v_pk_min_f16"),
    pk<[](const Wave& w, HalfBits a, HalfBits b) -> Chosen<U16> {
      return {static_cast<U16>(maximum_half(a.bits, b.bits, w.ieee))};
    }>("v_pk_max_f16"),
    {"v_dot2_f32_f16", &float_dot, whole_float, of_half},
    {"v_dot2_f32_bf16", &float_dot, whole_float, of_bfloat},
    {"v_dot4_i32_iu8", &integer_dot<8>, whole | takes::float_sources | takes::saturation, fields_by_negate},
    {"v_dot4_i32_i8", &integer_dot<8>, whole | takes::saturation, signed_fields},
    {"v_dot4_u32_u8", &integer_dot<8>, whole | takes::saturation, unsigned_fields},
    {"v_dot8_i32_iu4", &integer_dot<4>, whole | takes::float_sources | takes::saturation, fields_by_negate},
    {"v_dot8_i32_i4", &integer_dot<4>, whole | takes::saturation, signed_fields},
    {"v_dot8_u32_u4", &integer_dot<4>, whole | takes::saturation, unsigned_fields},
    {"v_dot4c_i32_i8", &integer_dot<8>, takes::nothing, signed_fields},
    {"v_dot2_i32_i16", &half_dot<true>, whole | takes::saturation, 0},
    {"v_dot2_u32_u16", &half_dot<false>, whole | takes::saturation, 0},
    {"v_fma_mix_f32", &fma_mix, whole_float, to_single},
    {"v_fma_mixlo_f16", &fma_mix, whole_float, to_low_half},
    {"v_fma_mixhi_f16", &fma_mix, whole_float, to_high_half},
};

}  // namespace

SemanticsList vop3p() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
