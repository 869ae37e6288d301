#include "simulator/wave/check/effects.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

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

// Compilers write EXEC and VCC whole: a write of another width tells the size that the code is for.
bool masks_tell_size(const Instruction& in, const Effects& effects, WaveSize wave) {
  const bool saves_exec = in.has(flag::exec_out) && in.format == Format::sop1;
  if (wave == WaveSize::wave32) {
    const bool writes_exec =
        (in.format == Format::sop1 || in.format == Format::sop2) && in.dst.present() && in.dst.code == operand::exec_lo;
    return (saves_exec || writes_exec) && dwords_of(in.dst.type, wave) == 2;
  }
  if (saves_exec || in.opcode == Opcode::s_cbranch_vccz || in.opcode == Opcode::s_cbranch_vccnz) return true;
  return std::any_of(effects.writes.begin(), effects.writes.end(), [](const Registers& registers) {
    const auto meets = [&](unsigned low) {
      return registers.first <= low + 1 && low < registers.first + registers.count;
    };
    return !registers.vector && (meets(operand::exec_lo) || meets(operand::vcc_lo));
  });
}

// Sums, differences and exclusive disjunctions are Change::add: zero leaves the old value. In LDS `_rtn` may stand
// between the operation and its type.
Change change_of(std::string_view name) {
  constexpr std::pair<std::string_view, Change> changes[] = {
      {"_add_", Change::add},   {"_sub_", Change::add},     {"_xor_", Change::add},
      {"_or_", Change::bit_or}, {"_and_", Change::bit_and}, {"_swap_", Change::swap},
      {"xchg_", Change::swap},  {"_min_", Change::min},     {"_max_", Change::max}};
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("_f32") || has("_f64")) return Change::other;
  for (const auto& [part, change] : changes) {
    if (!has(part)) continue;
    const bool is_signed = has("_i32") || has("_i64");
    if (is_signed && change == Change::min) return Change::min_signed;
    return is_signed && change == Change::max ? Change::max_signed : change;
  }
  return Change::other;
}

void touch(RegisterSet& set, const Registers& registers) {
  const unsigned first = registers.first + (registers.vector ? 0 : RegisterSet::scalars);
  const unsigned end = std::min(first + registers.count, registers.vector ? RegisterSet::scalars : RegisterSet::count);
  for (unsigned bit = first; bit < end; ++bit) set.insert(bit);
}

bool is_relative(Opcode opcode) {
  const RelativeOffsets offsets = relative_offsets(opcode, 0x00010001U);
  return offsets.source != 0 || offsets.destination != 0;
}

bool is_plain(const Instruction& in, const Effects& effects) {
  switch (in.format) {
    case Format::sopp:  // most of what paces has no effect here
      return !effects.masks && in.opcode != Opcode::s_waitcnt && in.opcode != Opcode::s_wait_idle;
    case Format::sop1:
    case Format::sop2:
    case Format::sopc:
    case Format::sopk:
    case Format::vop1:
    case Format::vop2:
    case Format::vopc:
    case Format::vop3:
    case Format::vop3sd:
    case Format::vop3p:
    case Format::vopd:
      return effects.reach == Reach::none && !effects.masks && !in.has(flag::waits);
    default:
      return false;
  }
}

}  // namespace

RelativeOffsets relative_offsets(Opcode opcode, std::uint32_t m0) {
  switch (opcode) {
    case Opcode::v_movreld_b32:
    case Opcode::s_movreld_b32:
    case Opcode::s_movreld_b64:
      return {0, m0};
    case Opcode::v_movrels_b32:
    case Opcode::s_movrels_b32:
    case Opcode::s_movrels_b64:
      return {m0, 0};
    case Opcode::v_movrelsd_b32:
      return {m0, m0};
    case Opcode::v_movrelsd_2_b32:
    case Opcode::v_swaprel_b32:
    case Opcode::s_movrelsd_2_b32:
      return {m0 & 0x3FFU, m0 >> 16U & 0x3FFU};
    default:
      return {};
  }
}

Effects effects_of(const Instruction& in, WaveSize wave) {
  Effects effects;
  for (const Operand& source : in.src) add(effects.reads, source, wave);
  for (const Operand& source : in.y.src) add(effects.reads, source, wave);
  for (unsigned i = 0; i < in.image.addresses; ++i) {
    effects.reads.push_back({in.image.address[i], 1, true});
  }
  if (in.has(flag::vcc_in)) add(effects.reads, {operand::vcc_lo, DataType::mask}, wave);
  if (in.has(flag::m0_in)) add(effects.reads, {operand::m0, DataType::b32}, wave);
  const bool both = in.opcode == Opcode::v_swap_b32 || in.opcode == Opcode::v_swaprel_b32;
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
  effects.scc = !effects.vector || std::any_of(in.src.begin(), in.src.end(), [](const Operand& source) {
    return source.present() && source.code == operand::scc;
  });
  const std::string_view name = info(in.opcode).name;
  effects.exchange = effects.atomic && name.find("cmp") != std::string_view::npos;
  if (effects.atomic && !effects.exchange) effects.change = change_of(name);
  effects.stride64 = name.find("stride64") != std::string_view::npos;
  effects.masks = masks_tell_size(in, effects, wave);
  for (const Registers& registers : effects.reads) touch(effects.touched, registers);
  for (const Registers& registers : effects.writes) touch(effects.touched, registers);
  if (!effects.vector) {  // a scalar instruction has both words of a mask, whatever the wave's size
    for (const Operand* operand : {&in.dst, &in.src[0], &in.src[1], &in.src[2]}) {
      if (!operand->present() || operand->code >= operand::integers) continue;
      touch(effects.touched, {static_cast<std::uint16_t>(operand->index()),
                              static_cast<std::uint8_t>(dwords_of(operand->type, WaveSize::wave64)), false});
    }
  }
  effects.relative = is_relative(in.opcode);
  if (effects.relative) effects.touched.words.fill(~std::uint64_t{0});
  effects.plain = is_plain(in, effects);
  return effects;
}

}  // namespace kiln::simulator
