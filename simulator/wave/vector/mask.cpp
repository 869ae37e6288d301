// Instructions that read or write a mask of lanes beside their numbers: selects, sums with carry, lane counts.
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

Word mask_source(const Wave& wave, const Op& op, unsigned half) {
  if (op.kind[2] == SourceKind::scalar) return wave.scalar[op.reg[2] + half];
  return constant_words(op, 2)[half * group];
}

Next select(Wave& wave, const Op& op) {
  const Word chosen[2] = {mask_source(wave, op, 0), wave.halves == 2 ? mask_source(wave, op, 1) : 0};
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Word storage[2][group], out[group];
    const Word* a = lanes_of<float>(wave, op, 0, half, storage[0]);
    const Word* b = lanes_of<float>(wave, op, 1, half, storage[1]);
    const Word bits = chosen[half];
    for (unsigned i = 0; i < group; ++i) out[i] = (bits >> i & 1U) != 0 ? b[i] : a[i];
    store<float>(wave, op, half, mask, out);
  }
  return Next::go;
}

Next select_half(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Word storage[2][group], out[group];
    const Word* a = half_words(wave, op, 0, half, storage[0], true);
    const Word* b = half_words(wave, op, 1, half, storage[1], true);
    const Word bits = mask_source(wave, op, half);
    for (unsigned i = 0; i < group; ++i) out[i] = (bits >> i & 1U) != 0 ? b[i] : a[i];
    put_half(wave, op, half, mask, out);
  }
  return Next::go;
}

enum : std::uint8_t { add = 0, subtract = 1, subtract_reversed = 2, with_carry = 4 };

template <std::uint8_t Kind>
Next carrying(Wave& wave, const Op& op) {
  Word carries[2] = {0, 0};
  const bool clamp = (op.output & output_clamp) != 0;
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    alignas(64) Word storage[2][group], out[group];
    const Word* a = words(wave, op, 0, half, storage[0]);
    const Word* b = words(wave, op, 1, half, storage[1]);
    const Word carry_in = (Kind & with_carry) != 0 ? mask_source(wave, op, half) : 0;
    alignas(64) Word carried[group];  // in the highest bit
    for (unsigned i = 0; i < group; ++i) {
      const Word x = (Kind & subtract_reversed) != 0 ? b[i] : a[i];
      const Word y = (Kind & subtract_reversed) != 0 ? a[i] : b[i];
      const Word carry = carry_in >> i & 1U;
      if constexpr ((Kind & (subtract | subtract_reversed)) != 0) {
        out[i] = x - y - carry;
        carried[i] = (~x & y) | (~(x ^ y) & out[i]);
      } else {
        out[i] = x + y + carry;
        carried[i] = (x & y) | ((x | y) & ~out[i]);
      }
    }
    const Word carry_out = highest_bits(carried);
    if (clamp) {
      const Word limit = (Kind & (subtract | subtract_reversed)) != 0 ? 0U : ~0U;
      for (unsigned i = 0; i < group; ++i) out[i] = (carry_out >> i & 1U) != 0 ? limit : out[i];
    }
    carries[half] = carry_out & mask;
    put(wave, op.vdst, half, mask, out);
  }
  for (unsigned half = 0; half < wave.halves; ++half) wave.set_mask(op.sdst, half, carries[half]);
  return Next::go;
}

// 32 x 32 + 64 bits, with the carry (of the signed form: the overflow) in a mask.
template <bool Signed>
Next wide_multiply_add(Wave& wave, const Op& op) {
  Word carries[2] = {0, 0};
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    alignas(64) Word storage[2][group];
    alignas(64) Wide c[group], out[group];
    const Word* a = words(wave, op, 0, half, storage[0]);
    const Word* b = words(wave, op, 1, half, storage[1]);
    wides(wave, op, 2, half, c);
    Word carry = 0;
    for (unsigned i = 0; i < group; ++i) {
      if constexpr (Signed) {
        const std::int64_t product = static_cast<std::int64_t>(static_cast<std::int32_t>(a[i])) * static_cast<std::int32_t>(b[i]);
        out[i] = static_cast<Wide>(product) + c[i];
        const Wide overflow = ~(static_cast<Wide>(product) ^ c[i]) & (static_cast<Wide>(product) ^ out[i]);
        carry |= (overflow >> 63U) != 0 ? 1U << i : 0U;
      } else {
        out[i] = static_cast<Wide>(a[i]) * b[i] + c[i];
        carry |= out[i] < c[i] ? 1U << i : 0U;
      }
    }
    carries[half] = carry & mask;
    put_wide(wave, op.vdst, half, mask, out);
  }
  for (unsigned half = 0; half < wave.halves; ++half) wave.set_mask(op.sdst, half, carries[half]);
  return Next::go;
}

// How many bits of source 0 stand below this lane, in the low or the high 32 lanes, plus source 1.
template <unsigned High>
Next bits_below(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    if (mask == 0) continue;
    alignas(64) Word storage[2][group], out[group];
    const Word* a = words(wave, op, 0, half, storage[0]);
    const Word* b = words(wave, op, 1, half, storage[1]);
    for (unsigned i = 0; i < group; ++i) {
      const Word below = half == High ? (1U << i) - 1U : half > High ? ~0U : 0U;
      out[i] = static_cast<Word>(__builtin_popcount(a[i] & below)) + b[i];
    }
    put(wave, op.vdst, half, mask, out);
  }
  return Next::go;
}

constexpr Semantics entries[] = {
    {"v_cndmask_b32", &select, takes::float_sources, 0},
    {"v_cndmask_b16", &select_half, takes::float_sources | takes::halves, 0},
    {"v_add_co_u32", &carrying<add>, takes::saturation, 0},
    {"v_sub_co_u32", &carrying<subtract>, takes::saturation, 0},
    {"v_subrev_co_u32", &carrying<subtract_reversed>, takes::saturation, 0},
    {"v_add_co_ci_u32", &carrying<with_carry>, takes::saturation, 0},
    {"v_sub_co_ci_u32", &carrying<subtract | with_carry>, takes::saturation, 0},
    {"v_subrev_co_ci_u32", &carrying<subtract_reversed | with_carry>, takes::saturation, 0},
    {"v_mad_u64_u32", &wide_multiply_add<false>, takes::nothing, 0},
    {"v_mad_i64_i32", &wide_multiply_add<true>, takes::nothing, 0},
    {"v_mbcnt_lo_u32_b32", &bits_below<0>, takes::nothing, 0},
    {"v_mbcnt_hi_u32_b32", &bits_below<1>, takes::nothing, 0},
};

}  // namespace

SemanticsList mask() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
