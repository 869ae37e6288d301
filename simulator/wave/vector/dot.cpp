// Dot products of the fields of two registers, added to a third.
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
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

constexpr Semantics entries[] = {
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

SemanticsList dot() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
