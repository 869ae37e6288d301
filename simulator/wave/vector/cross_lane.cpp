// Instructions that move data between lanes, or that find their register by M0.
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

Word of_lane(Wave& wave, const Op& op, unsigned source, unsigned lane) {
  if (op.kind[source] == SourceKind::row) return wave.row(op.reg[source], lane / group)[lane % group];
  return scalar_source32(wave, op, source);
}

Next read_first_lane(Wave& wave, const Op& op) {
  const Wide exec = wave.exec64();
  const unsigned lane = exec == 0 ? 0 : static_cast<unsigned>(__builtin_ctzll(exec));
  wave.scalar[op.sdst] = of_lane(wave, op, 0, lane);
  return Next::go;
}
Next read_lane(Wave& wave, const Op& op) {
  wave.scalar[op.sdst] = of_lane(wave, op, 0, scalar_source32(wave, op, 1) & (wave.halves * group - 1));
  return Next::go;
}
Next write_lane(Wave& wave, const Op& op) {
  const unsigned lane = scalar_source32(wave, op, 1) & (wave.halves * group - 1);
  wave.row(op.vdst, lane / group)[lane % group] = scalar_source32(wave, op, 0);
  return Next::go;
}

// Each lane of a row of 16 names a lane of its own row, or of the row beside it.
template <unsigned Across>
Next permute_rows(Wave& wave, const Op& op) {
  const bool fetch_inactive = (op.select & 1U) != 0, bound_control = (op.select & 2U) != 0;
  const Wide selectors = scalar_source32(wave, op, 1) | static_cast<Wide>(scalar_source32(wave, op, 2)) << 32U;
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    alignas(64) Word storage[group], out[group];
    const Word* in = words(wave, op, 0, half, storage);
    const Word* old = wave.row(op.vdst, half);
    for (unsigned i = 0; i < group; ++i) {
      const unsigned from = ((i & ~15U) ^ Across) | (selectors >> 4U * (i & 15U) & 15U);
      const bool there = fetch_inactive || (mask >> from & 1U) != 0;
      out[i] = there ? in[from] : bound_control ? 0U : old[i];
    }
    put(wave, op.vdst, half, mask, out);
  }
  return Next::go;
}

// Wave64 exchanges its halves; wave32 has nothing to exchange.
Next exchange_halves(Wave& wave, const Op& op) {
  alignas(64) Word storage[2][group];
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word* in = words(wave, op, 0, wave.halves == 2 ? 1 - half : half, storage[half]);
    for (unsigned i = 0; i < group; ++i) storage[half][i] = in[i];
  }
  for (unsigned half = 0; half < wave.halves; ++half) put(wave, op.vdst, half, wave.exec(half), storage[half]);
  return Next::go;
}

Next swap_rows(Wave& wave, unsigned first, unsigned second) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    Word* a = wave.row(first, half);
    Word* b = wave.row(second, half);
    const Word mask = wave.exec(half);
    for (unsigned i = 0; i < group; ++i) {
      const Word x = a[i], y = b[i];
      const bool active = (mask >> i & 1U) != 0;
      a[i] = active ? y : x;
      b[i] = active ? x : y;
    }
  }
  return Next::go;
}
Next swap(Wave& wave, const Op& op) { return swap_rows(wave, op.reg[0], op.vdst); }

// Register numbers moved by M0; the row that comes out must be one of the wave's.
enum : std::uint8_t { source_by_m0 = 1, destination_by_m0 = 2, two_fields = 4, swapping = 8 };
Next move_relative(Wave& wave, const Op& op) {
  const Word m0 = wave.scalar[scalar_index::m0];
  const Word source_offset = (op.detail & two_fields) != 0 ? m0 & 0x3FFU : m0;
  const Word destination_offset = (op.detail & two_fields) != 0 ? m0 >> 16U & 0x3FFU : m0;
  Op moved = op;
  const Word from = (op.detail & source_by_m0) != 0 ? op.reg[0] + source_offset : op.reg[0];
  const Word to = (op.detail & destination_by_m0) != 0 ? op.vdst + destination_offset : op.vdst;
  const Word end = scratch_rows + wave.vgpr_count;
  if ((op.kind[0] == SourceKind::row && (from < scratch_rows || from >= end)) || to < scratch_rows || to >= end) {
    return refuse_register(wave, op, (to >= end ? to : from) - scratch_rows);
  }
  moved.reg[0] = static_cast<std::uint16_t>(from);
  moved.vdst = static_cast<std::uint16_t>(to);
  if ((op.detail & swapping) != 0) return swap_rows(wave, from, to);
  return vector<[](Word a) { return a; }>(wave, moved);
}

constexpr Semantics entries[] = {
    {"v_readfirstlane_b32", &read_first_lane, takes::nothing, 0},
    {"v_readlane_b32", &read_lane, takes::nothing, 0},
    {"v_writelane_b32", &write_lane, takes::nothing, 0},
    {"v_permlane16_b32", &permute_rows<0>, takes::halves, 0},
    {"v_permlanex16_b32", &permute_rows<16>, takes::halves, 0},
    {"v_permlane64_b32", &exchange_halves, takes::nothing, 0},
    {"v_swap_b32", &swap, takes::nothing, 0},
    {"v_movreld_b32", &move_relative, takes::nothing, destination_by_m0},
    {"v_movrels_b32", &move_relative, takes::nothing, source_by_m0},
    {"v_movrelsd_b32", &move_relative, takes::nothing, source_by_m0 | destination_by_m0},
    {"v_movrelsd_2_b32", &move_relative, takes::nothing, source_by_m0 | destination_by_m0 | two_fields},
    {"v_swaprel_b32", &move_relative, takes::nothing, source_by_m0 | destination_by_m0 | two_fields | swapping},
};

}  // namespace

SemanticsList cross_lane() noexcept { return list_of(entries); }

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
