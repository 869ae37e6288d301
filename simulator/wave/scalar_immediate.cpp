// SOPK but for its compares, and the hardware registers.

#include <iterator>

#include "simulator/wave/program.hpp"
#include "simulator/wave/scalar_operation.hpp"
#include "simulator/wave/semantics_table.hpp"

namespace kiln::simulator::scalar_unit {
namespace {

constexpr unsigned hw_mode = 1, hw_status = 2, hw_trap_status = 3, hw_lds_alloc = 6, hw_flat_scratch_low = 20,
                   hw_flat_scratch_high = 21, hw_id1 = 23, hw_id2 = 24, hw_shader_cycles = 29;

struct HardwareRegister {  // as s_getreg and s_setreg name a part of one
  explicit HardwareRegister(std::int32_t simm16)
      : id(static_cast<Word>(simm16) & 63U),
        shift(static_cast<Word>(simm16) >> 6U & 31U),
        mask(~0U >> (31U - (static_cast<Word>(simm16) >> 11U & 31U))) {}
  unsigned id;
  unsigned shift;
  Word mask;
};

Next unknown_register(Wave& wave, const Op& op, unsigned id) {
  return refuse(wave, op, FaultKind::unknown_opcode, "hardware register " + std::to_string(id) + " is not simulated");
}

Next get_register(Wave& wave, const Op& op) {
  const HardwareRegister part(op.offset);
  Word value = 0;
  switch (part.id) {
    case hw_mode:
      value = wave.mode;
      break;
    case hw_status:
      value = (wave.scc ? 1U : 0U) | (wave.exec64() == 0 ? 1U << 9U : 0U) | 1U << 16U;  // SCC, EXECZ, VALID
      break;
    case hw_trap_status:
      value = wave.trap_status;
      break;
    case hw_lds_alloc:
      value = wave.lds_allocation;
      break;
    case hw_flat_scratch_low:
      value = static_cast<Word>(wave.flat_scratch);
      break;
    case hw_flat_scratch_high:
      value = static_cast<Word>(wave.flat_scratch >> 32U);
      break;
    case hw_id1:
      value = wave.hardware_id;
      break;
    case hw_id2:
      value = 0;
      break;
    case hw_shader_cycles:
      value = static_cast<Word>(wave.clock + wave.instructions) & 0xFFFFFU;
      break;
    default:
      return unknown_register(wave, op, part.id);
  }
  wave.scalar[op.sdst] = value >> part.shift & part.mask;
  return Next::go;
}

Next set_register(Wave& wave, const Op& op) {
  const HardwareRegister part(op.offset);
  const Word value = (scalar_source32(wave, op, 0) & part.mask) << part.shift;
  const Word kept = ~(part.mask << part.shift);
  switch (part.id) {
    case hw_mode:
      wave.set_mode((wave.mode & kept) | value);
      break;
    case hw_trap_status:
      wave.trap_status = (wave.trap_status & kept) | value;
      break;
    case hw_flat_scratch_low:
      wave.flat_scratch =
          (wave.flat_scratch & ~Wide{0xFFFFFFFFU}) | ((static_cast<Word>(wave.flat_scratch) & kept) | value);
      break;
    case hw_flat_scratch_high:
      wave.flat_scratch = (wave.flat_scratch & 0xFFFFFFFFU) |
                          static_cast<Wide>((static_cast<Word>(wave.flat_scratch >> 32U) & kept) | value) << 32U;
      break;
    default:
      return unknown_register(wave, op, part.id);
  }
  return Next::go;
}

Next move_immediate(Wave& wave, const Op& op) {
  wave.scalar[op.sdst] = static_cast<Word>(op.offset);
  return Next::go;
}
Next conditional_move_immediate(Wave& wave, const Op& op) {
  if (wave.scc) wave.scalar[op.sdst] = static_cast<Word>(op.offset);
  return Next::go;
}
Next add_immediate(Wave& wave, const Op& op) {
  const Word a = scalar_source32(wave, op, 0), b = static_cast<Word>(op.offset), sum = a + b;
  wave.scc = ((~(a ^ b) & (a ^ sum)) >> 31U) != 0;
  wave.scalar[op.sdst] = sum;
  return Next::go;
}
Next multiply_immediate(Wave& wave, const Op& op) {
  wave.scalar[op.sdst] = scalar_source32(wave, op, 0) * static_cast<Word>(op.offset);
  return Next::go;
}

// A loop that runs for each half of a wave of 64 lanes that has active ones, the low one first; the register keeps the
// other half's EXEC meanwhile.
Next begin_halves(Wave& wave, const Op& op) {
  if (wave.halves == 1) return refuse(wave, op, FaultKind::bad_state, "in a wave of 32 lanes");
  Word* const exec = wave.scalar + scalar_index::exec;
  wave.pc = wave.block->end;
  if (exec[0] == 0 && exec[1] == 0) {
    wave.pc += static_cast<Wide>(static_cast<std::int64_t>(op.offset));
  } else if (exec[0] == 0) {
    wave.scalar[op.sdst] = exec[0];
  } else {
    wave.scalar[op.sdst] = exec[1];
    exec[1] = 0;
  }
  return Next::jump;
}
Next end_halves(Wave& wave, const Op& op) {
  if (wave.halves == 1) return refuse(wave, op, FaultKind::bad_state, "in a wave of 32 lanes");
  Word* const exec = wave.scalar + scalar_index::exec;
  wave.pc = wave.block->end;
  if (exec[1] != 0) {
    exec[0] = wave.scalar[op.sdst];
  } else if (wave.scalar[op.sdst] != 0) {
    exec[1] = wave.scalar[op.sdst];
    wave.scalar[op.sdst] = exec[0];
    exec[0] = 0;
    wave.pc += static_cast<Wide>(static_cast<std::int64_t>(op.offset));
  }
  return Next::jump;
}

constexpr Semantics sopk_entries[] = {
    {"s_subvector_loop_begin", &begin_halves},
    {"s_subvector_loop_end", &end_halves},
    {"s_movk_i32", &move_immediate},
    {"s_cmovk_i32", &conditional_move_immediate},
    {"s_addk_i32", &add_immediate},
    {"s_mulk_i32", &multiply_immediate},
    {"s_getreg_b32", &get_register},
    {"s_setreg_b32", &set_register},
    {"s_setreg_imm32_b32", &set_register},
};

}  // namespace

SemanticsList sopk() noexcept { return {sopk_entries, std::size(sopk_entries)}; }

// Scalar comparisons: SOPC, and those of SOPK with an immediate.

namespace {

using Int = std::int32_t;

template <class T>
struct First;
template <class C, class A>
struct First<bool (C::*)(A, A) const> {
  using type = A;
};
template <auto Body>
Next compare_immediate(Wave& wave, const Op& op) {
  using T = typename First<decltype(&decltype(Body)::operator())>::type;
  wave.scc = Body(read<T>(wave, op, 0), static_cast<T>(op.offset));
  return Next::go;
}
template <auto Body>
constexpr Semantics with_immediate(const char* name) {
  return {name, &compare_immediate<Body>};
}

constexpr Semantics compare_entries[] = {
    scalar<[](Int a, Int b) { return (a == b); }>("s_cmp_eq_i32"),
    scalar<[](Int a, Int b) { return (a != b); }>("s_cmp_lg_i32"),
    scalar<[](Int a, Int b) { return (a > b); }>("s_cmp_gt_i32"),
    scalar<[](Int a, Int b) { return (a >= b); }>("s_cmp_ge_i32"),
    scalar<[](Int a, Int b) { return (a < b); }>("s_cmp_lt_i32"),
    scalar<[](Int a, Int b) { return (a <= b); }>("s_cmp_le_i32"),
    scalar<[](Word a, Word b) { return (a == b); }>("s_cmp_eq_u32"),
    scalar<[](Word a, Word b) { return (a != b); }>("s_cmp_lg_u32"),
    scalar<[](Word a, Word b) { return (a > b); }>("s_cmp_gt_u32"),
    scalar<[](Word a, Word b) { return (a >= b); }>("s_cmp_ge_u32"),
    scalar<[](Word a, Word b) { return (a < b); }>("s_cmp_lt_u32"),
    scalar<[](Word a, Word b) { return (a <= b); }>("s_cmp_le_u32"),
    scalar<[](Wide a, Wide b) { return a == b; }>("s_cmp_eq_u64"),
    scalar<[](Wide a, Wide b) { return a != b; }>("s_cmp_lg_u64"),
    scalar<[](Word a, Word b) { return ((a >> (b & 31U) & 1U) == 0); }>("s_bitcmp0_b32"),
    scalar<[](Wide a, Word b) { return ((a >> (b & 63U) & 1U) == 0); }>("s_bitcmp0_b64"),
    scalar<[](Word a, Word b) { return ((a >> (b & 31U) & 1U) != 0); }>("s_bitcmp1_b32"),
    scalar<[](Wide a, Word b) { return ((a >> (b & 63U) & 1U) != 0); }>("s_bitcmp1_b64"),
    with_immediate<[](Int a, Int b) { return (a == b); }>("s_cmpk_eq_i32"),
    with_immediate<[](Int a, Int b) { return (a != b); }>("s_cmpk_lg_i32"),
    with_immediate<[](Int a, Int b) { return (a > b); }>("s_cmpk_gt_i32"),
    with_immediate<[](Int a, Int b) { return (a >= b); }>("s_cmpk_ge_i32"),
    with_immediate<[](Int a, Int b) { return (a < b); }>("s_cmpk_lt_i32"),
    with_immediate<[](Int a, Int b) { return (a <= b); }>("s_cmpk_le_i32"),
    with_immediate<[](Word a, Word b) { return (a == b); }>("s_cmpk_eq_u32"),
    with_immediate<[](Word a, Word b) { return (a != b); }>("s_cmpk_lg_u32"),
    with_immediate<[](Word a, Word b) { return (a > b); }>("s_cmpk_gt_u32"),
    with_immediate<[](Word a, Word b) { return (a >= b); }>("s_cmpk_ge_u32"),
    with_immediate<[](Word a, Word b) { return (a < b); }>("s_cmpk_lt_u32"),
    with_immediate<[](Word a, Word b) { return (a <= b); }>("s_cmpk_le_u32"),
};

}  // namespace

SemanticsList compare() noexcept { return {compare_entries, std::size(compare_entries)}; }

}  // namespace kiln::simulator::scalar_unit
