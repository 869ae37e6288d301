#include <iterator>

#include "simulator/wave/scalar/lists.hpp"
#include "simulator/wave/scalar/operation.hpp"

namespace kiln::simulator::scalar_unit {
namespace {

using Int = std::int32_t;
using Long = std::int64_t;

template <class T>
T nonzero(T value, bool& scc) {
  scc = value != 0;
  return value;
}

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

constexpr Semantics entries[] = {
    scalar<[](Word a, Word b, bool& scc) { scc = a + b < a; return a + b; }>("s_add_u32"),
    scalar<[](Word a, Word b, bool& scc) { scc = a < b; return a - b; }>("s_sub_u32"),
    scalar<[](Word a, Word b, bool& scc) { scc = overflows(a, b, a + b); return a + b; }>("s_add_i32"),
    scalar<[](Word a, Word b, bool& scc) { scc = overflows(a, ~b, a - b); return a - b; }>("s_sub_i32"),
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
    scalar<[](Int a, Int b, bool& scc) { scc = a < b; return scc ? a : b; }>("s_min_i32"),
    scalar<[](Word a, Word b, bool& scc) { scc = a < b; return scc ? a : b; }>("s_min_u32"),
    scalar<[](Int a, Int b, bool& scc) { scc = (a > b); return scc ? a : b; }>("s_max_i32"),
    scalar<[](Word a, Word b, bool& scc) { scc = (a > b); return scc ? a : b; }>("s_max_u32"),
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

SemanticsList sop2() noexcept { return {entries, std::size(entries)}; }

}  // namespace kiln::simulator::scalar_unit
