#include "simulator/wave/check/effects.hpp"

#include <algorithm>

namespace kiln::simulator {
namespace {

void add(std::vector<Registers>& list, const Operand& operand, WaveSize wave) {
  if (!operand.present()) return;
  Registers registers;
  registers.vector = operand.is_vgpr();
  if (!registers.vector && (operand.code >= operand::integers || operand.code == operand::null)) return;
  registers.first = static_cast<std::uint16_t>(operand.index());
  registers.count = static_cast<std::uint8_t>(dwords_of(operand.type, wave));
  if (std::find(list.begin(), list.end(), registers) == list.end()) list.push_back(registers);
}

Reach reach_of(const Instruction& in) {
  switch (in.format) {
    case Format::smem:
      return Reach::scalar;
    case Format::sop1:
      return in.opcode == Opcode::s_sendmsg_rtn_b32 || in.opcode == Opcode::s_sendmsg_rtn_b64 ? Reach::scalar
                                                                                              : Reach::none;
    case Format::ds:
      return Reach::local;
    case Format::flat:
      return Reach::flat;
    case Format::global:
    case Format::scratch:
    case Format::mubuf:
    case Format::mtbuf:
    case Format::mimg:
      return Reach::vector;
    default:
      return Reach::none;
  }
}

}  // namespace

Effects effects_of(const Instruction& in, WaveSize wave) {
  Effects effects;
  for (const Operand& source : in.src) add(effects.reads, source, wave);
  for (const Operand& source : in.y.src) add(effects.reads, source, wave);
  for (unsigned i = 0; i < in.image.addresses; ++i) {
    effects.reads.push_back({in.image.address[i], 1, true});
  }
  if (in.has(flag::vcc_in)) add(effects.reads, {operand::vcc_lo, DataType::mask}, wave);
  if (in.has(flag::m0_in)) add(effects.reads, {operand::m0, DataType::b32}, wave);
  const bool both = in.opcode == Opcode::v_swap_b32;
  if (in.has(flag::accumulate) || both) add(effects.reads, in.dst, wave);
  if (in.format == Format::vopd && (info(in.y.opcode).flags & flag::accumulate) != 0) {
    add(effects.reads, in.y.dst, wave);
  }
  add(effects.writes, in.dst, wave);
  add(effects.writes, in.sdst, wave);
  add(effects.writes, in.y.dst, wave);
  if (both) add(effects.writes, in.src[0], wave);

  effects.reach = reach_of(in);
  effects.load = effects.reach != Reach::none && in.dst.present();
  effects.atomic = in.has(flag::atomic);
  effects.store = in.has(flag::store) || effects.atomic;
  effects.vector = in.format >= Format::vop1;
  return effects;
}

}  // namespace kiln::simulator
