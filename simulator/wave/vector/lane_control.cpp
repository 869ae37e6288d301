// DPP and SDWA: Ops before and after the instruction itself, which finds its source in a scratch row and knows nothing
// of either.
#include "simulator/wave/vector/family.hpp"
#include "simulator/wave/vector/lane_control.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {
namespace {

constexpr unsigned nowhere = ~0U;

// Where lane i of a row of 16 reads, by DPP16's control; `nowhere` beyond the row.
unsigned row_source(unsigned control, unsigned i) {
  const unsigned by = control & 15U;
  if (control < 0x100) return (i & 12U) | (control >> 2U * (i & 3U) & 3U);  // quad_perm
  switch (control >> 4U) {
    case 0x10: return i + by < 16 ? i + by : nowhere;  // row_shl
    case 0x11: return i >= by ? i - by : nowhere;      // row_shr
    case 0x12: return (i - by) & 15U;                  // row_ror
    case 0x14: return by == 0 ? 15U - i : i ^ 7U;      // row_mirror, row_half_mirror
    case 0x15: return by;                              // row_share
    default: return i ^ by;                            // row_xmask
  }
}

unsigned source_lane(const Op& op, unsigned i) {
  if ((op.select & lane_control::eight) != 0) {
    return (i & ~7U) | (static_cast<Word>(op.offset) >> 3U * (i & 7U) & 7U);
  }
  const unsigned from = row_source(op.extra, i & 15U);
  return from == nowhere ? nowhere : (i & ~15U) | from;
}

KILN_LANE Word selected(Word value, unsigned which, bool sign_extend) {
  if (which < 4) {
    const Word byte = value >> 8U * which & 0xFFU;
    return sign_extend ? static_cast<Word>(static_cast<std::int32_t>(byte << 24U) >> 24) : byte;
  }
  if (which == 6) return value;
  const Word word = value >> 16U * (which - 4U) & 0xFFFFU;
  return sign_extend ? static_cast<Word>(static_cast<std::int32_t>(word << 16U) >> 16) : word;
}

}  // namespace

Next lane_control_begin(Wave& wave, const Op& op) {
  const bool bound_control = (op.select & lane_control::bound) != 0;
  const bool fetch_inactive = (op.select & lane_control::inactive) != 0;
  const unsigned row_mask = op.detail & 15U, bank_mask = op.detail >> 4U;
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word exec = wave.exec(half);
    alignas(64) Word storage[group], out[group];
    const Word* in = words(wave, op, 0, half, storage);
    Word valid = 0;
    for (unsigned i = 0; i < group; ++i) {
      const unsigned from = source_lane(op, i);
      const bool there = from != nowhere && (fetch_inactive || (exec >> from & 1U) != 0);
      out[i] = there ? in[from] : 0U;
      const unsigned row = half * 2 + i / 16, bank = i / 4 % 4;
      const bool enabled = (row_mask >> row & 1U) != 0 && (bank_mask >> bank & 1U) != 0;
      valid |= enabled && (there || bound_control) ? 1U << i : 0U;
    }
    Word* to = wave.row(op.vdst, half);
    for (unsigned i = 0; i < group; ++i) to[i] = out[i];
    wave.saved_exec[half] = exec;
    wave.scalar[scalar_index::exec + half] = exec & valid;
  }
  return Next::go;
}

Next lane_control_end(Wave& wave, const Op&) {
  for (unsigned half = 0; half < wave.halves; ++half) wave.scalar[scalar_index::exec + half] = wave.saved_exec[half];
  return Next::go;
}

Next sub_word_source(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    alignas(64) Word storage[group];
    const Word* in = words(wave, op, 0, half, storage);
    Word* to = wave.row(op.vdst, half);
    for (unsigned i = 0; i < group; ++i) to[i] = selected(in[i], op.detail, op.extra != 0);
  }
  return Next::go;
}

Next sub_word_result(Wave& wave, const Op& op) {
  const unsigned which = op.detail;
  const unsigned shift = which < 4 ? 8U * which : 16U * (which - 4U);
  const Word field = which < 4 ? 0xFFU : 0xFFFFU;
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word* in = wave.row(op.reg[0], half);
    const Word* old = wave.row(op.vdst, half);
    alignas(64) Word out[group];
    for (unsigned i = 0; i < group; ++i) {
      const Word value = (in[i] & field) << shift;
      const bool negative = (in[i] & ((field >> 1U) + 1U)) != 0;
      const Word above = negative ? ~((field << shift) | ((1U << shift) - 1U)) : 0U;
      out[i] = op.extra == lane_control::preserve ? (old[i] & ~(field << shift)) | value
               : op.extra == lane_control::extend ? value | above
                                                  : value;
    }
    put(wave, op.vdst, half, wave.exec(half), out);
  }
  return Next::go;
}

}  // namespace kiln::simulator::KILN_VECTOR_BUILD
