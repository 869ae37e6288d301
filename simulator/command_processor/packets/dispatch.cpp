#include "simulator/command_processor/packets/packets.hpp"
#include "simulator/memory/address_space.hpp"

namespace kiln::simulator {
namespace {

namespace initiator {
constexpr std::uint32_t shader_enabled = 1U << 0;
constexpr std::uint32_t partial_groups = 1U << 1;
constexpr std::uint32_t known_gfx10_3 = 0x8C67;  // without ordered append, tunnels, restore
constexpr std::uint32_t known_gfx11 = known_gfx10_3 | 1U << 17;
}  // namespace initiator

constexpr std::uint32_t start_x = 0xB810, num_thread_x = 0xB81C, program_low = 0xB830, program_high = 0xB834,
                        scratch_low = 0xB840, scratch_high = 0xB844, rsrc1 = 0xB848, rsrc2 = 0xB84C,
                        resource_limits = 0xB854, tmpring_size = 0xB860, rsrc3 = 0xB8A0, user_data_0 = 0xB900,
                        border_low = 0x30E00, border_high = 0x30E04;
constexpr std::array<std::uint32_t, 8> cu_masks{0xB858, 0xB85C, 0xB864, 0xB868, 0xB8AC, 0xB8B0, 0xB8B4, 0xB8B8};

DispatchState gather(const Machine& machine, std::array<std::uint32_t, 3> groups, std::uint32_t initiator_bits) {
  const RegisterFile& from = machine.registers;
  DispatchState state;
  state.generation = machine.settings.generation;
  state.program = sign_extended(joined(from.get(program_low), from.get(program_high)) << 8);
  state.rsrc1 = from.get(rsrc1);
  state.rsrc2 = from.get(rsrc2);
  state.rsrc3 = from.get(rsrc3);
  state.resource_limits = from.get(resource_limits);
  state.tmpring_size = from.get(tmpring_size);
  if (machine.gfx11())
    state.scratch_base = sign_extended(joined(from.get(scratch_low), from.get(scratch_high) & 0xFF) << 8);
  state.border_colors = sign_extended(joined(from.get(border_low), from.get(border_high) & 0xFF) << 8);
  for (std::uint32_t at = 0; at < 16; ++at) state.user_data[at] = from.get(user_data_0 + at * 4);
  for (std::uint32_t at = 0; at < 3; ++at) state.num_thread[at] = from.get(num_thread_x + at * 4);
  for (std::uint32_t at = 0; at < 3; ++at) state.start[at] = from.get(start_x + at * 4);
  const std::size_t engines = machine.gfx11() ? 8 : 4;
  for (std::size_t at = 0; at < engines; ++at) state.cu_mask[at] = from.get(cu_masks[at]);
  state.groups = groups;
  state.initiator = initiator_bits;
  return state;
}

// What hardware hangs or misbehaves on before a wave's first instruction; empty: nothing.
std::string why_not(const Machine& machine, const DispatchState& state) {
  std::uint32_t cus = 0;
  for (const std::uint32_t mask : state.cu_mask) cus |= mask;
  if (cus == 0) return "no compute unit is enabled: COMPUTE_STATIC_THREAD_MGMT is 0 for every engine";
  std::uint64_t threads = 1;
  for (const std::uint32_t dimension : state.num_thread) {
    if (field(dimension, 15, 0) == 0) return "COMPUTE_NUM_THREAD has a dimension of 0";
    threads *= field(dimension, 15, 0);
    if (threads > 1024) return "a workgroup of more than 1024 threads";
    if (field(dimension, 31, 16) > field(dimension, 15, 0)) return "a partial workgroup larger than the full one";
    if (field(dimension, 31, 16) != 0 && (state.initiator & initiator::partial_groups) == 0)
      return "COMPUTE_NUM_THREAD has a partial size without PARTIAL_TG_EN";
  }
  if (state.program == 0) return "COMPUTE_PGM is 0";
  if (machine.registers.get(program_high) > 0xFF) return "COMPUTE_PGM_HI has more than 8 bits";
  // Mesa's drivers write the base's whole upper part; of addresses above the hole that is ones above the 8 bits.
  const std::uint32_t scratch_top = machine.registers.get(scratch_high);
  if (scratch_top > 0xFF && scratch_top >> 7 != 0x1FFFF) {
    return "COMPUTE_DISPATCH_SCRATCH_BASE_HI has more than 8 bits, and they are not the sign's";
  }
  if (field(state.rsrc1, 20, 20) != 0) return "COMPUTE_PGM_RSRC1.PRIV is set";
  if (field(state.rsrc2, 6, 6) != 0) return "COMPUTE_PGM_RSRC2.TRAP_PRESENT is set: there is no trap handler";
  if (field(state.rsrc2, 0, 0) != 0) {
    const unsigned wave_size_top = machine.gfx11() ? 26 : 24;
    if (field(state.tmpring_size, 11, 0) == 0 || field(state.tmpring_size, wave_size_top, 12) == 0)
      return "COMPUTE_PGM_RSRC2.SCRATCH_EN with COMPUTE_TMPRING_SIZE " + hexadecimal(state.tmpring_size);
    if (machine.gfx11() && state.scratch_base == 0) return "COMPUTE_PGM_RSRC2.SCRATCH_EN with a scratch base of 0";
  }
  return {};
}

Outcome dispatch(Machine& machine, const Packet& packet, std::array<std::uint32_t, 3> groups,
                 std::size_t initiator_at) {
  const std::uint32_t bits = packet.body[initiator_at];
  const std::uint32_t known = machine.gfx11() ? initiator::known_gfx11 : initiator::known_gfx10_3;
  if ((bits & ~known) != 0)
    return packet.refuse(FaultKind::unknown_packet, initiator_at,
                         "initiator bits " + hexadecimal(bits & ~known) + " are not known");
  if ((bits & initiator::shader_enabled) == 0)
    return packet.refuse(FaultKind::bad_state, initiator_at, "COMPUTE_SHADER_EN is not set");
  if (machine.graphics() && !packet.compute_type())
    return packet.refuse(FaultKind::bad_state, "on the graphics ring a dispatch needs SHADER_TYPE 1 in its header");
  const DispatchState state = gather(machine, groups, bits);
  if (const std::string why = why_not(machine, state); !why.empty()) return packet.refuse(FaultKind::bad_state, why);
  ++machine.counters.dispatches;
  if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0) return {};
  if (auto fault = machine.engine.run_dispatch(state, machine.memory)) return in_packet(std::move(*fault), packet);
  return {};
}

}  // namespace

namespace packets {

Outcome set_base(Machine& machine, const Packet& packet) {
  if (packet.body[0] != 1)
    return packet.refuse(FaultKind::unknown_packet, 0,
                         "base index " + std::to_string(packet.body[0]) + " where only 1, dispatches, is known");
  machine.indirect_base = sign_extended(joined(packet.body[1], packet.body[2]));
  return {};
}

Outcome dispatch_direct(Machine& machine, const Packet& packet) {
  return dispatch(machine, packet, {packet.body[0], packet.body[1], packet.body[2]}, 3);
}

Outcome dispatch_indirect(Machine& machine, const Packet& packet) {
  std::uint64_t address = 0;
  if (machine.graphics()) {
    if (!machine.indirect_base) return packet.refuse(FaultKind::bad_state, "no SET_BASE came before it in this job");
    address = *machine.indirect_base + packet.body[0];
  } else {
    if (!is_high_half(packet.body[1]))
      return packet.refuse(FaultKind::unknown_packet, 1, "an address of more than 48 bits");
    address = sign_extended(joined(packet.body[0], packet.body[1]));
  }
  if (address % 4 != 0)
    return packet.refuse(FaultKind::misaligned, 0, "group counts at " + hexadecimal(address) + ", not of whole dwords");
  std::array<std::uint32_t, 3> groups{};
  if (auto fault = machine.load(packet, address, groups)) return fault;
  return dispatch(machine, packet, groups, packet.body.size() - 1);
}

}  // namespace packets
}  // namespace kiln::simulator
