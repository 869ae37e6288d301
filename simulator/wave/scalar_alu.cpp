#include <bit>
#include <iterator>

#include "simulator/wave/program.hpp"
#include "simulator/wave/scalar_operation.hpp"
#include "simulator/wave/semantics_table.hpp"

namespace kiln::simulator::scalar_unit {
namespace {

using Int = std::int32_t;
using Long = std::int64_t;

template <class T>
T nonzero(T value, bool& scc) {
  scc = value != 0;
  return value;
}
template <class T>
T reversed(T x) {
  T result = 0;
  for (unsigned i = 0; i < sizeof(T) * 8; ++i) result = static_cast<T>(result << 1U | (x >> i & 1U));
  return result;
}
template <class T>
Int first_differing(T a) {  // from the sign; none: -1
  using U = std::make_unsigned_t<T>;
  const U x = static_cast<U>(a < 0 ? ~a : a);
  return x == 0 ? -1 : std::countl_zero(x);
}
template <class T>
T quad_mask(T a) {
  T result = 0;
  for (unsigned i = 0; i < sizeof(T) * 2; ++i) result |= static_cast<T>((a >> 4U * i & 15U) != 0 ? T{1} << i : T{0});
  return result;
}
template <class T>
T whole_quads(T a) {
  T result = 0;
  for (unsigned i = 0; i < sizeof(T) * 2; ++i)
    result |= static_cast<T>((a >> 4U * i & 15U) != 0 ? T{15} << 4U * i : T{0});
  return result;
}
Wide replicated(Word a) {
  Wide result = 0;
  for (unsigned i = 0; i < 32; ++i) result |= static_cast<Wide>(a >> i & 1U) * 3U << 2U * i;
  return result;
}

// The old EXEC goes to the destination, the new one is Body(source, old); SCC says whether a lane is left.
template <class T, auto Body>
Next save_exec(Wave& wave, const Op& op) {
  const T old = static_cast<T>(sizeof(T) == 8 ? wave.scalar64(scalar_index::exec) : wave.scalar[scalar_index::exec]);
  const T value = Body(read<T>(wave, op, 0), old);
  write(wave, op, old);
  if constexpr (sizeof(T) == 8) {
    wave.set_scalar64(scalar_index::exec, value);
  } else {
    wave.scalar[scalar_index::exec] = value;
  }
  wave.scc = value != 0;
  return Next::go;
}
// As above, but the destination gets the new EXEC.
template <class T, auto Body>
Next write_exec(Wave& wave, const Op& op) {
  const T old = static_cast<T>(sizeof(T) == 8 ? wave.scalar64(scalar_index::exec) : wave.scalar[scalar_index::exec]);
  const T value = Body(read<T>(wave, op, 0), old);
  if constexpr (sizeof(T) == 8) {
    wave.set_scalar64(scalar_index::exec, value);
  } else {
    wave.scalar[scalar_index::exec] = value;
  }
  write(wave, op, value);
  wave.scc = value != 0;
  return Next::go;
}

template <class T>
Next conditional_move(Wave& wave, const Op& op) {
  if (wave.scc) write(wave, op, read<T>(wave, op, 0));
  return Next::go;
}
template <class T, bool Set>
Next set_bit(Wave& wave, const Op& op) {
  const unsigned bit = scalar_source32(wave, op, 0) & (sizeof(T) * 8 - 1);
  T value = static_cast<T>(sizeof(T) == 8 ? wave.scalar64(op.sdst) : wave.scalar[op.sdst]);
  value = Set ? value | T{1} << bit : value & ~(T{1} << bit);
  write(wave, op, value);
  return Next::go;
}

// Registers found by M0 stay among the SGPRs.
enum : std::uint8_t { relative_source = 1, relative_destination = 2, relative_fields = 4 };
template <class T>
Next move_relative(Wave& wave, const Op& op) {
  const Word m0 = wave.scalar[scalar_index::m0];
  const bool fields = (op.detail & relative_fields) != 0;
  const Wide from = op.reg[0] + Wide{fields ? m0 & 0x3FFU : m0}, to = op.sdst + Wide{fields ? m0 >> 16U & 0x3FFU : m0};
  constexpr unsigned registers = sizeof(T) / 4;
  const bool by_source = (op.detail & relative_source) != 0, by_destination = (op.detail & relative_destination) != 0;
  for (const Wide found : {by_source ? from : 0, by_destination ? to : 0}) {
    if (found + registers <= scalar_index::vcc) continue;
    return refuse(wave, op, FaultKind::overrun, "M0 leads to s" + std::to_string(found) + " of 106 SGPRs");
  }
  const T value = !by_source      ? read<T>(wave, op, 0)
                  : registers > 1 ? static_cast<T>(wave.scalar64(static_cast<unsigned>(from)))
                                  : static_cast<T>(wave.scalar[from]);
  if (!by_destination) {
    write(wave, op, value);
    return Next::go;
  }
  wave.scalar[to] = static_cast<Word>(value);
  if constexpr (registers > 1) wave.scalar[to + 1] = static_cast<Word>(value >> 32U);
  return Next::go;
}

constexpr Semantics sop1_entries[] = {
    scalar<[](Word a) { return a; }>("s_mov_b32"),
    scalar<[](Wide a) { return a; }>("s_mov_b64"),
    {"s_cmov_b32", &conditional_move<Word>},
    {"s_cmov_b64", &conditional_move<Wide>},
    scalar<[](Word a) { return reversed(a); }>("s_brev_b32"),
    scalar<[](Wide a) { return reversed(a); }>("s_brev_b64"),
    scalar<[](Word a) { return a == ~0U ? -1 : std::countr_one(a); }>("s_ff0_i32_b32"),
    scalar<[](Wide a) { return a == ~Wide{0} ? -1 : std::countr_one(a); }>("s_ff0_i32_b64"),
    scalar<[](Word a) { return a == 0 ? -1 : std::countr_zero(a); }>("s_ctz_i32_b32"),
    scalar<[](Wide a) { return a == 0 ? -1 : std::countr_zero(a); }>("s_ctz_i32_b64"),
    scalar<[](Word a) { return a == 0 ? -1 : std::countl_zero(a); }>("s_clz_i32_u32"),
    scalar<[](Wide a) { return a == 0 ? -1 : std::countl_zero(a); }>("s_clz_i32_u64"),
    scalar<[](Int a) { return first_differing(a); }>("s_cls_i32"),
    scalar<[](Long a) { return first_differing(a); }>("s_cls_i32_i64"),
    scalar<[](Word a) { return static_cast<Int>(static_cast<std::int8_t>(a)); }>("s_sext_i32_i8"),
    scalar<[](Word a) { return static_cast<Int>(static_cast<std::int16_t>(a)); }>("s_sext_i32_i16"),
    {"s_bitset0_b32", &set_bit<Word, false>},
    {"s_bitset0_b64", &set_bit<Wide, false>},
    {"s_bitset1_b32", &set_bit<Word, true>},
    {"s_bitset1_b64", &set_bit<Wide, true>},
    scalar<[](Word a) { return replicated(a); }>("s_bitreplicate_b64_b32"),
    scalar<[](Int a, bool& scc) { return nonzero(a < 0 ? 0U - static_cast<Word>(a) : static_cast<Word>(a), scc); }>(
        "s_abs_i32"),
    scalar<[](Word a, bool& scc) { return nonzero(std::popcount(~a), scc); }>("s_bcnt0_i32_b32"),
    scalar<[](Wide a, bool& scc) { return nonzero(std::popcount(~a), scc); }>("s_bcnt0_i32_b64"),
    scalar<[](Word a, bool& scc) { return nonzero(std::popcount(a), scc); }>("s_bcnt1_i32_b32"),
    scalar<[](Wide a, bool& scc) { return nonzero(std::popcount(a), scc); }>("s_bcnt1_i32_b64"),
    scalar<[](Word a, bool& scc) { return nonzero(quad_mask(a), scc); }>("s_quadmask_b32"),
    scalar<[](Wide a, bool& scc) { return nonzero(quad_mask(a), scc); }>("s_quadmask_b64"),
    scalar<[](Word a, bool& scc) { return nonzero(whole_quads(a), scc); }>("s_wqm_b32"),
    scalar<[](Wide a, bool& scc) { return nonzero(whole_quads(a), scc); }>("s_wqm_b64"),
    scalar<[](Word a, bool& scc) { return nonzero(~a, scc); }>("s_not_b32"),
    scalar<[](Wide a, bool& scc) { return nonzero(~a, scc); }>("s_not_b64"),
    {"s_and_saveexec_b32", &save_exec<Word, [](Word a, Word b) { return a & b; }>},
    {"s_and_saveexec_b64", &save_exec<Wide, [](Wide a, Wide b) { return a & b; }>},
    {"s_or_saveexec_b32", &save_exec<Word, [](Word a, Word b) { return a | b; }>},
    {"s_or_saveexec_b64", &save_exec<Wide, [](Wide a, Wide b) { return a | b; }>},
    {"s_xor_saveexec_b32", &save_exec<Word, [](Word a, Word b) { return a ^ b; }>},
    {"s_xor_saveexec_b64", &save_exec<Wide, [](Wide a, Wide b) { return a ^ b; }>},
    {"s_nand_saveexec_b32", &save_exec<Word, [](Word a, Word b) { return ~(a & b); }>},
    {"s_nand_saveexec_b64", &save_exec<Wide, [](Wide a, Wide b) { return ~(a & b); }>},
    {"s_nor_saveexec_b32", &save_exec<Word, [](Word a, Word b) { return ~(a | b); }>},
    {"s_nor_saveexec_b64", &save_exec<Wide, [](Wide a, Wide b) { return ~(a | b); }>},
    {"s_xnor_saveexec_b32", &save_exec<Word, [](Word a, Word b) { return ~(a ^ b); }>},
    {"s_xnor_saveexec_b64", &save_exec<Wide, [](Wide a, Wide b) { return ~(a ^ b); }>},
    {"s_and_not0_saveexec_b32", &save_exec<Word, [](Word a, Word b) { return ~a & b; }>},
    {"s_and_not0_saveexec_b64", &save_exec<Wide, [](Wide a, Wide b) { return ~a & b; }>},
    {"s_or_not0_saveexec_b32", &save_exec<Word, [](Word a, Word b) { return ~a | b; }>},
    {"s_or_not0_saveexec_b64", &save_exec<Wide, [](Wide a, Wide b) { return ~a | b; }>},
    {"s_and_not1_saveexec_b32", &save_exec<Word, [](Word a, Word b) { return a & ~b; }>},
    {"s_and_not1_saveexec_b64", &save_exec<Wide, [](Wide a, Wide b) { return a & ~b; }>},
    {"s_or_not1_saveexec_b32", &save_exec<Word, [](Word a, Word b) { return a | ~b; }>},
    {"s_or_not1_saveexec_b64", &save_exec<Wide, [](Wide a, Wide b) { return a | ~b; }>},
    {"s_and_not0_wrexec_b32", &write_exec<Word, [](Word a, Word b) { return ~a & b; }>},
    {"s_and_not0_wrexec_b64", &write_exec<Wide, [](Wide a, Wide b) { return ~a & b; }>},
    {"s_and_not1_wrexec_b32", &write_exec<Word, [](Word a, Word b) { return a & ~b; }>},
    {"s_and_not1_wrexec_b64", &write_exec<Wide, [](Wide a, Wide b) { return a & ~b; }>},
    {"s_movrels_b32", &move_relative<Word>, takes::nothing, relative_source},
    {"s_movrels_b64", &move_relative<Wide>, takes::nothing, relative_source},
    {"s_movreld_b32", &move_relative<Word>, takes::nothing, relative_destination},
    {"s_movreld_b64", &move_relative<Wide>, takes::nothing, relative_destination},
    {"s_movrelsd_2_b32", &move_relative<Word>, takes::nothing,
     relative_source | relative_destination | relative_fields},
};

}  // namespace

SemanticsList sop1() noexcept { return {sop1_entries, std::size(sop1_entries)}; }

namespace {

// Shift left by a constant and add; SCC is the carry of both together.
template <unsigned By>
Word shifted_sum(Word a, Word b, bool& scc) {
  const Wide sum = (static_cast<Wide>(a) << By) + b;
  scc = sum > 0xFFFFFFFFU;
  return static_cast<Word>(sum);
}

bool overflows(Word a, Word b, Word sum) { return ((~(a ^ b) & (a ^ sum)) >> 31U) != 0; }

// Bits of a field: offset in the low bits of `b`, width from bit 16.
template <class T>
T field(T a, Word b, unsigned offset_mask) {
  const unsigned offset = b & offset_mask, width = b >> 16U & 0x7FU;
  constexpr unsigned bits = sizeof(T) * 8;
  using U = std::make_unsigned_t<T>;
  const U moved = static_cast<U>(a >> offset);
  if (width == 0) return 0;
  if (width >= bits) return static_cast<T>(a >> offset);
  return static_cast<T>(static_cast<T>(moved << (bits - width)) >> (bits - width));
}
Word pack(Word low, Word high) { return (low & 0xFFFFU) | high << 16U; }

constexpr Semantics sop2_entries[] = {
    scalar<[](Word a, Word b, bool& scc) {
      scc = a + b < a;
      return a + b;
    }>("s_add_u32"),
    scalar<[](Word a, Word b, bool& scc) {
      scc = a < b;
      return a - b;
    }>("s_sub_u32"),
    scalar<[](Word a, Word b, bool& scc) {
      scc = overflows(a, b, a + b);
      return a + b;
    }>("s_add_i32"),
    scalar<[](Word a, Word b, bool& scc) {
      scc = overflows(a, ~b, a - b);
      return a - b;
    }>("s_sub_i32"),
    scalar<[](Word a, Word b, bool& scc) {
      const Wide sum = static_cast<Wide>(a) + b + (scc ? 1U : 0U);
      scc = (sum >> 32U) != 0;
      return static_cast<Word>(sum);
    }>("s_addc_u32"),
    scalar<[](Word a, Word b, bool& scc) {
      const Wide taken = static_cast<Wide>(b) + (scc ? 1U : 0U);
      scc = a < taken;
      return static_cast<Word>(a - taken);
    }>("s_subb_u32"),
    scalar<[](Int a, Int b, bool& scc) {
      const Word difference = static_cast<Word>(a) - static_cast<Word>(b);
      return nonzero(a < b ? 0U - difference : difference, scc);
    }>("s_absdiff_i32"),
    scalar<[](Word a, Word b, bool& scc) { return nonzero(a << (b & 31U), scc); }>("s_lshl_b32"),
    scalar<[](Wide a, Word b, bool& scc) { return nonzero(a << (b & 63U), scc); }>("s_lshl_b64"),
    scalar<[](Word a, Word b, bool& scc) { return nonzero((a >> (b & 31U)), scc); }>("s_lshr_b32"),
    scalar<[](Wide a, Word b, bool& scc) { return nonzero((a >> (b & 63U)), scc); }>("s_lshr_b64"),
    scalar<[](Int a, Word b, bool& scc) { return nonzero((a >> (b & 31U)), scc); }>("s_ashr_i32"),
    scalar<[](Long a, Word b, bool& scc) { return nonzero((a >> (b & 63U)), scc); }>("s_ashr_i64"),
    scalar<[](Word a, Word b, bool& scc) { return shifted_sum<1>(a, b, scc); }>("s_lshl1_add_u32"),
    scalar<[](Word a, Word b, bool& scc) { return shifted_sum<2>(a, b, scc); }>("s_lshl2_add_u32"),
    scalar<[](Word a, Word b, bool& scc) { return shifted_sum<3>(a, b, scc); }>("s_lshl3_add_u32"),
    scalar<[](Word a, Word b, bool& scc) { return shifted_sum<4>(a, b, scc); }>("s_lshl4_add_u32"),
    scalar<[](Int a, Int b, bool& scc) {
      scc = a < b;
      return scc ? a : b;
    }>("s_min_i32"),
    scalar<[](Word a, Word b, bool& scc) {
      scc = a < b;
      return scc ? a : b;
    }>("s_min_u32"),
    scalar<[](Int a, Int b, bool& scc) {
      scc = (a > b);
      return scc ? a : b;
    }>("s_max_i32"),
    scalar<[](Word a, Word b, bool& scc) {
      scc = (a > b);
      return scc ? a : b;
    }>("s_max_u32"),
    scalar<[](Word a, Word b, bool& scc) { return nonzero(a & b, scc); }>("s_and_b32"),
    scalar<[](Wide a, Wide b, bool& scc) { return nonzero(a & b, scc); }>("s_and_b64"),
    scalar<[](Word a, Word b, bool& scc) { return nonzero(a | b, scc); }>("s_or_b32"),
    scalar<[](Wide a, Wide b, bool& scc) { return nonzero(a | b, scc); }>("s_or_b64"),
    scalar<[](Word a, Word b, bool& scc) { return nonzero(a ^ b, scc); }>("s_xor_b32"),
    scalar<[](Wide a, Wide b, bool& scc) { return nonzero(a ^ b, scc); }>("s_xor_b64"),
    scalar<[](Word a, Word b, bool& scc) { return nonzero(~(a & b), scc); }>("s_nand_b32"),
    scalar<[](Wide a, Wide b, bool& scc) { return nonzero(~(a & b), scc); }>("s_nand_b64"),
    scalar<[](Word a, Word b, bool& scc) { return nonzero(~(a | b), scc); }>("s_nor_b32"),
    scalar<[](Wide a, Wide b, bool& scc) { return nonzero(~(a | b), scc); }>("s_nor_b64"),
    scalar<[](Word a, Word b, bool& scc) { return nonzero(~(a ^ b), scc); }>("s_xnor_b32"),
    scalar<[](Wide a, Wide b, bool& scc) { return nonzero(~(a ^ b), scc); }>("s_xnor_b64"),
    scalar<[](Word a, Word b, bool& scc) { return nonzero(a & ~b, scc); }>("s_and_not1_b32"),
    scalar<[](Wide a, Wide b, bool& scc) { return nonzero(a & ~b, scc); }>("s_and_not1_b64"),
    scalar<[](Word a, Word b, bool& scc) { return nonzero(a | ~b, scc); }>("s_or_not1_b32"),
    scalar<[](Wide a, Wide b, bool& scc) { return nonzero(a | ~b, scc); }>("s_or_not1_b64"),
    scalar<[](Word a, Word b, bool& scc) { return nonzero(field(a, b, 31), scc); }>("s_bfe_u32"),
    scalar<[](Int a, Word b, bool& scc) { return nonzero(field(a, b, 31), scc); }>("s_bfe_i32"),
    scalar<[](Wide a, Word b, bool& scc) { return nonzero(field(a, b, 63), scc); }>("s_bfe_u64"),
    scalar<[](Long a, Word b, bool& scc) { return nonzero(field(a, b, 63), scc); }>("s_bfe_i64"),
    scalar<[](Word a, Word b) { return ((1U << (a & 31U)) - 1U) << (b & 31U); }>("s_bfm_b32"),
    scalar<[](Word a, Word b) { return ((Wide{1} << (a & 63U)) - 1U) << (b & 63U); }>("s_bfm_b64"),
    scalar<[](Word a, Word b) { return a * b; }>("s_mul_i32"),
    scalar<[](Word a, Word b) { return static_cast<Word>((static_cast<Wide>(a) * b >> 32U)); }>("s_mul_hi_u32"),
    scalar<[](Int a, Int b) { return static_cast<Word>((static_cast<Wide>(static_cast<Long>(a) * b) >> 32U)); }>(
        "s_mul_hi_i32"),
    scalar<[](Word a, Word b, bool& scc) { return scc ? a : b; }>("s_cselect_b32"),
    scalar<[](Wide a, Wide b, bool& scc) { return scc ? a : b; }>("s_cselect_b64"),
    scalar<[](Word a, Word b) { return pack(a, b); }>("s_pack_ll_b32_b16"),
    scalar<[](Word a, Word b) { return pack(a, (b >> 16U)); }>("s_pack_lh_b32_b16"),
    scalar<[](Word a, Word b) { return pack((a >> 16U), (b >> 16U)); }>("s_pack_hh_b32_b16"),
    scalar<[](Word a, Word b) { return pack((a >> 16U), b); }>("s_pack_hl_b32_b16"),
};

}  // namespace

SemanticsList sop2() noexcept { return {sop2_entries, std::size(sop2_entries)}; }

}  // namespace kiln::simulator::scalar_unit
