#include "simulator/wave/interpreter.hpp"

#include <immintrin.h>

namespace kiln::simulator {
namespace {

// A block that names registers which the wave lacks runs up to the first such instruction.
Next run_within(Wave& wave, const Block& block) {
  for (const Op& op : block.ops) {
    const std::uint16_t end = op.index < block.decoded.size() ? block.decoded[op.index].vgpr_end : std::uint16_t{0};
    if (end > wave.vgpr_count) return refuse_register(wave, op, end - 1U);
    const Next next = op.run(wave, op);
    if (next != Next::go) return next;
  }
  return Next::fault;
}

Next run_block(Wave& wave, const Block& block) {
  const Op* op = block.ops.data();
  Next next;
  while ((next = op->run(wave, *op)) == Next::go) ++op;
  return next;
}

}  // namespace

Next run_wave(Wave& wave, Program& program, CodePage*& page, std::uint64_t share,
              const std::atomic<const char*>& stop) {
  const unsigned host_mode = _mm_getcsr();
  _mm_setcsr(wave.csr32);
  const std::uint64_t until = wave.instructions + share;
  Next next;
  do {
    const Block* block = program.find(wave.pc, page, wave.fault);
    if (block == nullptr) {
      next = Next::fault;
      break;
    }
    wave.block = block;
    next = block->vgpr_end <= wave.vgpr_count ? run_block(wave, *block) : run_within(wave, *block);
    wave.instructions += block->instructions;
    if (wave.instructions >= until || stop.load(std::memory_order_relaxed) != nullptr) {
      if (next == Next::jump) next = Next::yield;
    }
  } while (next == Next::jump);
  _mm_setcsr(host_mode);
  return next;
}

}  // namespace kiln::simulator
