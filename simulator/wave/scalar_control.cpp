// SOPP, and the instructions that read or change the program counter. Whatever leaves a block is its last instruction,
// so the block's end is the address after it.

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "simulator/isa/printer.hpp"
#include "simulator/wave/memory/buffer_space.hpp"
#include "simulator/wave/memory_port.hpp"
#include "simulator/wave/program.hpp"
#include "simulator/wave/scalar_operation.hpp"
#include "simulator/wave/semantics_table.hpp"

namespace kiln::simulator::scalar_unit {
namespace {

Next nothing(Wave&, const Op&) { return Next::go; }

Next jump(Wave& wave, const Op& op) {
  wave.pc = wave.block->end + static_cast<Wide>(static_cast<std::int64_t>(op.offset));
  return Next::jump;
}
Next stay(Wave& wave) {
  wave.pc = wave.block->end;
  return Next::jump;
}
template <bool When>
Next branch_scc(Wave& wave, const Op& op) {
  return wave.scc == When ? jump(wave, op) : stay(wave);
}
template <bool Zero>
Next branch_vcc(Wave& wave, const Op& op) {
  const Wide vcc = wave.halves == 1 ? wave.scalar[scalar_index::vcc] : wave.scalar64(scalar_index::vcc);
  return (vcc == 0) == Zero ? jump(wave, op) : stay(wave);
}
template <bool Zero>
Next branch_exec(Wave& wave, const Op& op) {
  return (wave.exec64() == 0) == Zero ? jump(wave, op) : stay(wave);
}
Next never(Wave& wave, const Op&) { return stay(wave); }

Next get_pc(Wave& wave, const Op& op) {
  const DecodedAt& at = wave.block->decoded[op.index];
  wave.set_scalar64(op.sdst, at.address + at.instruction.dwords * 4U);
  return Next::go;
}
Next set_pc(Wave& wave, const Op& op) {
  wave.pc = scalar_source(wave, op, 0);
  return Next::jump;
}
Next swap_pc(Wave& wave, const Op& op) {
  const Wide target = scalar_source(wave, op, 0);
  wave.set_scalar64(op.sdst, wave.block->end);
  wave.pc = target;
  return Next::jump;
}
Next call(Wave& wave, const Op& op) {
  wave.set_scalar64(op.sdst, wave.block->end);
  return jump(wave, op);
}

Next end_program(Wave&, const Op&) { return Next::end; }
Next barrier(Wave& wave, const Op&) {
  wave.pc = wave.block->end;
  return Next::barrier;
}
Next sleep(Wave& wave, const Op&) {
  wave.pc = wave.block->end;
  return Next::yield;
}
Next code_end(Wave& wave, const Op& op) {
  return refuse(wave, op, FaultKind::overrun, "ran past the end of the program");
}

Next round_mode(Wave& wave, const Op& op) {
  wave.set_mode((wave.mode & ~0xFU) | (static_cast<Word>(op.offset) & 0xFU));
  return Next::go;
}
Next denorm_mode(Wave& wave, const Op& op) {
  wave.set_mode((wave.mode & ~0xF0U) | (static_cast<Word>(op.offset) & 0xFU) << 4U);
  return Next::go;
}

Next refuse_message(Wave& wave, const Op& op, Word message) {
  constexpr std::string_view call = "sendmsg";
  const std::string text = isa::message_text(message, wave.generation);
  const std::string name = text.starts_with(call) ? " " + text.substr(call.size()) : std::string();
  return refuse(wave, op, FaultKind::unknown_opcode, "message " + std::to_string(message) + name + " is not simulated");
}

Next send_message(Wave& wave, const Op& op) {
  constexpr Word dealloc_vgprs = 3;
  const Word message = static_cast<Word>(op.offset) & 0xFFU;
  if (wave.generation == Generation::gfx11 && message == dealloc_vgprs) return Next::go;  // a hint, just before the end
  return refuse_message(wave, op, message);
}

template <class T>
Next message_for_answer(Wave& wave, const Op& op) {
  constexpr std::int32_t trap_memory = 130, clock = 131, trap_handler = 133;
  switch (op.offset) {
    case clock:
      write(wave, op, static_cast<T>(real_time()));
      return Next::go;
    case trap_memory:
    case trap_handler:
      write(wave, op, T{0});
      return Next::go;  // there is no trap handler
    default:
      return refuse_message(wave, op, static_cast<Word>(op.offset));
  }
}

constexpr Semantics control_entries[] = {
    {"s_nop", &nothing, takes::no_time},
    {"s_version", &nothing, takes::no_time},
    {"s_sleep", &sleep},
    {"s_set_inst_prefetch_distance", &nothing, takes::no_time},
    {"s_clause", &nothing, takes::no_time},
    {"s_delay_alu", &nothing, takes::no_time},
    {"s_waitcnt_depctr", &nothing, takes::no_time},
    {"s_waitcnt", &nothing, takes::no_time},
    {"s_waitcnt_vscnt", &nothing, takes::no_time},
    {"s_waitcnt_vmcnt", &nothing, takes::no_time},
    {"s_waitcnt_expcnt", &nothing, takes::no_time},
    {"s_waitcnt_lgkmcnt", &nothing, takes::no_time},
    {"s_wait_idle", &nothing, takes::no_time},
    {"s_wait_event", &nothing, takes::no_time},
    {"s_wakeup", &nothing, takes::no_time},
    {"s_setprio", &nothing, takes::no_time},
    {"s_incperflevel", &nothing, takes::no_time},
    {"s_decperflevel", &nothing, takes::no_time},
    {"s_ttracedata", &nothing, takes::no_time},
    {"s_ttracedata_imm", &nothing, takes::no_time},
    {"s_icache_inv", &nothing, takes::no_time},
    {"s_gl1_inv", &nothing, takes::no_time},
    {"s_dcache_inv", &nothing, takes::no_time},
    {"s_round_mode", &round_mode},
    {"s_denorm_mode", &denorm_mode},
    {"s_sendmsg", &send_message},
    {"s_sendmsg_rtn_b32", &message_for_answer<Word>},
    {"s_sendmsg_rtn_b64", &message_for_answer<Wide>},
    {"s_code_end", &code_end},
    {"s_endpgm", &end_program},
    {"s_barrier", &barrier},
    {"s_branch", &jump},
    {"s_cbranch_scc0", &branch_scc<false>},
    {"s_cbranch_scc1", &branch_scc<true>},
    {"s_cbranch_vccz", &branch_vcc<true>},
    {"s_cbranch_vccnz", &branch_vcc<false>},
    {"s_cbranch_execz", &branch_exec<true>},
    {"s_cbranch_execnz", &branch_exec<false>},
    {"s_cbranch_cdbgsys", &never},
    {"s_cbranch_cdbguser", &never},
    {"s_cbranch_cdbgsys_or_user", &never},
    {"s_cbranch_cdbgsys_and_user", &never},
    {"s_getpc_b64", &get_pc},
    {"s_setpc_b64", &set_pc},
    {"s_swappc_b64", &swap_pc},
    {"s_call_b64", &call},
};

}  // namespace

SemanticsList control() noexcept { return {control_entries, std::size(control_entries)}; }

// Scalar memory: loads by address and by buffer descriptor, and the clocks of gfx10.3.

namespace {

// The low two bits of an address count for nothing.
constexpr Wide whole_words = ~Wide{3};

template <unsigned Count>
Next load(Wave& wave, const Op& op) {
  const Wide base = wave.scalar64(op.reg[0]) & whole_words;
  const Word moved = op.kind[1] == SourceKind::none ? 0 : scalar_source32(wave, op, 1);
  const Wide address = (base + moved + static_cast<Wide>(static_cast<std::int64_t>(op.offset))) & whole_words;
  Word words[Count];
  const std::byte* from = wave.port->read(address);
  if (from == nullptr) return refuse(wave, op, wave.port->take_fault());
  if (address % Page::bytes + sizeof(words) <= Page::bytes) {
    std::memcpy(words, from, sizeof(words));
  } else if (!wave.port->load(address, words, sizeof(words))) {
    return refuse(wave, op, wave.port->take_fault());
  }
  for (unsigned i = 0; i < Count; ++i) wave.scalar[op.sdst + i] = words[i];
  return Next::go;
}

// What lies outside of the buffer reads as zero, word by word.
template <unsigned Count>
Next buffer_load(Wave& wave, const Op& op) {
  const BufferDescriptor buffer(wave.scalar + op.reg[0], wave.generation);
  const Wide limit = buffer.stride == 0 ? buffer.records : static_cast<Wide>(buffer.stride) * buffer.records;
  const Word moved = op.kind[1] == SourceKind::none ? 0 : scalar_source32(wave, op, 1);
  const Wide offset =
      (static_cast<Wide>(moved) + static_cast<Wide>(static_cast<std::int64_t>(op.offset))) & whole_words;
  Word words[Count] = {};
  const Wide inside = offset < limit ? std::min<Wide>(Count, (limit - offset) / 4) : 0;
  if (inside != 0 && !wave.port->load((buffer.base & whole_words) + offset, words, inside * 4)) {
    return refuse(wave, op, wave.port->take_fault());
  }
  for (unsigned i = 0; i < Count; ++i) wave.scalar[op.sdst + i] = words[i];
  return Next::go;
}

Next cycles(Wave& wave, const Op& op) {
  wave.set_scalar64(op.sdst, wave.clock + wave.instructions);
  return Next::go;
}
Next device_clock(Wave& wave, const Op& op) {
  wave.set_scalar64(op.sdst, real_time());
  return Next::go;
}

constexpr Semantics smem_entries[] = {
    {"s_load_b32", &load<1>},
    {"s_load_b64", &load<2>},
    {"s_load_b128", &load<4>},
    {"s_load_b256", &load<8>},
    {"s_load_b512", &load<16>},
    {"s_buffer_load_b32", &buffer_load<1>},
    {"s_buffer_load_b64", &buffer_load<2>},
    {"s_buffer_load_b128", &buffer_load<4>},
    {"s_buffer_load_b256", &buffer_load<8>},
    {"s_buffer_load_b512", &buffer_load<16>},
    {"s_memtime", &cycles},
    {"s_memrealtime", &device_clock},
};

}  // namespace

SemanticsList smem() noexcept { return {smem_entries, std::size(smem_entries)}; }

}  // namespace kiln::simulator::scalar_unit
