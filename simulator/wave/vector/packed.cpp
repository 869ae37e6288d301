// Packed instructions: one operation on both halves of a register, each half of the result choosing its sources'
// halves.

#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

using Int = std::int32_t;
using Long = std::int64_t;
using U16 = std::uint16_t;
using I16 = std::int16_t;

template <auto Body>
[[gnu::noinline]] void packed_half(const Wave& wave, const Op& op, const Word* (&in)[most_sources], unsigned high,
                                   Word* out) {
  using Result = ResultOf<Body>;
  constexpr bool is_float = is_float_type<Argument<Body, 0>>;
  alignas(64) Word storage[most_sources][group] = {};
  for (unsigned s = 0; s < sources_of<Body>; ++s) {
    packed_half_words(op, s, high, in[s], storage[s], is_float);
    if (is_float && flushes_in<F16>(wave)) flush<F16>(storage[s]);
  }
  const Word *a = storage[0], *b = storage[1], *c = storage[2];
  const auto value_of = [&](unsigned i) __attribute__((always_inline)) { return lane<Body>(wave, a, b, c, i); };
  compute<Result>(wave, value_of, out);
  if constexpr (is_float) {
    if constexpr (!is_chosen<Result>) settle<Body>(out, a, b, c);
    if (flushes_out<F16>(wave)) flush<F16>(out);
    if (op.output != 0) finish<F16>(wave, op, out);
  }
}

// One half of a wave of 64, or all of one of 32.
template <auto Body>
[[gnu::noinline]] void packed_part(Wave& wave, const Op& op, unsigned half) {
  alignas(64) Word storage[most_sources][group], low[group], high[group];
  const Word* in[most_sources] = {};
  for (unsigned s = 0; s < sources_of<Body>; ++s) in[s] = words(wave, op, s, half, storage[s]);
  {
    const ModeScope scope(wave);
    packed_half<Body>(wave, op, in, 0, low);
    packed_half<Body>(wave, op, in, 1, high);
  }
  for (unsigned i = 0; i < group; ++i) low[i] |= high[i] << 16U;
  put(wave, op.vdst, half, wave.exec(half), low);
}

template <auto Body>
Next packed(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) != 0) packed_part<Body>(wave, op, half);
  }
  return Next::go;
}

enum class PackedFloat : std::uint8_t { sum, product, multiply_add };

#if defined(__AVX2__)
// Both halves of a source as the instruction chooses them, signs done.
KILN_LANE const Word* chosen_halves(const Op& op, unsigned source, const Word* in, Word* out) {
  const unsigned low = (op.select >> source & 1U) * 16U, high = (op.select_high >> source & 1U) * 16U;
  const Word flip =
      ((op.negate >> source & 1U) != 0 ? 0x8000U : 0U) | ((op.absolute >> source & 1U) != 0 ? 0x80000000U : 0U);
  if (low == 0 && high == 16 && flip == 0) return in;
  for (unsigned i = 0; i < group; ++i) out[i] = ((in[i] >> low & 0xFFFFU) | in[i] >> high << 16U) ^ flip;
  return out;
}

KILN_LANE __m256 eight_halves(const Word* words) {
  return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(words)));
}

// a * b + c, rounded to odd: a second rounding to f16 then gives what one rounding gives. The product is exact.
KILN_LANE __m256 multiply_add_odd(__m256 a, __m256 b, __m256 c) {
  const __m256 product = _mm256_mul_ps(a, b), sum = _mm256_add_ps(product, c);
  const __m256 of_c = _mm256_sub_ps(sum, product), of_product = _mm256_sub_ps(sum, of_c);
  const __m256 lost = _mm256_add_ps(_mm256_sub_ps(product, of_product), _mm256_sub_ps(c, of_c));
  const __m256i bits = _mm256_castps_si256(sum), one = _mm256_set1_epi32(1);
  // Where the sum is even and something was lost: one step towards what was.
  const __m256i inexact = _mm256_castps_si256(_mm256_cmp_ps(lost, _mm256_setzero_ps(), _CMP_NEQ_OQ));
  const __m256i even = _mm256_cmpeq_epi32(_mm256_and_si256(bits, one), _mm256_setzero_si256());
  const __m256i apart = _mm256_srai_epi32(_mm256_xor_si256(bits, _mm256_castps_si256(lost)), 31);
  const __m256i step = _mm256_or_si256(apart, one);  // 1 away from zero, -1 towards it
  return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_and_si256(step, _mm256_and_si256(inexact, even))));
}

// All halves at once, by the processor's own conversions. False: a result may be a NaN, or the mode is another than
// rounding to nearest with denormals kept; nothing has been written of this half then.
template <PackedFloat Which>
KILN_LANE bool quick_packed(Wave& wave, const Op& op, unsigned half) {
  constexpr Word roundings = 0xFU, denormals_of_halves = 0xC0U;
  constexpr unsigned sources = Which == PackedFloat::multiply_add ? 3 : 2;
  const bool plain = wave.nearest16 && (wave.mode & roundings) == 0 &&
                     (wave.mode & denormals_of_halves) == denormals_of_halves && op.output == 0;
  if (!plain) return false;
  alignas(64) Word storage[most_sources][group], chosen[most_sources][group], out[group];
  const Word* in[most_sources] = {};
  for (unsigned s = 0; s < sources; ++s) {
    in[s] = chosen_halves(op, s, words(wave, op, s, half, storage[s]), chosen[s]);
  }
  __m256 unordered = _mm256_setzero_ps();
  for (unsigned i = 0; i < group; i += 4) {
    const __m256 a = eight_halves(in[0] + i), b = eight_halves(in[1] + i);
    __m256 result;
    if constexpr (Which == PackedFloat::sum) {
      result = _mm256_add_ps(a, b);
    } else if constexpr (Which == PackedFloat::product) {
      result = _mm256_mul_ps(a, b);
    } else {
      result = multiply_add_odd(a, b, eight_halves(in[2] + i));
    }
    unordered = _mm256_or_ps(unordered, _mm256_cmp_ps(result, result, _CMP_UNORD_Q));
    _mm_store_si128(reinterpret_cast<__m128i*>(out + i),
                    _mm256_cvtps_ph(result, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  if (_mm256_movemask_ps(unordered) != 0) return false;
  put(wave, op.vdst, half, wave.exec(half), out);
  return true;
}
#else
template <PackedFloat Which>
KILN_LANE bool quick_packed(Wave&, const Op&, unsigned) {
  return false;
}
#endif

template <PackedFloat Which, auto Body>
Next packed_float(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) != 0 && !quick_packed<Which>(wave, op, half)) packed_part<Body>(wave, op, half);
  }
  return Next::go;
}

template <auto Plain, auto Saturating>
Next packed_limited(Wave& wave, const Op& op) {
  return (op.output & output_clamp) != 0 ? packed<Saturating>(wave, op) : packed<Plain>(wave, op);
}

template <auto Body>
constexpr Semantics pk(const char* name) {
  return {name, &packed<Body>, is_float_type<Argument<Body, 0>> ? packed_floats : packed_words, 0};
}
template <auto Plain, auto Saturating>
constexpr Semantics pk(const char* name) {
  return {name, &packed_limited<Plain, Saturating>, packed_words | takes::saturation};
}

template <PackedFloat Which, auto Body>
constexpr Semantics pk_float(const char* name) {
  return {name, &packed_float<Which, Body>, packed_floats, 0};
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

constexpr auto half_multiply_add = [](Half a, Half b, Half c) -> Precise {
  return {static_cast<double>(a.value) * static_cast<double>(b.value) + static_cast<double>(c.value)};
};

// v_pk_fma_f16 with its destination as source 2; its encoding chooses no halves.
Next packed_accumulate(Wave& wave, const Op& op) {
  Op straight = op;
  straight.select_high = 7;
  return packed_float<PackedFloat::multiply_add, half_multiply_add>(wave, straight);
}

constexpr Semantics vop3p_entries[] = {
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
    pk_float<PackedFloat::multiply_add, half_multiply_add>("v_pk_fma_f16"),
    {"v_pk_fmac_f16", &packed_accumulate},
    pk_float<PackedFloat::sum, [](Half a, Half b) { return Half{a.value + b.value}; }>("v_pk_add_f16"),
    pk_float<PackedFloat::product, [](Half a, Half b) { return Half{a.value * b.value}; }>("v_pk_mul_f16"),
    pk<[](const Wave& w, HalfBits a, HalfBits b) -> Chosen<U16> {
      return {static_cast<U16>(minimum<F16>(a.bits, b.bits, w.ieee))};
    }>("v_pk_min_f16"),
    pk<[](const Wave& w, HalfBits a, HalfBits b) -> Chosen<U16> {
      return {static_cast<U16>(maximum<F16>(a.bits, b.bits, w.ieee))};
    }>("v_pk_max_f16"),
};

}  // namespace

SemanticsList vop3p() noexcept { return list_of(vop3p_entries); }

// Multiply-adds that mix f16 with f32, one source at a time.

namespace {

// A source is a whole f32, or where op_sel_hi says so an f16 in the half that op_sel chooses.
const Word* mixed(Wave& wave, const Op& op, unsigned source, unsigned half, Word* storage) {
  const Word* in = words(wave, op, source, half, storage);
  if ((op.select_high >> source & 1U) != 0) {
    const unsigned shift = (op.select >> source & 1U) * 16U;
    for (unsigned i = 0; i < group; ++i) storage[i] = as_bits(half_to_float(in[i] >> shift & 0xFFFFU));
    in = storage;
  }
  return modified<F32>(op, source, in, storage);
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
    for (unsigned i = 0; i < group; ++i)
      out[i] = as_bits(__builtin_fmaf(as_float(a[i]), as_float(b[i]), as_float(c[i])));
    settle_nan<F32>(out, a, b, c);
    if (op.detail == to_single) {
      store<float>(wave, op, half, mask, out);
      continue;
    }
    const unsigned rounding = wave.mode >> mode_bit::round16_64 & 3U;
    if ((wave.mode & 0xFU) == 0) {  // to nearest, both f16 and the f32 that float_to_half() computes with
      for (unsigned i = 0; i < group; ++i) out[i] = float_to_half(as_float(out[i]));
    } else {
      for (unsigned i = 0; i < group; ++i) {
        out[i] = double_to_half_slow(static_cast<double>(as_float(out[i])), rounding, false);
      }
    }
    Op where = op;
    where.select = op.detail == to_high_half ? 8 : 0;
    store<Half>(wave, where, half, mask, out);
  }
  return Next::go;
}

constexpr Semantics mix_entries[] = {
    {"v_fma_mix_f32", &fma_mix, packed_floats, to_single},
    {"v_fma_mixlo_f16", &fma_mix, packed_floats, to_low_half},
    {"v_fma_mixhi_f16", &fma_mix, packed_floats, to_high_half},
};

}  // namespace

SemanticsList mix() noexcept { return list_of(mix_entries); }

// Dot products of the fields of two registers, added to a third.

namespace {

using Int = std::int32_t;
using Long = std::int64_t;

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

// Where the fields are halves, op_sel chooses each of them.
template <unsigned Bits>
const Word* fields(Wave& wave, const Op& op, unsigned source, unsigned half, Word* storage) {
  const Word* in = words(wave, op, source, half, storage);
  if constexpr (Bits == 16) {
    alignas(64) Word low[group], high[group];
    packed_half_words(op, source, 0, in, low, false);
    packed_half_words(op, source, 1, in, high, false);
    for (unsigned i = 0; i < group; ++i) storage[i] = low[i] | high[i] << 16U;
    return storage;
  } else {
    return in;
  }
}

template <unsigned Bits>
Next integer_dot(Wave& wave, const Op& op) {
  const bool a_signed = op.detail == signed_fields || (op.detail == fields_by_negate && (op.negate & 1U) != 0);
  const bool b_signed = op.detail == signed_fields || (op.detail == fields_by_negate && (op.negate & 2U) != 0);
  const bool is_signed = op.detail != unsigned_fields;
  const bool clamp = (op.output & output_clamp) != 0;
  const Long low = is_signed ? -0x80000000LL : 0, high = is_signed ? 0x7FFFFFFFLL : 0xFFFFFFFFLL;
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Word storage[most_sources][group], out[group];
    const Word* a = fields<Bits>(wave, op, 0, half, storage[0]);
    const Word* b = fields<Bits>(wave, op, 1, half, storage[1]);
    const Word* c = words(wave, op, 2, half, storage[2]);
    for (unsigned i = 0; i < group; ++i) {
      Long total = dot<Bits>(a[i], b[i], a_signed, b_signed) +
                   (is_signed ? static_cast<Long>(static_cast<Int>(c[i])) : static_cast<Long>(c[i]));
      if (clamp) total = total < low ? low : total > high ? high : total;
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
      packed_half_words(op, s, 0, in, x[2 * s], true);
      packed_half_words(op, s, 1, in, x[2 * s + 1], true);
    }
    const Word* c = words(wave, op, 2, half, storage[2]);
    const Word flip = (op.negate & 4U) != 0 ? 0x80000000U : 0U;
    for (unsigned i = 0; i < group; ++i) {
      float v[4];
      for (unsigned k = 0; k < 4; ++k)
        v[k] = op.detail == of_bfloat ? as_float(x[k][i] << 16U) : half_to_float(x[k][i]);
      const float low = __builtin_fmaf(v[0], v[2], as_float(c[i] ^ flip));
      out[i] = as_bits(__builtin_fmaf(v[1], v[3], low));
    }
    settle_nan<F32>(out, c, nullptr, nullptr);
    store<float>(wave, op, half, mask, out);
  }
  return Next::go;
}

constexpr Semantics dot_entries[] = {
    {"v_dot2_f32_f16", &float_dot, packed_floats, of_half},
    {"v_dot2_f32_bf16", &float_dot, packed_floats, of_bfloat},
    lanes<[](Word a, Word b, float c) {
      const float low = __builtin_fmaf(as_float(a << 16U), as_float(b << 16U), c);
      return __builtin_fmaf(as_float(a & 0xFFFF0000U), as_float(b & 0xFFFF0000U), low);
    }>("v_dot2acc_f32_bf16"),
    {"v_dot4_i32_iu8", &integer_dot<8>, packed_words | takes::float_sources | takes::saturation, fields_by_negate},
    {"v_dot4_i32_i8", &integer_dot<8>, packed_words | takes::saturation, signed_fields},
    {"v_dot4_u32_u8", &integer_dot<8>, packed_words | takes::saturation, unsigned_fields},
    {"v_dot8_i32_iu4", &integer_dot<4>, packed_words | takes::float_sources | takes::saturation, fields_by_negate},
    {"v_dot8_i32_i4", &integer_dot<4>, packed_words | takes::saturation, signed_fields},
    {"v_dot8_u32_u4", &integer_dot<4>, packed_words | takes::saturation, unsigned_fields},
    {"v_dot4c_i32_i8", &integer_dot<8>, takes::nothing, signed_fields},
    {"v_dot2_i32_i16", &integer_dot<16>, packed_words | takes::saturation, signed_fields},
    {"v_dot2_u32_u16", &integer_dot<16>, packed_words | takes::saturation, unsigned_fields},
};

}  // namespace

SemanticsList dot() noexcept { return list_of(dot_entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
