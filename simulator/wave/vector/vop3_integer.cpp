// Integer and bit instructions that only VOP3 has.
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

using Int = std::int32_t;
using Long = std::int64_t;
using U16 = std::uint16_t;
using I16 = std::int16_t;

KILN_LANE Int signed24(Word x) { return static_cast<Int>(x << 8U) >> 8; }
KILN_LANE U16 u16(Word x) { return static_cast<U16>(x); }
template <class T>
KILN_LANE T smaller(T a, T b) {
  return a < b ? a : b;
}
template <class T>
KILN_LANE T larger(T a, T b) {
  return a > b ? a : b;
}
template <class T>
KILN_LANE T middle(T a, T b, T c) {
  return larger(smaller(a, b), smaller(larger(a, b), c));
}

KILN_LANE Word extract(Word a, Word b, Word c) {
  const Word width = c & 31U;
  return a >> (b & 31U) & ((1U << width) - 1U);
}
KILN_LANE Int extract_signed(Int a, Word b, Word c) {
  const Word width = c & 31U;
  const Word bits = static_cast<Word>(a >> (b & 31U));
  return width == 0 ? 0 : static_cast<Int>(bits << (32U - width)) >> (32U - width);
}
KILN_LANE Word byte_of(Word x, unsigned i) { return x >> 8U * i & 0xFFU; }
KILN_LANE Word distance(Word a, Word b) { return a > b ? a - b : b - a; }
KILN_LANE Word byte_distances(Word a, Word b) {
  Word total = 0;
  for (unsigned i = 0; i < 4; ++i) total += distance(byte_of(a, i), byte_of(b, i));
  return total;
}
// Bytes of `b` that are zero do not count.
KILN_LANE Word masked_distances(Word a, Word b) {
  Word total = 0;
  for (unsigned i = 0; i < 4; ++i) total += byte_of(b, i) == 0 ? 0 : distance(byte_of(a, i), byte_of(b, i));
  return total;
}
KILN_LANE Word permuted_byte(Word a, Word b, Word select) {
  const Wide bytes = static_cast<Wide>(a) << 32U | b;
  if (select < 8) return static_cast<Word>(bytes >> 8U * select) & 0xFFU;
  if (select < 12) return (bytes >> (16U * (select - 8U) + 15U) & 1U) != 0 ? 0xFFU : 0U;  // sign of a half
  return select == 12 ? 0U : 0xFFU;
}
KILN_LANE Word permuted(Word a, Word b, Word c) {
  Word result = 0;
  for (unsigned i = 0; i < 4; ++i) result |= permuted_byte(a, b, byte_of(c, i)) << 8U * i;
  return result;
}
KILN_LANE Word average(Word a, Word b, Word c) {
  Word result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    result |= (byte_of(a, i) + byte_of(b, i) + (byte_of(c, i) & 1U)) >> 1U << 8U * i;
  }
  return result;
}

template <auto Plain, auto Saturating>
Next limited(Wave& wave, const Op& op) {
  return (op.output & output_clamp) != 0 ? vector<Saturating>(wave, op) : vector<Plain>(wave, op);
}
constexpr std::uint8_t saturating_half = takes::saturation | takes::halves;
KILN_LANE Int saturated(Long x) {
  return x > 0x7FFFFFFF ? 0x7FFFFFFF : x < -0x80000000LL ? -0x7FFFFFFF - 1 : static_cast<Int>(x);
}
KILN_LANE I16 saturated16(Int x) { return static_cast<I16>(x > 0x7FFF ? 0x7FFF : x < -0x8000 ? -0x8000 : x); }
KILN_LANE U16 saturated_u16(Int x) { return static_cast<U16>(x > 0xFFFF ? 0xFFFF : x < 0 ? 0 : x); }

// Four sums of byte distances, each of a window that starts one byte later.
template <bool Masked>
Next quad_distance(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Wide a[group], c[group], out[group];
    alignas(64) Word storage[group];
    wides(wave, op, 0, half, a);
    const Word* b = words(wave, op, 1, half, storage);
    wides(wave, op, 2, half, c);
    for (unsigned i = 0; i < group; ++i) {
      out[i] = 0;
      for (unsigned window = 0; window < 4; ++window) {
        const Word bytes = static_cast<Word>(a[i] >> 8U * window);
        const Word add = static_cast<Word>(c[i] >> 16U * window) & 0xFFFFU;
        const Word total = (Masked ? masked_distances(bytes, b[i]) : byte_distances(bytes, b[i])) + add;
        out[i] |= static_cast<Wide>(total > 0xFFFFU && (op.output & output_clamp) != 0 ? 0xFFFFU : total & 0xFFFFU)
                  << 16U * window;
      }
    }
    put_wide(wave, op.vdst, half, mask, out);
  }
  return Next::go;
}

// The masked sums, each added to a word of its own.
Next wide_quad_distance(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Wide a[group];
    alignas(64) Word storage[group], out[4][group];
    wides(wave, op, 0, half, a);
    const Word* b = words(wave, op, 1, half, storage);
    for (unsigned window = 0; window < 4; ++window) {
      const Word* c = wave.row(op.reg[2] + window, half);
      for (unsigned i = 0; i < group; ++i) {
        const Word distances = masked_distances(static_cast<Word>(a[i] >> 8U * window), b[i]), total = distances + c[i];
        out[window][i] = total < distances && (op.output & output_clamp) != 0 ? ~0U : total;
      }
    }
    for (unsigned window = 0; window < 4; ++window) put(wave, op.vdst + window, half, mask, out[window]);
  }
  return Next::go;
}

constexpr Semantics entries[] = {
    lanes<[](Word a, Word b, Word c) { return static_cast<Word>(signed24(a) * static_cast<Long>(signed24(b)) + c); }>(
        "v_mad_i32_i24"),
    lanes<[](Word a, Word b, Word c) { return (a & 0xFFFFFFU) * (b & 0xFFFFFFU) + c; }>("v_mad_u32_u24"),
    lanes<[](Word a, Word b, Word c) { return extract(a, b, c); }>("v_bfe_u32"),
    lanes<[](Int a, Word b, Word c) { return extract_signed(a, b, c); }>("v_bfe_i32"),
    lanes<[](Word a, Word b, Word c) { return (a & b) | (~a & c); }>("v_bfi_b32"),
    lanes<[](Word a, Word b) { return ((1U << (a & 31U)) - 1U) << (b & 31U); }>("v_bfm_b32"),
    lanes<[](Word a, Word b, Word c) { return average(a, b, c); }>("v_lerp_u8"),
    lanes<[](Word a, Word b, Word c) { return static_cast<Word>((static_cast<Wide>(a) << 32U | b) >> (c & 31U)); }>(
        "v_alignbit_b32"),
    lanes<[](Word a, Word b, Word c) { return static_cast<Word>((static_cast<Wide>(a) << 32U | b) >> 8U * (c & 3U)); }>(
        "v_alignbyte_b32"),
    lanes<[](Int a, Int b, Int c) { return smaller(smaller(a, b), c); }>("v_min3_i32"),
    lanes<[](Word a, Word b, Word c) { return smaller(smaller(a, b), c); }>("v_min3_u32"),
    lanes<[](Int a, Int b, Int c) { return larger(larger(a, b), c); }>("v_max3_i32"),
    lanes<[](Word a, Word b, Word c) { return larger(larger(a, b), c); }>("v_max3_u32"),
    lanes<[](Int a, Int b, Int c) { return middle(a, b, c); }>("v_med3_i32"),
    lanes<[](Word a, Word b, Word c) { return middle(a, b, c); }>("v_med3_u32"),
    lanes<[](Int a, Int b, Int c) { return smaller(larger(a, b), c); }>("v_maxmin_i32"),
    lanes<[](Word a, Word b, Word c) { return smaller(larger(a, b), c); }>("v_maxmin_u32"),
    lanes<[](Int a, Int b, Int c) { return larger(smaller(a, b), c); }>("v_minmax_i32"),
    lanes<[](Word a, Word b, Word c) { return larger(smaller(a, b), c); }>("v_minmax_u32"),
    lanes<[](Word a, Word b, Word c) { return byte_distances(a, b) + c; }>("v_sad_u8"),
    lanes<[](Word a, Word b, Word c) { return (byte_distances(a, b) << 16U) + c; }>("v_sad_hi_u8"),
    lanes<[](Word a, Word b, Word c) { return distance(a & 0xFFFFU, b & 0xFFFFU) + distance(a >> 16U, b >> 16U) + c; }>(
        "v_sad_u16"),
    lanes<[](Word a, Word b, Word c) { return distance(a, b) + c; }>("v_sad_u32"),
    lanes<[](Word a, Word b, Word c) { return masked_distances(a, b) + c; }>("v_msad_u8"),
    {"v_qsad_pk_u16_u8", &quad_distance<false>, takes::saturation},
    {"v_mqsad_pk_u16_u8", &quad_distance<true>, takes::saturation},
    {"v_mqsad_u32_u8", &wide_quad_distance, takes::saturation},
    lanes<[](Word a, Word b, Word c) { return a ^ b ^ c; }>("v_xor3_b32"),
    lanes<[](Word a, Word b, Word c) { return permuted(a, b, c); }>("v_perm_b32"),
    lanes<[](Word a, Word b, Word c) { return (a ^ b) + c; }>("v_xad_u32"),
    lanes<[](Word a, Word b, Word c) { return (a << (b & 31U)) + c; }>("v_lshl_add_u32"),
    lanes<[](Word a, Word b, Word c) { return (a + b) << (c & 31U); }>("v_add_lshl_u32"),
    lanes<[](Word a, Word b, Word c) { return a + b + c; }>("v_add3_u32"),
    lanes<[](Word a, Word b, Word c) { return (a << (b & 31U)) | c; }>("v_lshl_or_b32"),
    lanes<[](Word a, Word b, Word c) { return (a & b) | c; }>("v_and_or_b32"),
    lanes<[](Word a, Word b, Word c) { return a | b | c; }>("v_or3_b32"),
    lanes<[](U16 a, U16 b, Word c) { return static_cast<Word>(a) * b + c; }>("v_mad_u32_u16"),
    lanes<[](I16 a, I16 b, Word c) { return static_cast<Word>(a * b) + c; }>("v_mad_i32_i16"),
    lanes<[](Word a, Word b) { return static_cast<Word>(__builtin_popcount(a)) + b; }>("v_bcnt_u32_b32"),
    lanes<[](Word a, Word b) { return a * b; }>("v_mul_lo_u32"),
    lanes<[](Word a, Word b) { return static_cast<Word>(static_cast<Wide>(a) * b >> 32U); }>("v_mul_hi_u32"),
    lanes<[](Int a, Int b) { return static_cast<Word>(static_cast<Wide>(static_cast<Long>(a) * b) >> 32U); }>(
        "v_mul_hi_i32"),
    {"v_add_nc_i32",
     &limited<[](Word a, Word b) { return a + b; }, [](Int a, Int b) { return saturated(static_cast<Long>(a) + b); }>,
     takes::saturation},
    {"v_sub_nc_i32",
     &limited<[](Word a, Word b) { return a - b; }, [](Int a, Int b) { return saturated(static_cast<Long>(a) - b); }>,
     takes::saturation},
    lanes<[](Word a, Wide b) { return b << (a & 63U); }>("v_lshlrev_b64"),
    lanes<[](Word a, Wide b) { return (b >> (a & 63U)); }>("v_lshrrev_b64"),
    lanes<[](Word a, Long b) { return (b >> (a & 63U)); }>("v_ashrrev_i64"),

    {"v_add_nc_u16",
     &limited<[](U16 a, U16 b) { return u16(Word{a} + b); }, [](U16 a, U16 b) { return saturated_u16(a + b); }>,
     saturating_half, 0},
    {"v_sub_nc_u16",
     &limited<[](U16 a, U16 b) { return u16(Word{a} - b); }, [](U16 a, U16 b) { return saturated_u16(a - b); }>,
     saturating_half, 0},
    {"v_add_nc_i16",
     &limited<[](U16 a, U16 b) { return u16(Word{a} + b); }, [](I16 a, I16 b) { return saturated16(a + b); }>,
     saturating_half, 0},
    {"v_sub_nc_i16",
     &limited<[](U16 a, U16 b) { return u16(Word{a} - b); }, [](I16 a, I16 b) { return saturated16(a - b); }>,
     saturating_half, 0},
    {"v_mad_u16",
     &limited<[](U16 a, U16 b, U16 c) { return u16(Word{a} * b + c); },
              [](U16 a, U16 b, U16 c) {
                const Wide total = static_cast<Wide>(a) * b + c;
                return u16(total > 0xFFFFU ? 0xFFFFU : static_cast<Word>(total));
              }>,
     saturating_half, 0},
    {"v_mad_i16",
     &limited<[](U16 a, U16 b, U16 c) { return u16(Word{a} * b + c); },
              [](I16 a, I16 b, I16 c) { return saturated16(a * b + c); }>,
     saturating_half, 0},
    lanes<[](U16 a, U16 b) { return u16(Word{a} * b); }>("v_mul_lo_u16"),
    lanes<[](U16 a, U16 b) { return larger(a, b); }>("v_max_u16"),
    lanes<[](I16 a, I16 b) { return larger(a, b); }>("v_max_i16"),
    lanes<[](U16 a, U16 b) { return smaller(a, b); }>("v_min_u16"),
    lanes<[](I16 a, I16 b) { return smaller(a, b); }>("v_min_i16"),
    lanes<[](U16 a, U16 b, U16 c) { return smaller(smaller(a, b), c); }>("v_min3_u16"),
    lanes<[](I16 a, I16 b, I16 c) { return smaller(smaller(a, b), c); }>("v_min3_i16"),
    lanes<[](U16 a, U16 b, U16 c) { return larger(larger(a, b), c); }>("v_max3_u16"),
    lanes<[](I16 a, I16 b, I16 c) { return larger(larger(a, b), c); }>("v_max3_i16"),
    lanes<[](U16 a, U16 b, U16 c) { return middle(a, b, c); }>("v_med3_u16"),
    lanes<[](I16 a, I16 b, I16 c) { return middle(a, b, c); }>("v_med3_i16"),
    lanes<[](U16 a, U16 b) { return u16(Word{b} << (a & 15U)); }>("v_lshlrev_b16"),
    lanes<[](U16 a, U16 b) { return u16(Word{b} >> (a & 15U)); }>("v_lshrrev_b16"),
    lanes<[](U16 a, I16 b) { return static_cast<I16>(b >> (a & 15U)); }>("v_ashrrev_i16"),
    lanes<[](U16 a, U16 b) { return u16(a & b); }>("v_and_b16"),
    lanes<[](U16 a, U16 b) { return u16(a | b); }>("v_or_b16"),
    lanes<[](U16 a, U16 b) { return u16(a ^ b); }>("v_xor_b16"),
};

}  // namespace

SemanticsList vop3_integer() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
