#include "simulator/wave/check/undefined.hpp"

#include <algorithm>
#include <cstring>

#include "simulator/wave/check/undefined_rules.hpp"
#include "simulator/wave/memory/buffer_space.hpp"
#include "simulator/wave/resolve.hpp"

namespace kiln::simulator {

using namespace undefined_bits;

void Undefined::start(const Wave& wave, std::uint32_t vgprs, unsigned scalars, unsigned vectors,
                      std::vector<std::uint8_t>& lds) {
  row_shift_ = wave.row_shift;
  bits_.assign(static_cast<std::size_t>(vgprs) << row_shift_, ~0U);
  std::fill_n(bits_.begin(), std::min(bits_.size(), static_cast<std::size_t>(vectors) << row_shift_), 0U);
  dirty_ = {};
  for (unsigned vgpr = vectors; vgpr < std::min(vgprs, RegisterSet::scalars); ++vgpr) dirty_.insert(vgpr);
  scalar_.fill(0);
  for (unsigned index = scalars; index < operand::ttmp; ++index) set_scalar(index, ~0U);
  set_scalar(operand::m0, ~0U);
  scc_ = true;
  lds_ = &lds;
}

Undefined::Lanes Undefined::source(const Operand& operand, unsigned dword, unsigned half) {
  Lanes lanes{};
  if (!operand.present()) return lanes;
  if (operand.is_vgpr()) {
    const std::size_t at = (static_cast<std::size_t>(operand.index() + dword) << row_shift_) + half * 32U;
    if (at + 32 <= bits_.size()) std::copy_n(bits_.data() + at, 32, lanes.begin());
  } else if (operand.code < operand::integers && operand.code != operand::null) {
    lanes.fill(scalar_[operand.code + dword]);
  } else if (operand.code == operand::scc && scc_) {
    lanes.fill(~0U);
  }
  return lanes;
}

Undefined::Lanes Undefined::values(Wave& wave, const Operand& operand, const Instruction& in, unsigned half) {
  Lanes lanes{};
  if (!operand.present()) return lanes;
  if (operand.is_vgpr()) {
    std::copy_n(wave.row(scratch_rows + operand.index(), half), 32, lanes.begin());
  } else if (const auto constant = constant_of(operand, in.literal)) {
    lanes.fill(static_cast<Word>(*constant));
  } else if (operand.code < operand::integers) {
    lanes.fill(wave.scalar[operand.code]);
  }
  return lanes;
}

void Undefined::put(Wave& wave, unsigned vgpr, unsigned half, const Lanes& lanes) {
  if ((static_cast<std::size_t>(vgpr + 1U) << row_shift_) > bits_.size()) return;
  Word* to = row(vgpr, half);
  const Word mask = wave.exec(half);
  for (unsigned i = 0; i < 32; ++i) to[i] = (mask >> i & 1U) != 0 ? lanes[i] : to[i];
  note(vgpr);
}

void Undefined::note(unsigned vgpr) {
  const Word* begin = row(vgpr, 0);
  Word any = 0;
  for (unsigned i = 0; i < 1U << row_shift_; ++i) any |= begin[i];
  dirty_.set(vgpr, any != 0);
}

// The bits that a scalar instruction reads of its first source.
std::uint64_t Undefined::bits_read(const Wave& wave, const Instruction& in) {
  constexpr std::uint64_t all = ~std::uint64_t{0};
  switch (in.opcode) {
    case Opcode::s_sext_i32_i8:
      return 0xFFU;
    case Opcode::s_sext_i32_i16:
      return 0xFFFFU;
    case Opcode::s_bfe_u32:
    case Opcode::s_bfe_i32:
    case Opcode::s_bfe_u64:
    case Opcode::s_bfe_i64: {
      const auto constant = constant_of(in.src[1], in.literal);
      if (!constant && in.src[1].code >= operand::integers) return all;
      const Word field = constant ? static_cast<Word>(*constant) : wave.scalar[in.src[1].code];
      const Word first = field & (bits_of(in.src[0].type) - 1U), count = field >> 16U & 127U;
      return (count < 64 ? (std::uint64_t{1} << count) - 1U : all) << first;
    }
    default:
      return all;
  }
}

// All that an instruction writes counts as defined.
void Undefined::define(Wave& wave, const Effects& effects) {
  for (const Registers& registers : effects.writes) {
    for (unsigned i = 0; i < registers.count; ++i) {
      if (!registers.vector) {
        set_scalar(registers.first + i, 0);
        continue;
      }
      if (!dirty_.holds(registers.first + i)) continue;
      for (unsigned half = 0; half < wave.halves; ++half) put(wave, registers.first + i, half, {});
    }
  }
}

namespace {

bool moves_scalar(Opcode opcode) {
  switch (opcode) {
    case Opcode::s_mov_b32:
    case Opcode::s_mov_b64:
    case Opcode::s_movrels_b32:
    case Opcode::s_movrels_b64:
    case Opcode::s_movreld_b32:
    case Opcode::s_movreld_b64:
    case Opcode::s_movrelsd_2_b32:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Undefined::scalar(const Wave& wave, const Instruction& in) {
  const unsigned count = in.dst.present() ? dwords_of(in.dst.type, WaveSize::wave64) : 0;
  const bool moves = moves_scalar(in.opcode);
  const bool pairs = moves || in.opcode == Opcode::s_and_b64 || in.opcode == Opcode::s_or_b64 ||
                     in.opcode == Opcode::s_xor_b64 || in.opcode == Opcode::s_and_not1_b64;
  const std::uint64_t read = bits_read(wave, in);
  Word any = in.has(flag::scc_in) && scc_ ? ~0U : 0U;
  std::array<Word, 2> each{};
  for (const Operand& source : in.src) {
    if (!source.present() || source.code >= operand::integers || source.code == operand::null) continue;
    const unsigned dwords = std::min(dwords_of(source.type, WaveSize::wave64), 2U);
    for (unsigned d = 0; d < dwords; ++d) {
      any |= scalar_[source.code + d] & (&source == &in.src[0] ? static_cast<Word>(read >> 32U * d) : ~0U);
      each[d] |= scalar_[source.code + d];
    }
  }
  if (in.has(flag::accumulate) && in.dst.present()) any |= scalar_[in.dst.code];
  // Logic may take undefined bits away by what the others are; masks of lanes are made of it.
  const bool logic =
      !moves && in.format != Format::sopk && (in.dst.type == DataType::b32 || in.dst.type == DataType::b64);
  if (in.has(flag::scc_out)) scc_ = !logic && any != 0;
  if (!in.dst.present() || in.dst.code >= operand::integers) return;
  const bool special = in.dst.code == operand::exec_lo || in.dst.code == operand::exec_hi || in.has(flag::exec_out);
  for (unsigned d = 0; d < count; ++d) {
    set_scalar(in.dst.code + d, special || logic ? 0U : pairs && d < 2 ? each[d] : any != 0 ? ~0U : 0U);
  }
}

void Undefined::packed(Wave& wave, const Instruction& in, unsigned half) {
  Lanes out{};
  const bool low = in.opcode == Opcode::v_fma_mixlo_f16, high = in.opcode == Opcode::v_fma_mixhi_f16;
  if (low || high || in.opcode == Opcode::v_fma_mix_f32) {
    for (unsigned s = 0; s < 3; ++s) {
      const Lanes u = source(in.src[s], 0, half);
      const bool is_half = (in.op_sel_hi >> s & 1U) != 0;
      for (unsigned i = 0; i < 32; ++i) {
        out[i] |= whole(is_half ? half_of(u[i], (in.op_sel >> s & 1U) != 0) : u[i]);
      }
    }
    const Lanes old = source(in.dst, 0, half);
    for (unsigned i = 0; i < 32; ++i) {
      if (low) out[i] = (old[i] & 0xFFFF0000U) | (out[i] & 0xFFFFU);
      if (high) out[i] = (old[i] & 0xFFFFU) | (out[i] & 0xFFFF0000U);
    }
    put(wave, in.dst.index(), half, out);
    return;
  }
  for (unsigned s = 0; s < 3; ++s) {
    if (!in.src[s].present() || !is_packed(in.src[s].type)) {
      const Lanes u = source(in.src[s], 0, half);
      for (unsigned i = 0; i < 32; ++i) out[i] |= whole(u[i]);
      continue;
    }
    const Lanes u = source(in.src[s], 0, half);
    for (unsigned i = 0; i < 32; ++i) {
      if (half_of(u[i], (in.op_sel >> s & 1U) != 0) != 0) out[i] |= 0xFFFFU;
      if (half_of(u[i], (in.op_sel_hi >> s & 1U) != 0) != 0) out[i] |= 0xFFFF0000U;
    }
  }
  if (!is_packed(in.dst.type)) {
    for (Word& each : out) each = whole(each);
  }
  put(wave, in.dst.index(), half, out);
}

// A comparison's mask: undefined where a lane's sources are.
void Undefined::compare(Wave& wave, const Instruction& in) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    Word bits = 0;
    for (unsigned s = 0; s < 3; ++s) {
      const unsigned dwords = dwords_of(in.src[s].type, WaveSize::wave32);
      const bool narrow = bits_of(in.src[s].type) == 16;
      for (unsigned d = 0; d < dwords; ++d) {
        const Lanes u = source(in.src[s], d, half);
        for (unsigned i = 0; i < 32; ++i) {
          bits |= (narrow ? half_of(u[i], (in.op_sel >> s & 1U) != 0) : u[i]) != 0 ? 1U << i : 0U;
        }
      }
    }
    if (in.dst.code < operand::integers && in.dst.code != operand::exec_lo) {
      set_scalar(in.dst.code + half, bits & wave.exec(half));
    }
  }
}

// What moves between lanes: true where it was handled.
bool Undefined::across_lanes(Wave& wave, const Instruction& in) {
  switch (in.opcode) {
    case Opcode::v_readfirstlane_b32:
    case Opcode::v_readlane_b32: {
      const std::uint64_t exec = wave.exec64();
      unsigned lane = exec == 0 ? 0 : static_cast<unsigned>(__builtin_ctzll(exec));
      if (in.opcode == Opcode::v_readlane_b32) {
        const auto chosen = constant_of(in.src[1], in.literal);
        lane = static_cast<unsigned>(chosen ? *chosen : wave.scalar[in.src[1].code]) & (wave.lanes() - 1);
      }
      if (in.dst.code < operand::integers) set_scalar(in.dst.code, source(in.src[0], 0, lane / 32)[lane % 32]);
      return true;
    }
    case Opcode::v_writelane_b32: {
      const auto chosen = constant_of(in.src[1], in.literal);
      const unsigned lane = static_cast<unsigned>(chosen ? *chosen : wave.scalar[in.src[1].code]) & (wave.lanes() - 1);
      if ((static_cast<std::size_t>(in.dst.index() + 1U) << row_shift_) <= bits_.size()) {
        row(in.dst.index(), lane / 32)[lane % 32] = source(in.src[0], 0, 0)[0];
        note(in.dst.index());
      }
      return true;
    }
    case Opcode::v_permlane64_b32: {
      const Lanes low = source(in.src[0], 0, 0);
      if (wave.halves == 2) {
        put(wave, in.dst.index(), 0, source(in.src[0], 0, 1));
        put(wave, in.dst.index(), 1, low);
      } else {
        put(wave, in.dst.index(), 0, low);
      }
      return true;
    }
    case Opcode::v_swap_b32:
    case Opcode::v_swaprel_b32:
      for (unsigned half = 0; half < wave.halves; ++half) {
        const Lanes a = source(in.dst, 0, half), b = source(in.src[0], 0, half);
        put(wave, in.dst.index(), half, b);
        put(wave, in.src[0].index(), half, a);
      }
      return true;
    default:
      return false;
  }
}

// ACO exchanges halves of registers by a += b, b = a - b, a = a - b: the rule of sums would spread what is undefined of
// one over both. True where it was handled; the first of the three is not.
bool Undefined::exchange(Wave& wave, const DecodedAt& at) {
  const Instruction& in = at.instruction;
  const bool adds = in.opcode == Opcode::v_add_nc_u16, subtracts = in.opcode == Opcode::v_sub_nc_u16;
  if ((!adds && !subtracts) || in.clamp || !in.src[0].is_vgpr() || !in.src[1].is_vgpr()) return false;
  const auto place = [&](const Operand& operand, unsigned bit) {
    return 2U * operand.index() + (in.op_sel >> bit & 1U);
  };
  const unsigned a = place(in.src[0], 0), b = place(in.src[1], 1), to = place(in.dst, 3);
  const std::uint64_t next = at.address + 4U * in.dwords;
  Exchange& begun = exchange_;
  if (adds && to == a && a != b) {
    begun.a = a;
    begun.b = b;
    begun.last = false;
    begun.next = next;
    for (unsigned half = 0; half < wave.halves; ++half) {
      begun.bits_of_a[half] = source(in.src[0], 0, half);
      begun.bits_of_b[half] = source(in.src[1], 0, half);
    }
    return false;
  }
  if (!subtracts || at.address != begun.next || a != begun.a || b != begun.b || to != (begun.last ? a : b))
    return false;
  for (unsigned half = 0; half < wave.halves; ++half) {
    Lanes bits = source(in.dst, 0, half);
    const Lanes& from = (begun.last ? begun.bits_of_b : begun.bits_of_a)[half];
    for (unsigned i = 0; i < 32; ++i) {
      const Word moved = half_of(from[i], ((begun.last ? b : a) & 1U) != 0);
      bits[i] = (to & 1U) != 0 ? (bits[i] & 0xFFFFU) | moved << 16U : (bits[i] & 0xFFFF0000U) | moved;
    }
    put(wave, in.dst.index(), half, bits);
  }
  begun.next = begun.last ? 0 : next;
  begun.last = true;
  return true;
}

void Undefined::vector(Wave& wave, const Instruction& in, const Operand& dst, const Operand* sources) {
  const bool first_half = &dst == &in.dst;
  const Opcode opcode = first_half ? in.opcode : in.y.opcode;
  const Rule rule = in.clamp ? Rule::whole : rule_of(opcode);
  const bool narrow_result = bits_of(dst.type) == 16 && !is_packed(dst.type);
  const unsigned count = dwords_of(dst.type, WaveSize::wave32);
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    if (in.format == Format::vop3p) {
      packed(wave, in, half);
      continue;
    }
    std::array<Lanes, 3> u{}, high{}, x;
    Lanes out{};
    const bool accumulates = (info(opcode).flags & flag::accumulate) != 0;
    bool wide = count > 1;
    for (unsigned s = 0; s < 3; ++s) {
      const Operand& operand = s == 2 && accumulates && !sources[2].present() ? dst : sources[s];
      if (!operand.present() || operand.type == DataType::mask) continue;
      u[s] = source(operand, 0, half);
      if (dwords_of(operand.type, WaveSize::wave32) > 1) {
        high[s] = source(operand, 1, half);
        wide = true;
      }
      if (bits_of(operand.type) == 16 && !is_packed(operand.type)) {
        for (Word& bits : u[s]) bits = half_of(bits, (in.op_sel >> s & 1U) != 0);
      }
    }
    const bool masked = rule == Rule::select || (sources[2].present() && sources[2].type == DataType::mask);
    Word any = 0;
    for (unsigned i = 0; i < 32; ++i) {
      const Word bits = u[0][i] | u[1][i] | u[2][i] | high[0][i] | high[1][i] | high[2][i];
      any |= (wave.exec(half) >> i & 1U) != 0 ? bits : 0U;
    }
    if (any == 0 && !masked) {  // so is the result, where lanes are on
      for (unsigned d = 1; d < count; ++d) put(wave, dst.index() + d, half, out);
    } else if (masked) {
      const Operand& mask = sources[2];
      const bool scalar_mask = mask.present() && mask.code < operand::integers;
      const Word chosen = scalar_mask ? wave.scalar[mask.code + half] : 0,
                 unsure = scalar_mask ? scalar_[mask.code + half] : 0;
      for (unsigned i = 0; i < 32; ++i) {
        const Word picked = !scalar_mask ? u[0][i] | u[1][i] : (chosen >> i & 1U) != 0 ? u[1][i] : u[0][i];
        out[i] = (unsure >> i & 1U) != 0 ? ~0U : rule == Rule::select ? picked : upwards(u[0][i] | u[1][i]);
      }
    } else if (rule == Rule::pack) {
      for (unsigned i = 0; i < 32; ++i) out[i] = (u[0][i] != 0 ? 0xFFFFU : 0U) | (u[1][i] != 0 ? 0xFFFF0000U : 0U);
    } else if (opcode == Opcode::v_mad_u64_u32 || opcode == Opcode::v_mad_i64_i32) {
      Lanes upper{};
      for (unsigned i = 0; i < 32; ++i) {
        out[i] = upwards(u[0][i] | u[1][i] | u[2][i]);
        upper[i] = out[i] != 0 ? ~0U : upwards(high[2][i]);
      }
      put(wave, dst.index() + 1, half, upper);
    } else if (opcode == Opcode::v_lshlrev_b64 || opcode == Opcode::v_lshrrev_b64 || opcode == Opcode::v_ashrrev_i64) {
      Lanes upper{};
      const Lanes by = values(wave, sources[0], in, half);
      for (unsigned i = 0; i < 32; ++i) {
        const std::uint64_t bits = u[1][i] | static_cast<std::uint64_t>(high[1][i]) << 32U;
        const unsigned shift = by[i] & 63U;
        const std::uint64_t moved = opcode == Opcode::v_lshlrev_b64 ? bits << shift
                                    : opcode == Opcode::v_lshrrev_b64
                                        ? bits >> shift
                                        : static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> shift);
        const bool unsure = (u[0][i] & 63U) != 0;
        out[i] = unsure ? ~0U : static_cast<Word>(moved);
        upper[i] = unsure ? ~0U : static_cast<Word>(moved >> 32U);
      }
      put(wave, dst.index() + 1, half, upper);
    } else if (wide) {
      for (unsigned i = 0; i < 32; ++i) {
        out[i] = whole(u[0][i] | u[1][i] | u[2][i] | high[0][i] | high[1][i] | high[2][i]);
      }
      for (unsigned d = 1; d < count; ++d) put(wave, dst.index() + d, half, out);
    } else {
      for (unsigned s = 0; s < 3 && rule != Rule::whole && rule != Rule::copy; ++s) {
        const Operand& operand = s == 2 && accumulates && !sources[2].present() ? dst : sources[s];
        x[s] = operand.type == DataType::mask ? Lanes{} : values(wave, operand, in, half);
        if (bits_of(operand.type) == 16 && !is_packed(operand.type) && operand.is_vgpr()) {
          for (Word& value : x[s]) value = half_of(value, (in.op_sel >> s & 1U) != 0);
        }
      }
      for (unsigned i = 0; i < 32; ++i) {
        out[i] = applied(rule, {u[0][i], u[1][i], u[2][i]}, {x[0][i], x[1][i], x[2][i]});
      }
    }
    if (narrow_result) {
      const Lanes old = source(dst, 0, half);
      const bool upper = (in.op_sel & 8U) != 0;
      for (unsigned i = 0; i < 32; ++i) {
        out[i] = upper ? (old[i] & 0xFFFFU) | out[i] << 16U : (old[i] & 0xFFFF0000U) | (out[i] & 0xFFFFU);
      }
    }
    put(wave, dst.index(), half, out);
  }
  if (in.sdst.present() && in.sdst.code < operand::integers) {
    for (unsigned half = 0; half < wave.halves; ++half) set_scalar(in.sdst.code + half, 0);
  }
}

}  // namespace kiln::simulator
