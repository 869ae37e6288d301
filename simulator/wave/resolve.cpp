#include "simulator/wave/resolve.hpp"

#include <algorithm>
#include <string>

#include "simulator/wave/operand_constants.hpp"
#include "simulator/wave/wave.hpp"

namespace kiln::simulator {
namespace {

std::uint16_t destination(const Operand& operand) {
  return static_cast<std::uint16_t>(operand.code == operand::null ? scalar_sink : operand.code);
}

void reach(DecodedAt& at, const Operand& operand, WaveSize wave) {
  if (!operand.is_vgpr()) return;
  const unsigned end = operand.index() + dwords_of(operand.type, wave);
  at.vgpr_end = static_cast<std::uint16_t>(std::max<unsigned>(at.vgpr_end, end));
}

}  // namespace

void Resolver::set_row(Op& op, unsigned index, std::uint16_t row) const {
  op.kind[index] = SourceKind::row;
  op.reg[index] = row;
  op.place[index] = std::uintptr_t{row} * static_cast<std::uintptr_t>(target_.wave) * sizeof(std::uint32_t);
}

void Resolver::source(Op& op, unsigned index, const Operand& operand, std::uint32_t literal) const {
  if (!operand.present()) {
    op.kind[index] = SourceKind::none;
  } else if (operand.is_vgpr()) {
    set_row(op, index, static_cast<std::uint16_t>(operand.index() + scratch_rows));
  } else if (const auto constant = constant_of(operand, literal)) {
    op.kind[index] = SourceKind::constant;
    op.place[index] = reinterpret_cast<std::uintptr_t>(constants_.spread(*constant));
  } else {
    op.kind[index] = operand.code < operand::integers ? SourceKind::scalar : SourceKind::special;
    op.reg[index] = operand.code;
  }
}

void Resolver::operands(Op& op, Opcode opcode, const Operand& dst, const Operand& sdst, const Operand* sources,
                        unsigned count, std::uint32_t literal) const {
  if (dst.is_vgpr()) {
    op.vdst = static_cast<std::uint16_t>(dst.index() + scratch_rows);
  } else if (dst.present()) {
    op.sdst = destination(dst);
  }
  if (sdst.present()) op.sdst = destination(sdst);
  for (unsigned i = 0; i < count; ++i) source(op, i, sources[i], literal);
  const bool accumulates = (info(opcode).flags & flag::accumulate) != 0;
  if (accumulates && op.kind[2] == SourceKind::none && dst.is_vgpr()) {
    set_row(op, 2, op.vdst);
    if ((op.select & 8U) != 0) op.select |= 4;
  }
}

std::optional<Fault> Resolver::resolve(DecodedAt& decoded, std::uint16_t index, std::vector<Op>& ops, bool& open) const {
  const Instruction& in = decoded.instruction;
  for (const Operand* operand : {&in.dst, &in.sdst, &in.src[0], &in.src[1], &in.src[2], &in.src[3], &in.y.dst,
                                 &in.y.src[0], &in.y.src[1], &in.y.src[2]}) {
    reach(decoded, *operand, target_.wave);
  }
  for (unsigned i = 0; i < in.image.addresses; ++i) {
    decoded.vgpr_end = std::max<std::uint16_t>(decoded.vgpr_end, static_cast<std::uint16_t>(in.image.address[i] + 1));
  }
  Op base;
  base.index = index;
  std::optional<std::string> reason;
  if (in.format != Format::vopd && semantics_.find(in.opcode) == nullptr) {
    reason = "is not simulated";
  } else {
    switch (in.format) {
      case Format::vopd: reason = dual(decoded, base, ops); break;
      case Format::vop1:
      case Format::vop2:
      case Format::vopc:
      case Format::vop3:
      case Format::vop3sd:
      case Format::vop3p: reason = vector(decoded, base, ops); break;
      case Format::ds:
      case Format::flat:
      case Format::global:
      case Format::scratch: reason = memory(decoded, base, ops); break;
      case Format::mubuf:
      case Format::mtbuf:
      case Format::mimg: reason = buffer(decoded, base, ops); break;
      default: scalar(decoded, base, ops); break;
    }
  }
  if (reason) {
    return Fault{FaultKind::unknown_opcode, decoded.address, decoded.word,
                 std::string(mnemonic(in.opcode, target_.generation)) + ": " + *reason};
  }
  constexpr std::uint32_t leaving = flag::branch | flag::ends;
  if (in.has(leaving) || in.opcode == Opcode::s_barrier || in.opcode == Opcode::s_setpc_b64 ||
      in.opcode == Opcode::s_swappc_b64 || in.opcode == Opcode::s_sleep || in.opcode == Opcode::s_code_end) {
    open = false;
  }
  return std::nullopt;
}

void Resolver::scalar(const DecodedAt& at, Op base, std::vector<Op>& ops) const {
  const Instruction& in = at.instruction;
  const Semantics& semantics = *semantics_.find(in.opcode);
  if ((semantics.modifiers & takes::no_time) != 0) return;
  Op op = base;
  op.run = semantics.run;
  op.detail = semantics.detail;
  operands(op, in.opcode, in.dst, in.sdst, in.src.data(), 3, in.literal);
  op.offset = in.format == Format::smem || in.has(flag::branch) ? in.offset : in.simm16;
  if (in.format == Format::smem && in.src[0].present()) op.reg[0] = in.src[0].code;
  ops.push_back(op);
}

// DS, FLAT, GLOBAL, SCRATCH: sources are address, data, second data (DS) or scalar base; `select` bit 0: returns.
std::optional<std::string> Resolver::memory(const DecodedAt& at, Op base, std::vector<Op>& ops) const {
  const Instruction& in = at.instruction;
  const Semantics& semantics = *semantics_.find(in.opcode);
  Op op = base;
  op.run = semantics.run;
  op.detail = semantics.detail;
  operands(op, in.opcode, in.dst, {}, in.src.data(), 3, in.literal);
  op.offset = in.offset;
  op.extra = in.offset1;
  op.select = in.dst.present() ? 1 : 0;
  if (in.src[2].present() && !in.src[2].is_vgpr()) {
    op.sdst = in.src[2].code;
    if (in.src[2].code == operand::null) op.kind[2] = SourceKind::none;
  }
  ops.push_back(op);
  return std::nullopt;
}

// Sources: address (index first), data, scalar offset or sampler. sdst: descriptor. select: 1 returns, 2 index, 4 offset.
// An image's address stands in the instruction alone.
std::optional<std::string> Resolver::buffer(const DecodedAt& at, Op base, std::vector<Op>& ops) const {
  const Instruction& in = at.instruction;
  const Semantics& semantics = *semantics_.find(in.opcode);
  if ((semantics.modifiers & takes::no_time) != 0) return std::nullopt;
  Op op = base;
  op.run = semantics.run;
  op.detail = semantics.detail;
  if (in.dst.is_vgpr()) op.vdst = static_cast<std::uint16_t>(in.dst.index() + scratch_rows);
  source(op, 0, in.src[0], in.literal);
  source(op, 1, in.src[3], in.literal);
  source(op, 2, in.src[2], in.literal);
  op.sdst = in.src[1].code;
  op.offset = in.offset;
  op.extra = in.buffer_format;
  op.select = static_cast<std::uint8_t>((in.dst.present() ? 1 : 0) | (in.idxen ? 2 : 0) | (in.offen ? 4 : 0));
  ops.push_back(op);
  return std::nullopt;
}

}  // namespace kiln::simulator
