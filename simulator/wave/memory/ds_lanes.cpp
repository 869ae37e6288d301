// DS instructions that pass data between lanes and touch no memory. They work within 32 lanes, in wave64 too.
#include <iterator>

#include "simulator/wave/memory/lists.hpp"
#include "simulator/wave/memory/space.hpp"

namespace kiln::simulator::memory_unit {
namespace {

Next nothing_to_do(Wave&, const Op&) { return Next::go; }

// Each lane names the lane that it reads, in bytes; one that is off gives zero.
Next permute_backward(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    const Word* from = wave.row(op.reg[0], half);
    const Word* data = wave.row(op.reg[1], half);
    Word out[group];
    for (unsigned i = 0; i < group; ++i) {
      const unsigned lane = (from[i] + static_cast<Word>(op.offset)) / word_bytes % group;
      out[i] = (mask >> lane & 1U) != 0 ? data[lane] : 0;
    }
    Word* to = wave.row(op.vdst, half);
    for (unsigned i = 0; i < group; ++i) to[i] = (mask >> i & 1U) != 0 ? out[i] : to[i];
  }
  return Next::go;
}

// Each lane names the lane that it writes; of several the highest wins, and a lane that none names gets zero.
Next permute_forward(Wave& wave, const Op& op) {
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    const Word* where = wave.row(op.reg[0], half);
    const Word* data = wave.row(op.reg[1], half);
    Word out[group] = {};
    for (unsigned i = 0; i < group; ++i) {
      const unsigned lane = (where[i] + static_cast<Word>(op.offset)) / word_bytes % group;
      if ((mask >> i & 1U) != 0) out[lane] = data[i];
    }
    Word* to = wave.row(op.vdst, half);
    for (unsigned i = 0; i < group; ++i) to[i] = (mask >> i & 1U) != 0 ? out[i] : to[i];
  }
  return Next::go;
}

unsigned swizzled_lane(Word control, unsigned i) {
  if ((control & 0x8000U) == 0) {  // and, or, xor masks
    return (((i & (control & 31U)) | (control >> 5U & 31U)) ^ (control >> 10U & 31U));
  }
  return (i & ~3U) | (control >> 2U * (i & 3U) & 3U);  // within four lanes
}

Next swizzle(Wave& wave, const Op& op) {
  const Word control = static_cast<Word>(op.offset);
  if ((control & 0x8000U) != 0 && (control >> 8U & 0x7FU) != 0) {
    return refuse(wave, op, FaultKind::unknown_opcode, "swizzle mode " + hex(control) + " is not simulated");
  }
  for (unsigned half = 0; half < wave.halves; ++half) {
    const Word mask = wave.exec(half);
    const Word* data = wave.row(op.reg[0], half);
    Word out[group];
    for (unsigned i = 0; i < group; ++i) {
      const unsigned lane = swizzled_lane(control, i);
      out[i] = (mask >> lane & 1U) != 0 ? data[lane] : 0;
    }
    Word* to = wave.row(op.vdst, half);
    for (unsigned i = 0; i < group; ++i) to[i] = (mask >> i & 1U) != 0 ? out[i] : to[i];
  }
  return Next::go;
}

constexpr Semantics entries[] = {
    {"bpermute_b32", &permute_backward},
    {"permute_b32", &permute_forward},
    {"swizzle_b32", &swizzle},
    {"nop", &nothing_to_do},
};
constexpr Semantics idle[] = {
    {"buffer_gl0_inv", &nothing_to_do, takes::no_time},
    {"buffer_gl1_inv", &nothing_to_do, takes::no_time},
};

}  // namespace

SemanticsList local_lanes() noexcept { return {entries, std::size(entries)}; }
SemanticsList nothing() noexcept { return {idle, std::size(idle)}; }

}  // namespace kiln::simulator::memory_unit
