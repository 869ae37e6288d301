#include "simulator/wave/wave.hpp"

#include <immintrin.h>

#include <utility>

#include "simulator/isa/decoder.hpp"
#include "simulator/wave/program.hpp"

namespace kiln::simulator {
namespace {

// MXCSR for one of MODE's rounding fields (0 nearest, 1 up, 2 down, 3 to zero) and denormal fields (bit 0: inputs are
// kept, bit 1: outputs are kept). All exceptions stay masked.
std::uint32_t control_word(std::uint32_t rounding, std::uint32_t denormals) noexcept {
  constexpr std::uint32_t masked = 0x1F80U, zero_inputs = 0x40U, zero_outputs = 0x8000U;
  constexpr std::uint32_t roundings[] = {0U, 0x4000U, 0x2000U, 0x6000U};
  return masked | roundings[rounding] | ((denormals & 1U) != 0 ? 0U : zero_inputs) |
         ((denormals & 2U) != 0 ? 0U : zero_outputs);
}

}  // namespace

void Wave::set_mode(std::uint32_t value) noexcept {
  mode = value;
  const std::uint32_t denormals32 = value >> mode_bit::denorm32 & 3U, denormals16 = value >> mode_bit::denorm16_64 & 3U;
  const std::uint32_t rounding16 = value >> mode_bit::round16_64 & 3U;
  csr32 = control_word(value >> mode_bit::round32 & 3U, denormals32);
  csr16 = control_word(rounding16, denormals16);
  split_mode = csr32 != csr16;
  flush_in32 = (denormals32 & 1U) == 0;
  flush_out32 = (denormals32 & 2U) == 0;
  flush_in16 = (denormals16 & 1U) == 0;
  flush_out16 = (denormals16 & 2U) == 0;
  nearest16 = rounding16 == 0 && (value >> mode_bit::fp16_ovfl & 1U) == 0;
  dx10_clamp = (value >> mode_bit::dx10_clamp & 1U) != 0;
  ieee = (value >> mode_bit::ieee & 1U) != 0;
  _mm_setcsr(csr32);
}

std::uint32_t special_value(const Wave& wave, unsigned code) noexcept {
  switch (code) {
    case operand::scc:
      return wave.scc ? 1 : 0;
    case operand::execz:
      return wave.exec64() == 0 ? 1 : 0;
    default:  // vccz
      return (wave.halves == 1 ? wave.scalar[scalar_index::vcc] : wave.scalar64(scalar_index::vcc)) == 0 ? 1 : 0;
  }
}

Next refuse(Wave& wave, const Op& op, FaultKind kind, std::string reason) {
  const DecodedAt& at = wave.block->decoded[op.index];
  wave.fault = Fault{kind, at.address, at.word,
                     std::string(mnemonic(at.instruction.opcode, wave.generation)) + ": " + std::move(reason)};
  return Next::fault;
}

Next refuse(Wave& wave, const Op& op, Fault fault) {
  const DecodedAt& at = wave.block->decoded[op.index];
  fault.reason += " (" + std::string(mnemonic(at.instruction.opcode, wave.generation)) + " at " + hex(at.address) + ")";
  fault.dword = at.word;
  wave.fault = std::move(fault);
  return Next::fault;
}

Next refuse_register(Wave& wave, const Op& op, std::uint32_t vgpr) {
  std::string has = std::to_string(wave.vgpr_count) + " VGPRs";
  if (wave.shared_vgprs != 0) has += " and " + std::to_string(wave.shared_vgprs) + " shared ones";
  return refuse(wave, op, FaultKind::overrun, "v" + std::to_string(vgpr) + " of " + has);
}

std::string hex(std::uint64_t value) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "0x";
  unsigned shift = 60;
  while (shift > 0 && value >> shift == 0) shift -= 4;
  for (;; shift -= 4) {
    text += digits[value >> shift & 15U];
    if (shift == 0) return text;
  }
}

}  // namespace kiln::simulator
