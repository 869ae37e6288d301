#include <array>

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
  build.lane_control_merge = &lane_control_merge;
  build.sub_word_source = &sub_word_source;
  build.sub_word_result = &sub_word_result;
  return build;
}

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

struct LaneSources {  // where each lane reads; `valid`: the lanes that read within their row
  alignas(32) Word lane[group];
  Word valid;
};

// 32 words, each from the lane of its row of 16 that `lane` names.
KILN_LANE void move_within_rows(const Word* in, const Word* lane, Word* out) {
#if defined(__AVX2__)
  for (unsigned row = 0; row < group; row += 16) {
    const __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i*>(in + row));
    const __m256i high = _mm256_load_si256(reinterpret_cast<const __m256i*>(in + row + 8));
    for (unsigned i = row; i < row + 16; i += 8) {
      const __m256i from = _mm256_load_si256(reinterpret_cast<const __m256i*>(lane + i));
      const __m256i upper = _mm256_slli_epi32(from, 28);  // bit 3 of the lane's number chooses
      const __m256 word =
          _mm256_blendv_ps(_mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, from)),
                           _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, from)), _mm256_castsi256_ps(upper));
      _mm256_store_ps(reinterpret_cast<float*>(out + i), word);
    }
  }
#else
  for (unsigned i = 0; i < group; ++i) out[i] = in[lane[i]];
#endif
}

// By DPP16's control.
const LaneSources& row_sources(unsigned control) {
  static const auto all = [] {
    constexpr unsigned controls = 512;
    std::array<LaneSources, controls> table{};
    for (unsigned each = 0; each < controls; ++each) {
      for (unsigned i = 0; i < group; ++i) {
        const unsigned from = row_source(each, i & 15U);
        table[each].lane[i] = from == nowhere ? i : (i & ~15U) | from;
        table[each].valid |= from == nowhere ? 0U : 1U << i;
      }
    }
    return table;
  }();
  return all[control & 511U];
}

LaneSources eight_sources(Word selectors) {
  LaneSources sources{{}, ~0U};
  for (unsigned i = 0; i < group; ++i) {
    sources.lane[i] = (i & ~7U) | (selectors >> 3U * (i & 7U) & 7U);
  }
  return sources;
}

// The lanes of a half that row and bank masks leave on.
Word enabled_lanes(unsigned row_mask, unsigned bank_mask, unsigned half) {
  Word row = 0;
  for (unsigned bank = 0; bank < 4; ++bank) row |= (bank_mask >> bank & 1U) != 0 ? 0xFU << 4U * bank : 0U;
  return ((row_mask >> 2U * half & 1U) != 0 ? row : 0U) | ((row_mask >> (2U * half + 1U) & 1U) != 0 ? row << 16U : 0U);
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
  const bool whole = (op.select & lane_control::whole) != 0;
  LaneSources by_selectors{};
  if ((op.select & lane_control::eight) != 0) by_selectors = eight_sources(static_cast<Word>(op.offset));
  const LaneSources& sources = (op.select & lane_control::eight) != 0 ? by_selectors : row_sources(op.extra);
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word exec = wave.exec(half);
    alignas(64) Word storage[group], moved[group];
    const Word* in = words(wave, op, 0, half, storage);
    Word* const to = wave.row(op.vdst, half);
    // Without bound control nobody sees what lanes without a source read.
    Word* const out = whole && !bound_control ? to : moved;
    move_within_rows(in, sources.lane, out);
    Word there = sources.valid;
    if (!fetch_inactive && exec != ~0U) {
      Word active = 0;
      for (unsigned i = 0; i < group; ++i) active |= (exec >> sources.lane[i] & 1U) << i;
      there &= active;
    }
    if (out == to) {
    } else if (there == ~0U) {
      for (unsigned i = 0; i < group; ++i) to[i] = out[i];
    } else {
      for (unsigned i = 0; i < group; ++i) to[i] = (there >> i & 1U) != 0 ? out[i] : 0U;
    }
    const Word enabled = op.detail == 0xFF ? ~0U : enabled_lanes(op.detail & 15U, op.detail >> 4U, half);
    const Word taking_part = exec & enabled & (bound_control ? ~0U : there);
    wave.saved_exec[half] = whole ? taking_part : exec;
    if (!whole) wave.scalar[scalar_index::exec + half] = taking_part;
  }
  return Next::go;
}

Next lane_control_end(Wave& wave, const Op&) {
  for (unsigned half = 0; half < wave.halves; ++half) wave.scalar[scalar_index::exec + half] = wave.saved_exec[half];
  return Next::go;
}

Next lane_control_merge(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    put(wave, op.vdst, half, wave.saved_exec[half], wave.row(op.reg[0], half));
  }
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
