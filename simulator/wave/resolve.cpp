#include "simulator/wave/resolve.hpp"

#include <algorithm>
#include <string>

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

std::optional<Fault> Resolver::resolve(DecodedAt& decoded, std::uint16_t index, std::vector<Op>& ops,
                                       bool& open) const {
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
      case Format::vopd:
        reason = dual(decoded, base, ops);
        break;
      case Format::vop1:
      case Format::vop2:
      case Format::vopc:
      case Format::vop3:
      case Format::vop3sd:
      case Format::vop3p:
        reason = vector(decoded, base, ops);
        break;
      case Format::ds:
      case Format::flat:
      case Format::global:
      case Format::scratch:
        reason = memory(decoded, base, ops);
        break;
      case Format::mubuf:
      case Format::mtbuf:
      case Format::mimg:
        reason = buffer(decoded, base, ops);
        break;
      default:
        scalar(decoded, base, ops);
        break;
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

// Sources: address (index first), data, scalar offset or sampler. sdst: descriptor. select: 1 returns, 2 index, 4
// offset. An image's address stands in the instruction alone.
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
  const bool status = in.tfe && in.format != Format::mimg;
  if (status) {
    ops.push_back(op);
    ops.back().run = &memory_unit::buffer_status;
  }
  ops.push_back(op);
  if (status) {
    Op copy = base;
    copy.run = semantics_.vector().copy_row;
    copy.vdst = static_cast<std::uint16_t>(op.vdst + dwords_of(in.dst.type, WaveSize::wave32) - 1);
    set_row(copy, 0, 0);
    ops.push_back(copy);
  }
  return std::nullopt;
}

namespace {

bool is_wide(DataType type) { return bits_of(type) == 64; }
bool is_narrow(DataType type) { return bits_of(type) == 16 && !is_packed(type); }

// 0.5 -0.5 1 -1 2 -2 4 -4 1/(2 pi), as halves, floats and doubles.
constexpr std::uint64_t inline_half[] = {0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000, 0xC000, 0x4400, 0xC400, 0x3118};
constexpr std::uint64_t inline_single[] = {0x3F000000, 0xBF000000, 0x3F800000, 0xBF800000, 0x40000000,
                                           0xC0000000, 0x40800000, 0xC0800000, 0x3E22F983};
constexpr std::uint64_t inline_double[] = {0x3FE0000000000000, 0xBFE0000000000000, 0x3FF0000000000000,
                                           0xBFF0000000000000, 0x4000000000000000, 0xC000000000000000,
                                           0x4010000000000000, 0xC010000000000000, 0x3FC45F306DC9C882};

std::uint64_t inline_float(unsigned index, DataType type) {
  if (is_wide(type)) return inline_double[index];
  if (type == DataType::bf16 || type == DataType::v2bf16 || type == DataType::matrix_bf16)
    return inline_single[index] >> 16U;
  if (is_narrow(type) || type == DataType::v2f16) return inline_half[index];
  return inline_single[index];
}

std::uint64_t literal_value(std::uint32_t literal, DataType type) {
  if (type == DataType::f64) return static_cast<std::uint64_t>(literal) << 32U;
  if (type == DataType::i64) return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(literal)});
  return literal;
}

std::uint64_t aperture(unsigned code) {
  switch (code) {
    case operand::shared_base:
      return shared_aperture;
    case operand::shared_limit:
      return shared_aperture | 0xFFFFFFFFU;
    case operand::private_base:
      return private_aperture;
    default:
      return private_aperture | 0xFFFFFFFFU;
  }
}

}  // namespace

std::optional<std::uint64_t> constant_of(const Operand& operand, std::uint32_t literal) {
  const unsigned code = operand.code;
  if (code == operand::null) return 0;
  if (code >= operand::integers && code < operand::integers_end) {
    const std::int64_t value = code <= 192 ? std::int64_t{code} - 128 : 192 - std::int64_t{code};
    return is_wide(operand.type) ? static_cast<std::uint64_t>(value) : static_cast<std::uint32_t>(value);
  }
  if (code >= operand::shared_base && code <= operand::private_limit) {
    // A read of 32 bits sees the half that tells apertures apart.
    return is_wide(operand.type) ? aperture(code) : aperture(code) >> 32U;
  }
  if (code >= operand::floats && code < operand::floats_end) return inline_float(code - operand::floats, operand.type);
  if (code == operand::literal) return literal_value(literal, operand.type);
  return std::nullopt;
}

}  // namespace kiln::simulator
