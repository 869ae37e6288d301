#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

using Int = std::int32_t;

KILN_LANE float legacy_product(float a, float b) { return a == 0.0F || b == 0.0F ? 0.0F : a * b; }
KILN_LANE Int signed24(Word x) { return static_cast<Int>(x << 8U) >> 8; }
KILN_LANE Word unsigned24(Word x) { return x & 0xFFFFFFU; }

// Two products of halves are added to the accumulator in order, each rounded once.
KILN_LANE float dot2(Word a, Word b, float c) {
  const float low = __builtin_fmaf(half_to_float(a & 0xFFFFU), half_to_float(b & 0xFFFFU), c);
  return __builtin_fmaf(half_to_float(a >> 16U), half_to_float(b >> 16U), low);
}

// Integer sums whose clamp saturates; the plain form is the fast one.
template <auto Plain, auto Saturating>
Next sum(Wave& wave, const Op& op) {
  return (op.output & output_clamp) != 0 ? vector<Saturating>(wave, op) : vector<Plain>(wave, op);
}

Next packed_accumulate(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word active = wave.exec(half);
    if (active == 0) continue;
    alignas(64) Word storage[2][group], out[group];
    const Word* a = words(wave, op, 0, half, storage[0]);
    const Word* b = words(wave, op, 1, half, storage[1]);
    const Word* c = wave.row(op.vdst, half);
    const ModeScope scope(wave);
    for (unsigned i = 0; i < group; ++i) {
      Word both = 0;
      for (unsigned shift = 0; shift < 32; shift += 16) {
        const double product = static_cast<double>(half_to_float(a[i] >> shift & 0xFFFFU)) *
                               static_cast<double>(half_to_float(b[i] >> shift & 0xFFFFU));
        const double total = product + static_cast<double>(half_to_float(c[i] >> shift & 0xFFFFU));
        both |= double_to_half_slow(total, wave.mode >> mode_bit::round16_64 & 3U, false) << shift;
      }
      out[i] = both;
    }
    put(wave, op.vdst, half, active, out);
  }
  return Next::go;
}

constexpr Semantics entries[] = {
    lanes<[](float a, float b) { return a + b; }>("v_add_f32"),
    lanes<[](float a, float b) { return a - b; }>("v_sub_f32"),
    lanes<[](float a, float b) { return b - a; }>("v_subrev_f32"),
    lanes<[](float a, float b) { return a * b; }>("v_mul_f32"),
    lanes<[](float a, float b) { return legacy_product(a, b); }>("v_mul_dx9_zero_f32"),
    lanes<[](float a, float b, float c) { return __builtin_fmaf(a, b, c); }>("v_fmac_f32"),
    lanes<[](float a, float b, float c) { return __builtin_fmaf(a, b, c); }>("v_fmamk_f32"),
    lanes<[](float a, float b, float c) { return __builtin_fmaf(a, b, c); }>("v_fmaak_f32"),
    lanes<[](float a, float b, float c) {
      return a == 0.0F || b == 0.0F ? 0.0F + c : __builtin_fmaf(a, b, c);
    }>("v_fmac_dx9_zero_f32"),
    lanes<[](const Wave& w, float a, float b) -> Chosen<Word> { return {minimum<F32>(as_bits(a), as_bits(b), w.ieee)}; }>(
        "v_min_f32"),
    lanes<[](const Wave& w, float a, float b) -> Chosen<Word> { return {maximum<F32>(as_bits(a), as_bits(b), w.ieee)}; }>(
        "v_max_f32"),

    lanes<[](Word a, Word b) {
      return static_cast<Word>(static_cast<std::int64_t>(signed24(a)) * signed24(b));
    }>("v_mul_i32_i24"),
    lanes<[](Word a, Word b) {
      return static_cast<Word>((static_cast<std::int64_t>(signed24(a)) * signed24(b) >> 32U));
    }>("v_mul_hi_i32_i24"),
    lanes<[](Word a, Word b) { return unsigned24(a) * unsigned24(b); }>("v_mul_u32_u24"),
    lanes<[](Word a, Word b) {
      return static_cast<Word>((static_cast<Wide>(unsigned24(a)) * unsigned24(b) >> 32U));
    }>("v_mul_hi_u32_u24"),
    lanes<[](Int a, Int b) { return a < b ? a : b; }>("v_min_i32"),
    lanes<[](Int a, Int b) { return b < a ? a : b; }>("v_max_i32"),
    lanes<[](Word a, Word b) { return a < b ? a : b; }>("v_min_u32"),
    lanes<[](Word a, Word b) { return b < a ? a : b; }>("v_max_u32"),
    lanes<[](Word a, Word b) { return b << (a & 31U); }>("v_lshlrev_b32"),
    lanes<[](Word a, Word b) { return (b >> (a & 31U)); }>("v_lshrrev_b32"),
    lanes<[](Word a, Int b) { return (b >> (a & 31U)); }>("v_ashrrev_i32"),
    lanes<[](Word a, Word b) { return a & b; }>("v_and_b32"),
    lanes<[](Word a, Word b) { return a | b; }>("v_or_b32"),
    lanes<[](Word a, Word b) { return a ^ b; }>("v_xor_b32"),
    lanes<[](Word a, Word b) { return ~(a ^ b); }>("v_xnor_b32"),
    {"v_add_nc_u32",
     &sum<[](Word a, Word b) { return a + b; }, [](Word a, Word b) { return a + b < a ? ~0U : a + b; }>,
     takes::saturation, 0},
    {"v_sub_nc_u32", &sum<[](Word a, Word b) { return a - b; }, [](Word a, Word b) { return a < b ? 0U : a - b; }>,
     takes::saturation, 0},
    {"v_subrev_nc_u32", &sum<[](Word a, Word b) { return b - a; }, [](Word a, Word b) { return b < a ? 0U : b - a; }>,
     takes::saturation, 0},

    lanes<[](Half a, Half b) { return Half{a.value + b.value}; }>("v_add_f16"),
    lanes<[](Half a, Half b) { return Half{a.value - b.value}; }>("v_sub_f16"),
    lanes<[](Half a, Half b) { return Half{b.value - a.value}; }>("v_subrev_f16"),
    lanes<[](Half a, Half b) { return Half{a.value * b.value}; }>("v_mul_f16"),
    lanes<[](Half a, Half b, Half c) -> Precise {
      return {static_cast<double>(a.value) * static_cast<double>(b.value) + static_cast<double>(c.value)};
    }>("v_fmac_f16"),
    lanes<[](Half a, Half b, Half c) -> Precise {
      return {static_cast<double>(a.value) * static_cast<double>(b.value) + static_cast<double>(c.value)};
    }>("v_fmamk_f16"),
    lanes<[](Half a, Half b, Half c) -> Precise {
      return {static_cast<double>(a.value) * static_cast<double>(b.value) + static_cast<double>(c.value)};
    }>("v_fmaak_f16"),
    lanes<[](const Wave& w, HalfBits a, HalfBits b) -> Chosen<std::uint16_t> {
      return {static_cast<std::uint16_t>(maximum<F16>(a.bits, b.bits, w.ieee))};
    }>("v_max_f16"),
    lanes<[](const Wave& w, HalfBits a, HalfBits b) -> Chosen<std::uint16_t> {
      return {static_cast<std::uint16_t>(minimum<F16>(a.bits, b.bits, w.ieee))};
    }>("v_min_f16"),
    lanes<[](Half a, std::int16_t b) -> Precise {
      return {__builtin_scalbn(static_cast<double>(a.value), b > 64 ? 64 : b < -64 ? -64 : b)};
    }>("v_ldexp_f16"),
    {"v_pk_fmac_f16", &packed_accumulate, takes::nothing, 0},
    lanes<[](Word a, Word b, float c) { return dot2(a, b, c); }>("v_dot2acc_f32_f16"),
};

}  // namespace

SemanticsList vop2() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
