#include "amdgpu_pm4/packets/capabilities.hpp"

#include <initializer_list>

namespace kiln::amdgpu_pm4 {
namespace {

std::bitset<256> compute_ring_opcodes() {
  std::bitset<256> opcodes;
  for (const Opcode opcode :
       {Opcode::nop, Opcode::dispatch_direct, Opcode::dispatch_indirect, Opcode::write_data, Opcode::wait_reg_mem,
        Opcode::indirect_buffer, Opcode::copy_data, Opcode::event_write, Opcode::release_mem, Opcode::dma_data,
        Opcode::acquire_mem, Opcode::set_sh_reg, Opcode::set_uconfig_reg, Opcode::set_sh_reg_index}) {
    opcodes.set(static_cast<std::uint8_t>(opcode));
  }
  return opcodes;
}

Capabilities make_gfx10_3() {
  Capabilities set;
  set.generation = Generation::gfx10_3;
  set.opcodes = compute_ring_opcodes();
  set.shader_engine_registers = 4;
  set.coherence_start_delay = true;
  set.scratch_granule = 1024;
  set.scratch_size_bits = 13;
  set.waves_per_simd = 16;
  return set;
}

Capabilities make_gfx11() {
  Capabilities set;
  set.generation = Generation::gfx11;
  set.opcodes = compute_ring_opcodes();
  set.opcodes.reset(static_cast<std::uint8_t>(Opcode::set_uconfig_reg));  // its one register is gone
  set.shader_engine_registers = 8;
  set.dispatch_interleave = true;
  set.scratch_registers = true;
  set.scratch_waves_per_engine = true;
  set.scratch_granule = 256;
  set.scratch_size_bits = 15;
  set.waves_per_simd = 16;
  return set;
}

}  // namespace

const Capabilities& capabilities_of(Generation generation) noexcept {
  static const Capabilities gfx10_3 = make_gfx10_3();
  static const Capabilities gfx11 = make_gfx11();
  return generation == Generation::gfx10_3 ? gfx10_3 : gfx11;
}

std::string_view to_string(Generation generation) noexcept {
  switch (generation) {
    case Generation::gfx10_3:
      return "gfx10.3";
    case Generation::gfx11:
      return "gfx11";
    case Generation::invalid:
      break;
  }
  return "invalid";
}

}  // namespace kiln::amdgpu_pm4
