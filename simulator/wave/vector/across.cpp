// Instructions that move data between lanes, or that find their register by M0.

#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

Word of_lane(Wave& wave, const Op& op, unsigned source, unsigned lane) {
  if (op.kind[source] == SourceKind::row) return wave.row(op.reg[source], lane / group)[lane % group];
  return scalar_source32(wave, op, source);
}

Next read_first_lane(Wave& wave, const Op& op) {
  const Wide exec = wave.exec64();
  const unsigned lane = exec == 0 ? 0 : static_cast<unsigned>(__builtin_ctzll(exec));
  wave.scalar[op.sdst] = of_lane(wave, op, 0, lane);
  return Next::go;
}
Next read_lane(Wave& wave, const Op& op) {
  wave.scalar[op.sdst] = of_lane(wave, op, 0, scalar_source32(wave, op, 1) & (wave.halves * group - 1));
  return Next::go;
}
Next write_lane(Wave& wave, const Op& op) {
  const unsigned lane = scalar_source32(wave, op, 1) & (wave.halves * group - 1);
  wave.row(op.vdst, lane / group)[lane % group] = scalar_source32(wave, op, 0);
  return Next::go;
}

// Each lane of a row of 16 names a lane of its own row, or of the row beside it.
template <unsigned Across>
Next permute_rows(Wave& wave, const Op& op) {
  const bool fetch_inactive = (op.select & 1U) != 0, bound_control = (op.select & 2U) != 0;
  const Wide selectors = scalar_source32(wave, op, 1) | static_cast<Wide>(scalar_source32(wave, op, 2)) << 32U;
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    alignas(64) Word storage[group], out[group];
    const Word* in = words(wave, op, 0, half, storage);
    const Word* old = wave.row(op.vdst, half);
    for (unsigned i = 0; i < group; ++i) {
      const unsigned from = ((i & ~15U) ^ Across) | (selectors >> 4U * (i & 15U) & 15U);
      const bool there = fetch_inactive || (mask >> from & 1U) != 0;
      out[i] = there ? in[from] : bound_control ? 0U : old[i];
    }
    put(wave, op.vdst, half, mask, out);
  }
  return Next::go;
}

// Wave64 exchanges its halves; wave32 has nothing to exchange.
Next exchange_halves(Wave& wave, const Op& op) {
  alignas(64) Word storage[2][group];
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word* in = words(wave, op, 0, wave.halves == 2 ? 1 - half : half, storage[half]);
    for (unsigned i = 0; i < group; ++i) storage[half][i] = in[i];
  }
  for (unsigned half = 0; half < wave.halves; ++half) put(wave, op.vdst, half, wave.exec(half), storage[half]);
  return Next::go;
}

Next swap_rows(Wave& wave, unsigned first, unsigned second) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    Word* a = wave.row(first, half);
    Word* b = wave.row(second, half);
    const Word mask = wave.exec(half);
    for (unsigned i = 0; i < group; ++i) {
      const Word x = a[i], y = b[i];
      const bool active = (mask >> i & 1U) != 0;
      a[i] = active ? y : x;
      b[i] = active ? x : y;
    }
  }
  return Next::go;
}
Next swap(Wave& wave, const Op& op) { return swap_rows(wave, op.reg[0], op.vdst); }

// Register numbers moved by M0; the row that comes out must be one of the wave's.
enum : std::uint8_t { source_by_m0 = 1, destination_by_m0 = 2, two_fields = 4, swapping = 8 };
Next move_relative(Wave& wave, const Op& op) {
  const Word m0 = wave.scalar[scalar_index::m0];
  const Word source_offset = (op.detail & two_fields) != 0 ? m0 & 0x3FFU : m0;
  const Word destination_offset = (op.detail & two_fields) != 0 ? m0 >> 16U & 0x3FFU : m0;
  Op moved = op;
  const Word from = (op.detail & source_by_m0) != 0 ? op.reg[0] + source_offset : op.reg[0];
  const Word to = (op.detail & destination_by_m0) != 0 ? op.vdst + destination_offset : op.vdst;
  const Word end = scratch_rows + wave.vgpr_count;
  if ((op.kind[0] == SourceKind::row && (from < scratch_rows || from >= end)) || to < scratch_rows || to >= end) {
    return refuse_register(wave, op, (to >= end ? to : from) - scratch_rows);
  }
  moved.reg[0] = static_cast<std::uint16_t>(from);
  moved.vdst = static_cast<std::uint16_t>(to);
  if ((op.detail & swapping) != 0) return swap_rows(wave, from, to);
  return vector<[](Word a) { return a; }>(wave, moved);
}

constexpr Semantics cross_lane_entries[] = {
    {"v_readfirstlane_b32", &read_first_lane},
    {"v_readlane_b32", &read_lane},
    {"v_writelane_b32", &write_lane},
    {"v_permlane16_b32", &permute_rows<0>, takes::halves},
    {"v_permlanex16_b32", &permute_rows<16>, takes::halves},
    {"v_permlane64_b32", &exchange_halves},
    {"v_swap_b32", &swap},
    {"v_movreld_b32", &move_relative, takes::nothing, destination_by_m0},
    {"v_movrels_b32", &move_relative, takes::nothing, source_by_m0},
    {"v_movrelsd_b32", &move_relative, takes::nothing, source_by_m0 | destination_by_m0},
    {"v_movrelsd_2_b32", &move_relative, takes::nothing, source_by_m0 | destination_by_m0 | two_fields},
    {"v_swaprel_b32", &move_relative, takes::nothing, source_by_m0 | destination_by_m0 | two_fields | swapping},
};

}  // namespace

SemanticsList cross_lane() noexcept { return list_of(cross_lane_entries); }

// Instructions that read or write a mask of lanes beside their numbers: selects, sums with carry, lane counts.

namespace {

Word mask_source(const Wave& wave, const Op& op, unsigned half) {
  if (op.kind[2] == SourceKind::scalar) return wave.scalar[op.reg[2] + half];
  return constant_words(op, 2)[half * group];
}

Next select(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    alignas(64) Word storage[2][group], out[group];
    const Word* a = lanes_of<float>(wave, op, 0, half, storage[0]);
    const Word* b = lanes_of<float>(wave, op, 1, half, storage[1]);
    const Word bits = mask_source(wave, op, half);
    for (unsigned i = 0; i < group; ++i) out[i] = (bits >> i & 1U) != 0 ? b[i] : a[i];
    store<float>(wave, op, half, mask, out);
  }
  return Next::go;
}

Next select_half(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    alignas(64) Word storage[2][group], out[group];
    const Word* a = half_words(wave, op, 0, half, storage[0], false);
    const Word* b = half_words(wave, op, 1, half, storage[1], false);
    const Word bits = mask_source(wave, op, half);
    for (unsigned i = 0; i < group; ++i) out[i] = (bits >> i & 1U) != 0 ? b[i] : a[i];
    put_half(wave, op, half, mask, out);
  }
  return Next::go;
}

enum : std::uint8_t { add = 0, subtract = 1, subtract_reversed = 2, with_carry = 4 };

template <std::uint8_t Kind>
Next carrying(Wave& wave, const Op& op) {
  Word carries[2] = {};
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
  Word carries[2] = {};
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
        const std::int64_t product =
            static_cast<std::int64_t>(static_cast<std::int32_t>(a[i])) * static_cast<std::int32_t>(b[i]);
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
    alignas(64) Word storage[2][group], out[group];
    const Word* a = words(wave, op, 0, half, storage[0]);
    const Word* b = words(wave, op, 1, half, storage[1]);
    for (unsigned i = 0; i < group; ++i) {
      const Word below = half > High ? ~0U : half < High ? 0U : (1U << i) - 1U;
      out[i] = static_cast<Word>(__builtin_popcount(a[i] & below)) + b[i];
    }
    put(wave, op.vdst, half, mask, out);
  }
  return Next::go;
}

constexpr Semantics mask_entries[] = {
    {"v_cndmask_b32", &select, takes::float_sources},
    {"v_cndmask_b16", &select_half, takes::halves},
    {"v_add_co_u32", &carrying<add>, takes::saturation},
    {"v_sub_co_u32", &carrying<subtract>, takes::saturation},
    {"v_subrev_co_u32", &carrying<subtract_reversed>, takes::saturation},
    {"v_add_co_ci_u32", &carrying<with_carry>, takes::saturation},
    {"v_sub_co_ci_u32", &carrying<subtract | with_carry>, takes::saturation},
    {"v_subrev_co_ci_u32", &carrying<subtract_reversed | with_carry>, takes::saturation},
    {"v_mad_u64_u32", &wide_multiply_add<false>},
    {"v_mad_i64_i32", &wide_multiply_add<true>},
    {"v_mbcnt_lo_u32_b32", &bits_below<0>},
    {"v_mbcnt_hi_u32_b32", &bits_below<1>},
};

}  // namespace

SemanticsList mask() noexcept { return list_of(mask_entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
