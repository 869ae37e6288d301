#include "simulator/wave/interpreter.hpp"

#include <immintrin.h>

#include <algorithm>
#include <span>

namespace kiln::simulator {
namespace {

using Ops = std::span<const Op>;

Next run_ops(Wave& wave, Ops ops) {
  for (const Op& op : ops) {
    const Next next = op.run(wave, op);
    if (next != Next::go) return next;
  }
  return Next::go;
}

// Makes the other half's row repeat what one half wrote.
void repeat_shared(Wave& wave, const Operand& written, unsigned half) {
  if (!written.is_vgpr()) return;
  const unsigned end = std::min(written.index() + dwords_of(written.type, WaveSize::wave64),
                                static_cast<unsigned>(wave.vgpr_count + wave.shared_vgprs));
  for (unsigned vgpr = std::max<unsigned>(written.index(), wave.vgpr_count); vgpr < end; ++vgpr) {
    std::copy_n(wave.row(scratch_rows + vgpr, half), 32, wave.row(scratch_rows + vgpr, 1 - half));
  }
}

// One instruction that names shared VGPRs. One that writes them does so for the low half of the wave first, as hardware
// does: what the high half writes comes last.
Next run_shared(Wave& wave, Ops ops, const Instruction& instruction) {
  const bool exchanges = instruction.opcode == Opcode::v_swap_b32;
  const Operand& other = exchanges ? instruction.src[0] : Operand{};
  const auto writes = [&wave](const Operand& operand) {
    return operand.is_vgpr() && operand.index() + dwords_of(operand.type, WaveSize::wave64) > wave.vgpr_count;
  };
  if (!writes(instruction.dst) && !writes(other)) return run_ops(wave, ops);
  std::uint32_t* const exec = wave.scalar + scalar_index::exec;
  const std::uint32_t lanes[] = {exec[0], exec[1]};
  const bool masks = instruction.sdst.present() && instruction.sdst.code != operand::null;
  const unsigned carry = masks ? instruction.sdst.code : scalar_sink;
  const std::uint32_t carry_before = wave.scalar[carry + 1U];
  Next next = Next::go;
  std::uint32_t carry_low = 0;
  for (unsigned half = 0; half < 2 && next == Next::go; ++half) {
    const bool alone = lanes[1 - half] == 0;
    if (lanes[half] == 0 && !(alone && half == 0)) continue;
    exec[1 - half] = 0;
    next = run_ops(wave, ops);
    exec[0] = lanes[0];
    exec[1] = lanes[1];
    if (lanes[half] == 0) continue;
    repeat_shared(wave, instruction.dst, half);
    repeat_shared(wave, other, half);
    if (alone) break;
    // Each half writes its own word of a mask.
    if (half == 0) {
      carry_low = wave.scalar[carry];
      wave.scalar[carry + 1U] = carry_before;
    } else {
      wave.scalar[carry] = carry_low;
    }
  }
  return next;
}

// A block that names registers behind the wave's own runs up to the first instruction that names one which the wave
// lacks; shared ones it has.
Next run_within(Wave& wave, const Block& block) {
  const Ops all(block.ops);
  for (std::size_t at = 0, next_at; at < all.size(); at = next_at) {
    const std::uint16_t index = all[at].index;
    for (next_at = at + 1; next_at < all.size() && all[next_at].index == index;) ++next_at;
    const Ops ops = all.subspan(at, next_at - at);
    const bool decoded = index < block.decoded.size();
    const std::uint32_t end = decoded ? block.decoded[index].vgpr_end : 0U;
    if (end > wave.vgpr_count + wave.shared_vgprs) return refuse_register(wave, all[at], end - 1U);
    const Next next =
        end > wave.vgpr_count ? run_shared(wave, ops, block.decoded[index].instruction) : run_ops(wave, ops);
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

// A program counter that leads to no code: what led there is the last instruction of the block before.
void add_origin(Wave& wave, const Block* from) {
  if (from == nullptr || from->decoded.empty() || !wave.fault) return;
  const DecodedAt& at = from->decoded.back();
  wave.fault->dword = at.word;
  wave.fault->reason +=
      " (after " + std::string(mnemonic(at.instruction.opcode, wave.generation)) + " at " + hex(at.address) + ")";
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
      add_origin(wave, wave.block);
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
