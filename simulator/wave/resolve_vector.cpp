// The part of Resolver for the vector unit: modifiers, what stands around an instruction whose sources or results are
// sub-words (SDWA) or other lanes' (DPP), and pairs (VOPD).
#include <string>

#include "simulator/wave/op.hpp"
#include "simulator/wave/resolve.hpp"

namespace kiln::simulator {
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
