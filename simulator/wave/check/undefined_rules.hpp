// How an instruction's undefined bits follow from those of its sources: one rule for each opcode.
//
// In a header, since applied() runs for each lane. Thread-safety: pure functions. Ownership: values.
#pragma once

#include <cstdint>

#include "simulator/isa/opcode.hpp"

namespace kiln::simulator::undefined_bits {

using Word = std::uint32_t;

// A carry passes upwards from the lowest undefined bit.
inline Word upwards(Word bits) { return bits | (0U - bits); }
inline Word whole(Word bits) { return bits != 0 ? ~0U : 0U; }

inline Word reversed(Word bits) {
  Word result = 0;
  for (unsigned i = 0; i < 32; ++i) result |= (bits >> i & 1U) << (31U - i);
  return result;
}

inline Word half_of(Word bits, bool high) { return high ? bits >> 16U : bits & 0xFFFFU; }

enum class Rule : std::uint8_t {
  whole = 0,  // one undefined bit makes all of the result undefined
  copy,
  reverse,
  logic,  // bit by bit, whatever the others are
  conjunction,
  disjunction,
  sum,
  low24,  // reads 24 bits of the first two sources
  shift_left,
  shift_right,
  shift_signed,
  shift_left16,
  shift_right16,
  shift_signed16,
  field,  // v_bfe
  lowest_set,
  highest_set,
  insert,
  permute,
  align_bit,
  align_byte,
  and_or,
  shift_or,
  shift_add,
  add_shift,
  select,
  pack,
  byte0,
  byte1,
  byte2,
  byte3
};

inline Rule rule_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::v_mov_b32:
    case Opcode::v_not_b32:
    case Opcode::v_mov_b16:
    case Opcode::v_not_b16:
    case Opcode::v_movreld_b32:
    case Opcode::v_movrels_b32:
    case Opcode::v_movrelsd_b32:
    case Opcode::v_movrelsd_2_b32:
      return Rule::copy;
    case Opcode::v_bfrev_b32:
      return Rule::reverse;
    case Opcode::v_xor_b32:
    case Opcode::v_xnor_b32:
    case Opcode::v_xor3_b32:
      return Rule::logic;
    case Opcode::v_and_b32:
      return Rule::conjunction;
    case Opcode::v_or_b32:
    case Opcode::v_or3_b32:
      return Rule::disjunction;
    case Opcode::v_add_nc_u32:
    case Opcode::v_sub_nc_u32:
    case Opcode::v_subrev_nc_u32:
    case Opcode::v_add_nc_i32:
    case Opcode::v_sub_nc_i32:
    case Opcode::v_add3_u32:
    case Opcode::v_mul_lo_u32:
    case Opcode::v_add_nc_u16:
    case Opcode::v_sub_nc_u16:
    case Opcode::v_mul_lo_u16:
    case Opcode::v_mad_u16:
      return Rule::sum;
    case Opcode::v_mul_u32_u24:
    case Opcode::v_mul_i32_i24:
    case Opcode::v_mul_hi_u32_u24:
    case Opcode::v_mul_hi_i32_i24:
    case Opcode::v_mad_u32_u24:
    case Opcode::v_mad_i32_i24:
      return Rule::low24;
    case Opcode::v_lshlrev_b32:
      return Rule::shift_left;
    case Opcode::v_lshrrev_b32:
      return Rule::shift_right;
    case Opcode::v_ashrrev_i32:
      return Rule::shift_signed;
    case Opcode::v_lshlrev_b16:
      return Rule::shift_left16;
    case Opcode::v_lshrrev_b16:
      return Rule::shift_right16;
    case Opcode::v_ashrrev_i16:
      return Rule::shift_signed16;
    case Opcode::v_bfe_u32:
    case Opcode::v_bfe_i32:
      return Rule::field;
    case Opcode::v_ctz_i32_b32:
      return Rule::lowest_set;
    case Opcode::v_clz_i32_u32:
      return Rule::highest_set;
    case Opcode::v_bfi_b32:
      return Rule::insert;
    case Opcode::v_perm_b32:
      return Rule::permute;
    case Opcode::v_alignbit_b32:
      return Rule::align_bit;
    case Opcode::v_alignbyte_b32:
      return Rule::align_byte;
    case Opcode::v_and_or_b32:
      return Rule::and_or;
    case Opcode::v_lshl_or_b32:
      return Rule::shift_or;
    case Opcode::v_lshl_add_u32:
      return Rule::shift_add;
    case Opcode::v_add_lshl_u32:
      return Rule::add_shift;
    case Opcode::v_cndmask_b32:
      return Rule::select;
    case Opcode::v_pack_b32_f16:
    case Opcode::v_cvt_pk_rtz_f16_f32:
      return Rule::pack;
    case Opcode::v_cvt_f32_ubyte0:
      return Rule::byte0;
    case Opcode::v_cvt_f32_ubyte1:
      return Rule::byte1;
    case Opcode::v_cvt_f32_ubyte2:
      return Rule::byte2;
    case Opcode::v_cvt_f32_ubyte3:
      return Rule::byte3;
    default:
      return Rule::whole;
  }
}

// Of one lane: undefined bits u and values x of three sources.
inline Word applied(Rule rule, const Word (&u)[3], const Word (&x)[3]) {
  const Word shift = x[0] & 31U, shift1 = x[1] & 31U, shift2 = x[2] & 31U;
  switch (rule) {
    case Rule::copy:
      return u[0];
    case Rule::reverse:
      return reversed(u[0]);
    case Rule::logic:
      return u[0] | u[1] | u[2];
    case Rule::conjunction:
      return (u[0] | u[1]) & (x[0] | u[0]) & (x[1] | u[1]);
    case Rule::disjunction:
      return (u[0] | u[1] | u[2]) & (~x[0] | u[0]) & (~x[1] | u[1]) & (~x[2] | u[2]);
    case Rule::sum:
      return upwards(u[0] | u[1] | u[2]);
    case Rule::low24:
      return whole((u[0] | u[1]) & 0xFFFFFFU) | upwards(u[2]);
    case Rule::shift_left:
      return (u[0] & 31U) != 0 ? ~0U : u[1] << shift;
    case Rule::shift_right:
      return (u[0] & 31U) != 0 ? ~0U : u[1] >> shift;
    case Rule::shift_signed:
      return (u[0] & 31U) != 0 ? ~0U : static_cast<Word>(static_cast<std::int32_t>(u[1]) >> shift);
    case Rule::shift_left16:
      return (u[0] & 15U) != 0 ? ~0U : u[1] << (x[0] & 15U);
    case Rule::shift_right16:
      return (u[0] & 15U) != 0 ? ~0U : u[1] >> (x[0] & 15U);
    case Rule::shift_signed16:
      return (u[0] & 15U) != 0 ? ~0U : static_cast<Word>(static_cast<std::int16_t>(u[1]) >> (x[0] & 15U));
    case Rule::field: {
      if (((u[1] | u[2]) & 31U) != 0) return ~0U;
      return whole(u[0] >> shift1 & ((1U << shift2) - 1U));
    }
    // Compilers leave bits beyond the first one undefined, as far as it ends the search.
    case Rule::lowest_set:
      return whole(u[0] & (x[0] ^ (x[0] - 1U)));
    case Rule::highest_set:
      return whole(u[0] & (x[0] == 0 ? ~0U : ~0U << (31U - static_cast<unsigned>(__builtin_clz(x[0])))));
    case Rule::insert:
      return u[0] | (x[0] & u[1]) | (~x[0] & u[2]);
    case Rule::permute: {
      if (u[2] != 0) return ~0U;
      Word result = 0;
      for (unsigned byte = 0; byte < 4; ++byte) {
        const Word from = x[2] >> 8U * byte & 0xFFU;
        const std::uint64_t both = u[1] | static_cast<std::uint64_t>(u[0]) << 32U;
        if (from < 8) result |= static_cast<Word>(both >> 8U * from & 0xFFU) << 8U * byte;
        if (from >= 8 && from < 12) result |= (both >> (16U * (from - 8U) + 15U) & 1U) != 0 ? 0xFFU << 8U * byte : 0U;
      }
      return result;
    }
    case Rule::align_bit:
    case Rule::align_byte: {
      const Word by = rule == Rule::align_bit ? shift2 : 8U * (x[2] & 3U);
      if ((u[2] & 31U) != 0) return ~0U;
      return static_cast<Word>((u[1] | static_cast<std::uint64_t>(u[0]) << 32U) >> by);
    }
    case Rule::and_or: {
      const Word both = (u[0] | u[1]) & (x[0] | u[0]) & (x[1] | u[1]);
      return (both | u[2]) & (~(x[0] & x[1]) | both) & (~x[2] | u[2]);
    }
    case Rule::shift_or:
      return ((u[1] & 31U) != 0 ? ~0U : u[0] << shift1) | u[2];
    case Rule::shift_add:
      return upwards(((u[1] & 31U) != 0 ? ~0U : u[0] << shift1) | u[2]);
    case Rule::add_shift:
      return (u[2] & 31U) != 0 ? ~0U : upwards(u[0] | u[1]) << shift2;
    case Rule::byte0:
      return whole(u[0] & 0xFFU);
    case Rule::byte1:
      return whole(u[0] & 0xFF00U);
    case Rule::byte2:
      return whole(u[0] & 0xFF0000U);
    case Rule::byte3:
      return whole(u[0] & 0xFF000000U);
    default:
      return whole(u[0] | u[1] | u[2]);
  }
}

}  // namespace kiln::simulator::undefined_bits
