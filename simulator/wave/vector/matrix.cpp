// Products of 16 x 16 matrices, added to a third one (WMMA). A lane of the first 16 holds a row of A and a column of B;
// the others repeat them. Register r of lane l holds the element in row r * (lanes / 16) + l / 16, column l % 16 of C
// and of the result.
//
// The ISA document gives D = A * B + C and no order of the sums. Here products are added to C one after the other, each
// rounded once to f32; a 16-bit result is rounded at the end.
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

constexpr unsigned side = 16;

enum class Element : std::uint8_t { invalid = 0, f16, bf16 };

struct Place {  // of an element of C and of the result
  unsigned reg;
  unsigned lane;
};
Place place_of(const Wave& wave, unsigned row, unsigned column) {
  const unsigned rows = wave.halves * group / side;
  return {row / rows, row % rows * side + column};
}

Word word_of(Wave& wave, unsigned row, unsigned lane) { return wave.row(row, lane / group)[lane % group]; }

bool all_lanes(const Wave& wave) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) != ~0U) return false;
  }
  return true;
}
Next not_all_lanes(Wave& wave, const Op& op) {
  return refuse(wave, op, FaultKind::bad_state, "EXEC is " + hex(wave.exec64()) + ", and all lanes must be active");
}

template <Element Kind>
float number_of(Word bits) {
  return Kind == Element::f16 ? half_to_float(bits) : as_float(bits << 16U);
}
template <Element Kind>
Word rounded(float value) {
  if constexpr (Kind == Element::f16) {
    return double_to_half_slow(static_cast<double>(value), 0, false);
  } else {
    const Word bits = as_bits(value);
    if (is_nan<F32>(bits)) return quiet<F32>(bits) >> 16U;
    return (bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U;
  }
}

// A NaN is the first one of the operands, made quiet: the processor's own choice differs between compilations.
float fused(float a, float b, float c) {
  const float value = __builtin_fmaf(a, b, c);
  if (!is_nan<F32>(as_bits(value))) return value;
  for (const float operand : {a, b, c}) {
    if (is_nan<F32>(as_bits(operand))) return as_float(quiet<F32>(as_bits(operand)));
  }
  return as_float(default_nan<F32>);
}

// Of a row of A or a column of B. Even and odd elements have a negation each.
template <Element Kind>
void factors(Wave& wave, const Op& op, unsigned source, float (&out)[side][side]) {
  const bool negate[] = {(op.negate >> source & 1U) != 0, (op.absolute >> source & 1U) != 0};
  for (unsigned i = 0; i < side; ++i) {
    for (unsigned k = 0; k < side; ++k) {
      const Word pair = word_of(wave, op.reg[source] + k / 2, i);
      const float value = number_of<Kind>((k % 2 == 0 ? pair : pair >> 16U) & 0xFFFFU);
      out[i][k] = negate[k % 2] ? -value : value;
    }
  }
}

// Of C, as it lies in a register or as a constant.
Word addend(Wave& wave, const Op& op, const Place& place) {
  return op.kind[2] == SourceKind::row ? word_of(wave, op.reg[2] + place.reg, place.lane) : constant_words(op, 2)[0];
}
float with_sign(const Op& op, float value) {
  if ((op.absolute & 4U) != 0) value = __builtin_fabsf(value);
  return (op.negate & 4U) != 0 ? -value : value;
}

// `Narrow`: C and the result have the factors' type, in the half of each register that op_sel names.
template <Element Kind, bool Narrow>
Next float_matrix(Wave& wave, const Op& op) {
  if (!all_lanes(wave)) return not_all_lanes(wave, op);
  float a[side][side], b[side][side], sum[side][side];
  factors<Kind>(wave, op, 0, a);
  factors<Kind>(wave, op, 1, b);
  const unsigned shift = Narrow && (op.select & 4U) != 0 && op.kind[2] == SourceKind::row ? 16 : 0;
  const unsigned to = Narrow && (op.select & 4U) != 0 ? 16 : 0;
  for (unsigned i = 0; i < side; ++i) {
    for (unsigned j = 0; j < side; ++j) {
      const Word c = addend(wave, op, place_of(wave, i, j));
      sum[i][j] = with_sign(op, Narrow ? number_of<Kind>(c >> shift & 0xFFFFU) : as_float(c));
      for (unsigned k = 0; k < side; ++k) sum[i][j] = fused(a[i][k], b[j][k], sum[i][j]);
    }
  }
  for (unsigned i = 0; i < side; ++i) {
    for (unsigned j = 0; j < side; ++j) {
      const Place place = place_of(wave, i, j);
      Word& word = wave.row(op.vdst + place.reg, place.lane / group)[place.lane % group];
      if constexpr (Narrow) {
        word = (word & ~(0xFFFFU << to)) | rounded<Kind>(sum[i][j]) << to;
      } else {
        word = as_bits(sum[i][j]);
      }
    }
  }
  return Next::go;
}

// Fields of `Bits` bits, signed where negate says so. Clamp: the sum as a signed number.
template <unsigned Bits>
Next integer_matrix(Wave& wave, const Op& op) {
  using Int = std::int32_t;
  using Long = std::int64_t;
  if (!all_lanes(wave)) return not_all_lanes(wave, op);
  constexpr unsigned in_word = 32 / Bits;
  Int factor[2][side][side];
  for (unsigned source = 0; source < 2; ++source) {
    for (unsigned i = 0; i < side; ++i) {
      for (unsigned k = 0; k < side; ++k) {
        const Word word = word_of(wave, op.reg[source] + k / in_word, i) << (32 - Bits - k % in_word * Bits);
        factor[source][i][k] = (op.negate >> source & 1U) != 0 ? static_cast<Int>(word) >> (32 - Bits)
                                                               : static_cast<Int>(word >> (32 - Bits));
      }
    }
  }
  Word out[side][side];
  for (unsigned i = 0; i < side; ++i) {
    for (unsigned j = 0; j < side; ++j) {
      Long sum = static_cast<Int>(addend(wave, op, place_of(wave, i, j)));
      for (unsigned k = 0; k < side; ++k) sum += factor[0][i][k] * factor[1][j][k];
      constexpr Long least = -0x80000000LL, most = 0x7FFFFFFFLL;
      if ((op.output & output_clamp) != 0) sum = sum < least ? least : sum > most ? most : sum;
      out[i][j] = static_cast<Word>(sum);
    }
  }
  for (unsigned i = 0; i < side; ++i) {
    for (unsigned j = 0; j < side; ++j) {
      const Place place = place_of(wave, i, j);
      wave.row(op.vdst + place.reg, place.lane / group)[place.lane % group] = out[i][j];
    }
  }
  return Next::go;
}

constexpr std::uint8_t floats = takes::float_sources | takes::packed | takes::halves;
constexpr std::uint8_t integers = takes::float_sources | takes::packed | takes::saturation;
constexpr Semantics entries[] = {
    {"v_wmma_f32_16x16x16_f16", &float_matrix<Element::f16, false>, floats},
    {"v_wmma_f32_16x16x16_bf16", &float_matrix<Element::bf16, false>, floats},
    {"v_wmma_f16_16x16x16_f16", &float_matrix<Element::f16, true>, floats},
    {"v_wmma_bf16_16x16x16_bf16", &float_matrix<Element::bf16, true>, floats},
    {"v_wmma_i32_16x16x16_iu8", &integer_matrix<8>, integers},
    {"v_wmma_i32_16x16x16_iu4", &integer_matrix<4>, integers},
};

}  // namespace

SemanticsList matrix() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
