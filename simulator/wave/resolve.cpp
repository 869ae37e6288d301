#include "simulator/wave/resolve.hpp"

#include <algorithm>
#include <string>

#include "simulator/wave/op.hpp"
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
  operands(op, in.opcode, in.dst, {}, in.src.data(), 3, in.literal);
  op.offset = in.offset;
  op.extra = in.offset1;
  op.select = in.dst.present() ? 1 : 0;
  op.sdst = in.src[2].code;  // read where it is a scalar register
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

// The part of Resolver for the vector unit: modifiers, what stands around an instruction whose sources or results are
// sub-words (SDWA) or other lanes' (DPP), and pairs (VOPD).

namespace {

constexpr unsigned dpp_row = 0, result_row = 0, first_selected_row = 1, dpp_result_row = 3;  // scratch rows

// The modifier that the instruction carries and its handler does not honour.
std::optional<std::string> unhonoured(const Instruction& in, std::uint8_t takes_what) {
  const auto takes_it = [&](std::uint8_t what) { return (takes_what & what) != 0; };
  if ((in.abs != 0 || in.neg != 0 || in.neg_hi != 0) && !takes_it(takes::float_sources)) return "abs or neg";
  if (in.omod != 0 && !takes_it(takes::float_result)) return "omod";
  if (in.clamp && !takes_it(takes::float_result) && !takes_it(takes::saturation)) return "clamp";
  if (in.op_sel != 0 && !takes_it(takes::halves)) return "op_sel";
  return std::nullopt;
}

bool reads_row(const Op& op, std::uint16_t row) {
  for (unsigned s = 0; s < 3; ++s) {
    if (op.kind[s] == SourceKind::row && op.reg[s] == row) return true;
  }
  return false;
}

}  // namespace

// REQUIRES: all of `op` but its handler is set.
void Resolver::choose_handler(Op& op, const Semantics& semantics) const {
  op.run = semantics.run;
  if ((op.negate | op.absolute | op.select | op.output) != 0) return;
  const auto lies_in_lanes = [&](unsigned s) {
    return op.kind[s] == SourceKind::none || op.kind[s] == SourceKind::row || op.kind[s] == SourceKind::constant;
  };
  if (!lies_in_lanes(1) || !lies_in_lanes(2)) return;
  if (lies_in_lanes(0) && semantics.quick != nullptr) op.run = semantics.quick;
  if (op.kind[0] == SourceKind::scalar && semantics.quick_scalar != nullptr) op.run = semantics.quick_scalar;
}

std::optional<std::string> Resolver::vector(const DecodedAt& at, Op base, std::vector<Op>& ops) const {
  const Instruction& in = at.instruction;
  const Semantics& semantics = *semantics_.find(in.opcode);
  if (std::optional<std::string> modifier = unhonoured(in, semantics.modifiers)) {
    return *modifier + " is not simulated for it";
  }
  Op op = base;
  op.detail = semantics.detail;
  op.select = in.op_sel;
  op.negate = in.neg;
  op.absolute = static_cast<std::uint8_t>(in.abs | in.neg_hi);
  op.select_high = in.op_sel_hi;
  op.output = static_cast<std::uint8_t>((in.omod & output_omod) | (in.clamp ? output_clamp : 0));
  operands(op, in.opcode, in.dst, in.sdst, in.src.data(), 3, in.literal);

  switch (in.lanes) {
    case LaneControl::none:
      choose_handler(op, semantics);
      ops.push_back(op);
      break;
    case LaneControl::sdwa:
      sub_words(in, base, op, ops);
      break;
    default:
      other_lanes(in, base, op, ops);
      break;
  }
  return std::nullopt;
}

// SDWA: parts of sources are picked into scratch rows before, and a part of the destination is merged after.
void Resolver::sub_words(const Instruction& in, const Op& base, Op op, std::vector<Op>& ops) const {
  const VectorBuild& build = semantics_.vector();
  for (unsigned s = 0; s < 2; ++s) {
    if (op.kind[s] == SourceKind::none || in.sdwa.src[s] == Select::dword) continue;
    Op pick = base;
    pick.run = build.sub_word_source;
    pick.kind[0] = op.kind[s];
    pick.reg[0] = op.reg[s];
    pick.place[0] = op.place[s];
    pick.vdst = static_cast<std::uint16_t>(first_selected_row + s);
    pick.detail = static_cast<std::uint8_t>(in.sdwa.src[s]);
    pick.extra = in.sdwa.sign_extend[s] ? 1 : 0;
    ops.push_back(pick);
    set_row(op, s, pick.vdst);
  }
  const bool partial = in.dst.is_vgpr() && in.sdwa.dst != Select::dword;
  const std::uint16_t real = op.vdst;
  if (partial) op.vdst = result_row;
  choose_handler(op, *semantics_.find(in.opcode));
  ops.push_back(op);
  if (!partial) return;
  Op merge = base;
  merge.run = build.sub_word_result;
  set_row(merge, 0, result_row);
  merge.vdst = real;
  merge.detail = static_cast<std::uint8_t>(in.sdwa.dst);
  merge.extra = in.sdwa.unused == Unused::preserve      ? lane_control::preserve
                : in.sdwa.unused == Unused::sign_extend ? lane_control::extend
                                                        : lane_control::pad;
  ops.push_back(merge);
}

// DPP: source 0 moves between lanes into a scratch row before. If not all lanes of EXEC take part, a result of one
// whole register goes to a scratch row and from there to the lanes that do; for any other EXEC is narrowed.
void Resolver::other_lanes(const Instruction& in, const Op& base, Op op, std::vector<Op>& ops) const {
  const VectorBuild& build = semantics_.vector();
  Op begin = base;
  begin.run = build.lane_control_begin;
  begin.kind[0] = op.kind[0];
  begin.reg[0] = op.reg[0];
  begin.place[0] = op.place[0];
  begin.vdst = dpp_row;
  begin.detail = static_cast<std::uint8_t>(in.dpp.row_mask | in.dpp.bank_mask << 4U);
  begin.select = static_cast<std::uint8_t>((in.dpp.bound_control ? lane_control::bound : 0) |
                                           (in.dpp.fetch_inactive ? lane_control::inactive : 0));
  begin.extra = in.dpp.control;
  if (in.lanes == LaneControl::dpp8) {
    begin.select |= lane_control::eight | lane_control::bound;
    begin.detail = 0xFF;
    std::uint32_t selectors = 0;
    for (unsigned i = 0; i < 8; ++i) selectors |= (in.dpp.selectors[i] & 7U) << 3U * i;
    begin.offset = static_cast<std::int32_t>(selectors);
  }
  set_row(op, 0, dpp_row);
  const bool all_take_part = (begin.select & lane_control::bound) != 0 && begin.detail == 0xFF;
  const bool one_register = in.dst.is_vgpr() && bits_of(in.dst.type) == 32 && !in.sdst.present() && op.select == 0;
  if (all_take_part || one_register) {
    begin.select |= lane_control::whole;
    ops.push_back(begin);
    const bool moves_only = in.opcode == Opcode::v_mov_b32 && op.negate == 0 && op.absolute == 0;
    const std::uint16_t real = op.vdst;
    if (!all_take_part) op.vdst = dpp_result_row;
    if (all_take_part || !moves_only) {
      choose_handler(op, *semantics_.find(in.opcode));
      ops.push_back(op);
    }
    if (all_take_part) return;
    Op merge = base;
    merge.run = build.lane_control_merge;
    set_row(merge, 0, static_cast<std::uint16_t>(moves_only ? dpp_row : dpp_result_row));
    merge.vdst = real;
    ops.push_back(merge);
    return;
  }
  choose_handler(op, *semantics_.find(in.opcode));
  ops.push_back(begin);
  ops.push_back(op);
  if (in.has(flag::exec_out)) return;
  Op end = base;
  end.run = build.lane_control_end;
  ops.push_back(end);
}

// Both halves read before either writes. In most pairs one order of the halves keeps that; else the first half's result
// waits in a scratch row.
std::optional<std::string> Resolver::dual(const DecodedAt& at, Op base, std::vector<Op>& ops) const {
  const Instruction& in = at.instruction;
  const Semantics* first = semantics_.find(in.opcode);
  const Semantics* second = semantics_.find(in.y.opcode);
  if (first == nullptr) return "is not simulated";
  if (second == nullptr) return "with " + std::string(info(in.y.opcode).name) + ", which is not simulated";
  Op x = base, y = base;
  operands(x, in.opcode, in.dst, {}, in.src.data(), 3, in.literal);
  operands(y, in.y.opcode, in.y.dst, {}, in.y.src.data(), 3, in.literal);
  choose_handler(x, *first);
  choose_handler(y, *second);
  if (!reads_row(y, x.vdst)) {
    ops.push_back(x);
    ops.push_back(y);
  } else if (!reads_row(x, y.vdst)) {
    ops.push_back(y);
    ops.push_back(x);
  } else {
    Op copy = base;
    copy.run = semantics_.vector().copy_row;
    set_row(copy, 0, result_row);
    copy.vdst = x.vdst;
    x.vdst = result_row;
    ops.push_back(x);
    ops.push_back(y);
    ops.push_back(copy);
  }
  return std::nullopt;
}

}  // namespace kiln::simulator
