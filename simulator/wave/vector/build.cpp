#include "simulator/wave/op.hpp"
#include "simulator/wave/vector/family.hpp"

namespace kiln::simulator::KILN_VECTOR_BUILD {

VectorBuild vector_build() noexcept {
  VectorBuild build;
  build.vop1 = vop1();
  build.conversions = conversions();
  build.vop2 = vop2();
  build.vop3 = vop3();
  build.vop3_integer = vop3_integer();
  build.divide = divide();
  build.vopc = vopc();
  build.vop3p = vop3p();
  build.dot = dot();
  build.matrix = matrix();
  build.mix = mix();
  build.cross_lane = cross_lane();
  build.mask = mask();
  build.memory = lane_memory();
  build.copy_row = &vector<[](Word a) { return a; }>;
  build.lane_control_begin = &lane_control_begin;
  build.lane_control_end = &lane_control_end;
  build.sub_word_source = &sub_word_source;
  build.sub_word_result = &sub_word_result;
  return build;
}

namespace {

// Bits that keep the active lanes of `low` from being start, start + bytes, start + 2 * bytes …
KILN_LANE Word differing(const Word* low, Word start, Word bytes, Word mask) {
  Word bits = 0;
  for (unsigned i = 0; i < group; ++i) bits |= (mask >> i & 1U) != 0 ? low[i] ^ (start + i * bytes) : 0U;
  return bits;
}

bool side_by_side_global(Wave& wave, const Op& op, unsigned half, Word bytes, Wide& base) {
  const Word mask = wave.exec(half);
  const unsigned first = static_cast<unsigned>(__builtin_ctz(mask));
  const Wide offset = static_cast<Wide>(static_cast<std::int64_t>(op.offset));
  const bool based = op.kind[2] == SourceKind::scalar;
  if (op.kind[0] != SourceKind::row) return false;
  const Word* low = wave.row(op.reg[0], half);
  const Word start = low[first] - first * bytes;
  // Lanes must not pass from one 4 GiB into the next.
  if (start > low[first] || start + group * bytes < start) return false;
  if (differing(low, start, bytes, mask) != 0) return false;
  Wide high = 0;
  if (!based) {
    const Word* upper = wave.row(op.reg[0] + 1U, half);
    if (differing(upper, upper[first], 0, mask) != 0) return false;
    high = static_cast<Wide>(upper[first]) << 32U;
  }
  base = (based ? wave.scalar64(op.sdst) : high) + start + offset;
  return (base & 3U) == 0;
}

bool side_by_side_local(Wave& wave, const Op& op, unsigned half, Word bytes, Word offset, Wide& base) {
  const Word mask = wave.exec(half);
  const unsigned first = static_cast<unsigned>(__builtin_ctz(mask));
  if (op.kind[0] != SourceKind::row) return false;
  const Word* low = wave.row(op.reg[0], half);
  const Word start = low[first] - first * bytes;
  if (differing(low, start, bytes, mask) != 0) return false;
  const Word sum = start + offset;  // of 32 bits; the lanes must not pass their end
  if (sum + group * bytes < sum) return false;
  base = sum;
  return (base & 3U) == 0;
}

void load_row(Word* row, const std::byte* from, Word mask) {
  const Word* words = reinterpret_cast<const Word*>(from);
  if (mask == ~0U) {
    for (unsigned i = 0; i < group; ++i) row[i] = words[i];
  } else {
    for (unsigned i = 0; i < group; ++i) row[i] = (mask >> i & 1U) != 0 ? words[i] : row[i];
  }
}

}  // namespace

LaneMemory lane_memory() noexcept { return {&side_by_side_global, &side_by_side_local, &load_row}; }

// DPP and SDWA: Ops before and after the instruction itself, which finds its source in a scratch row and knows nothing
// of either.

namespace {

constexpr unsigned nowhere = ~0U;

// Where lane i of a row of 16 reads, by DPP16's control; `nowhere` beyond the row.
unsigned row_source(unsigned control, unsigned i) {
  const unsigned by = control & 15U;
  if (control < 0x100) return (i & 12U) | (control >> 2U * (i & 3U) & 3U);  // quad_perm
  switch (control >> 4U) {
    case 0x10:
      return i + by < 16 ? i + by : nowhere;  // row_shl
    case 0x11:
      return i >= by ? i - by : nowhere;  // row_shr
    case 0x12:
      return (i - by) & 15U;  // row_ror
    case 0x14:
      return by == 0 ? 15U - i : i ^ 7U;  // row_mirror, row_half_mirror
    case 0x15:
      return by;  // row_share
    default:
      return i ^ by;  // row_xmask
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
