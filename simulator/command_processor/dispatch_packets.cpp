#include <algorithm>
#include <array>
#include <cstring>

#include "simulator/command_processor/machine.hpp"
#include "simulator/command_processor/packet_table.hpp"
#include "simulator/memory/address_space.hpp"
#include "simulator/memory/image_layout.hpp"

namespace kiln::simulator {
namespace {

// Registers from the packet's first dword on; the values are its body after that.
Outcome set_registers(Machine& machine, const Packet& packet, std::uint32_t space, std::uint32_t end) {
  std::uint32_t offset = space + field(packet.body[0], 15, 0) * 4;
  for (std::size_t at = 1; at < packet.body.size(); ++at, offset += 4) {
    if (offset >= end)
      return packet.refuse(FaultKind::unknown_register, at, hexadecimal(offset) + " is past the registers it can set");
    if (auto fault = write_register(machine, packet, at, offset, packet.body[at])) return fault;
  }
  return {};
}

}  // namespace

namespace packets {

Outcome set_sh_reg(Machine& machine, const Packet& packet) {
  return set_registers(machine, packet, register_space::shader, register_space::shader_end);
}

Outcome set_sh_reg_index(Machine& machine, const Packet& packet) {
  if (field(packet.body[0], 31, 28) != 3)
    return packet.refuse(
        FaultKind::unknown_packet, 0,
        "index " + std::to_string(field(packet.body[0], 31, 28)) + " where only 3, CU masks, is known");
  for (std::size_t at = 1; at < packet.body.size(); ++at) {
    const std::uint32_t offset =
        register_space::shader + (field(packet.body[0], 15, 0) + static_cast<std::uint32_t>(at - 1)) * 4;
    const RegisterRule* const rule = machine.map.find(offset);
    if (rule == nullptr || !rule->cu_mask)
      return packet.refuse(FaultKind::unknown_register, at, "register " + hexadecimal(offset) + " holds no CU mask");
    if (auto fault = write_register(machine, packet, at, offset, packet.body[at])) return fault;
  }
  return {};
}

Outcome load_sh_reg_index(Machine& machine, const Packet& packet) {
  if (field(packet.body[0], 1, 0) != 0)
    return packet.refuse(
        FaultKind::unknown_packet, 0,
        "index " + std::to_string(field(packet.body[0], 1, 0)) + " where only 0, an address, is known");
  std::uint64_t address = sign_extended(joined(packet.body[0], packet.body[1]));
  std::uint32_t offset = register_space::shader + packet.body[2] * 4;
  for (std::uint32_t left = packet.body[3]; left != 0; --left, address += 4, offset += 4) {
    if (offset >= register_space::shader_end)
      return packet.refuse(FaultKind::unknown_register, 2, hexadecimal(offset) + " is past the registers it can set");
    std::uint32_t value = 0;
    if (auto fault = machine.load(packet, address, {&value, 1})) return fault;
    if (auto fault = write_register(machine, packet, 2, offset, value)) return fault;
  }
  return {};
}

Outcome set_context_reg(Machine& machine, const Packet& packet) {
  return set_registers(machine, packet, register_space::context, register_space::context_end);
}

Outcome set_uconfig_reg(Machine& machine, const Packet& packet) {
  return set_registers(machine, packet, register_space::uconfig, register_space::uconfig_end);
}

// The table has left no bit but those that say that nothing is loaded and nothing is shadowed.
Outcome context_control(Machine&, const Packet&) { return {}; }

Outcome clear_state(Machine& machine, const Packet&) {
  machine.registers.clear_context();
  return {};
}

}  // namespace packets

}  // namespace kiln::simulator

namespace kiln::simulator::packets {

Outcome nop(Machine&, const Packet&) { return {}; }

Outcome cond_exec(Machine& machine, const Packet& packet) {
  std::uint32_t condition = 0;
  const std::uint64_t address = sign_extended(joined(packet.body[0], packet.body[1]));
  if (auto fault = machine.load(packet, address, {&condition, 1})) return fault;
  if (condition == 0) machine.skip = packet.body[3];
  return {};
}

// The condition is read now, once. Which draws a query has seen is not known here.
Outcome set_predication(Machine& machine, const Packet& packet) {
  constexpr std::uint32_t clear = 0, bool64 = 3, bool32 = 4;
  const std::uint32_t operation = field(packet.body[0], 18, 16);
  if (operation == clear) {
    machine.predicate = true;
    return {};
  }
  if (operation != bool64 && operation != bool32)
    return packet.refuse(FaultKind::unknown_packet, 0,
                         "operation " + std::to_string(operation) + ", a query of draws, is not modelled");
  const std::uint64_t address = sign_extended(joined(packet.body[1], packet.body[2]));
  const std::size_t dwords = operation == bool64 ? 2 : 1;
  std::array<std::uint32_t, 2> condition{};
  if (auto fault = machine.load(packet, address, std::span(condition).first(dwords))) return fault;
  const bool where_true = field(packet.body[0], 8, 8) != 0;
  machine.predicate = (condition[0] != 0 || condition[1] != 0) == where_true;
  return {};
}

Outcome indirect_buffer(Machine& machine, const Packet& packet) {
  const bool chain = field(packet.body[2], 20, 20) != 0;
  const std::uint64_t dwords = field(packet.body[2], 19, 0);
  if (!chain && !machine.graphics())
    return packet.refuse(FaultKind::bad_state, 2, "a call without CHAIN is only for the graphics ring");
  if (dwords == 0) return packet.refuse(FaultKind::bad_state, 2, "an indirect buffer of no dwords");
  machine.enter = IndirectBuffer{sign_extended(joined(packet.body[0], packet.body[1])), dwords * 4};
  machine.enter_for_good = chain;
  return {};
}

}  // namespace kiln::simulator::packets

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
  state.overlaps = machine.running;
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
  const std::uint64_t before = machine.engine.counters().invocations;
  machine.running = true;
  machine.released = false;
  if (auto fault = machine.engine.run_dispatch(state, machine.memory)) return in_packet(std::move(*fault), packet);
  if (machine.statistics.counting) machine.statistics.invocations += machine.engine.counters().invocations - before;
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

// Draws of which nothing is drawn: drivers cover an image by a rectangle, and the colour unit writes what the image's
// DCC keys say instead of its bytes. All of the level and the layers that the colour target names is expanded.

namespace {

namespace colour {  // context registers of gfx10.3, of the first colour target
constexpr std::uint32_t control = 0x28808, base = 0x28C60, view = 0x28C6C, info = 0x28C70, clear_word0 = 0x28C8C,
                        clear_word1 = 0x28C90, dcc_base = 0x28C94, base_high = 0x28E40, dcc_base_high = 0x28EA0,
                        extent = 0x28EC0, layout = 0x28EE0;
constexpr unsigned eliminate_fast_clear = 2, decompress = 6;  // CB_COLOR_CONTROL.MODE
}  // namespace colour

// By CB_COLOR0_INFO.FORMAT; 0: none.
constexpr std::uint8_t texel_bytes[32] = {0, 1, 2, 2, 4, 4, 4, 4, 4, 4, 4, 8, 8, 0, 16, 0,
                                          2, 2, 2, 2, 4, 4, 8, 0, 4, 0, 0, 0, 0, 0, 0,  0};

ImageDescriptor target_of(const RegisterFile& registers) {
  constexpr std::array<std::uint32_t, 8> nothing{};
  ImageDescriptor image(nothing.data(), Generation::gfx10_3);
  const auto address = [&](std::uint32_t low, std::uint32_t high) {
    return sign_extended(std::uint64_t{registers.get(low)} << 8 | std::uint64_t{field(registers.get(high), 7, 0)}
                                                                      << 40);
  };
  const std::uint32_t extent = registers.get(colour::extent), layout = registers.get(colour::layout);
  constexpr std::uint32_t volume = 2;
  image.base = address(colour::base, colour::base_high);
  image.keys = address(colour::dcc_base, colour::dcc_base_high);
  image.width = field(extent, 27, 14) + 1;
  image.height = field(extent, 13, 0) + 1;
  image.levels = field(extent, 31, 28) + 1;
  image.swizzle_mode = field(layout, 18, 14);
  image.type = field(layout, 25, 24) == volume ? ImageType::three : ImageType::two_array;
  return image;
}

struct Tile {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

// One tile of 256 bytes.
Outcome expand(Machine& machine, const Packet& packet, const Tile& tile, unsigned bytes, bool all) {
  const RegisterFile& registers = machine.registers;
  std::uint32_t keys = 0;
  if (auto fault = machine.read_l2(packet, tile.key & ~std::uint64_t{3}, {&keys, 1})) return fault;
  const unsigned shift = 8 * (tile.key & 3);
  const auto key = static_cast<std::uint8_t>(keys >> shift);
  const Cleared cleared = cleared_by(key, Generation::gfx10_3);
  if (cleared == Cleared::no || (!all && cleared != Cleared::by_register)) return {};
  std::array<std::uint32_t, key_covers / 4> words{};
  if (cleared == Cleared::first || cleared == Cleared::by_register) {
    std::array<std::uint32_t, 4> texel{registers.get(colour::clear_word0), registers.get(colour::clear_word1)};
    if (cleared == Cleared::first) {
      if (auto fault = machine.read_l2(packet, tile.address, texel)) return fault;
    } else if (bytes > 8) {
      return packet.refuse(FaultKind::bad_state, 0, "a clear colour of two words for texels of 16 bytes");
    }
    auto* to = reinterpret_cast<std::byte*>(words.data());
    for (unsigned at = 0; at < key_covers; at += bytes) std::memcpy(to + at, texel.data(), bytes);
  } else if (cleared != Cleared::zero) {
    return packet.refuse(FaultKind::bad_state, 0, "DCC key " + hexadecimal(key) + " is not modelled");
  }
  if (auto fault = machine.write_l2(packet, tile.address, words)) return fault;
  keys |= std::uint32_t{plain_key} << shift;
  return machine.write_l2(packet, tile.key & ~std::uint64_t{3}, {&keys, 1});
}

Outcome expand_target(Machine& machine, const Packet& packet, bool all) {
  const std::uint32_t info = machine.registers.get(colour::info), view = machine.registers.get(colour::view);
  const unsigned bytes = texel_bytes[field(info, 6, 2)];
  if (bytes == 0)
    return packet.refuse(FaultKind::bad_state, 0,
                         "colour format " + std::to_string(field(info, 6, 2)) + " of CB_COLOR0_INFO does not exist");
  if (field(info, 28, 28) == 0)
    return packet.refuse(FaultKind::bad_state, 0, "the colour target has no DCC, and CMASK is not modelled");
  const ImageDescriptor image = target_of(machine.registers);
  ImageLayout layout;
  auto reason = layout.set(image, bytes, Generation::gfx10_3);
  if (!reason) reason = layout.set_keys(image, Generation::gfx10_3);
  if (reason) return packet.refuse(FaultKind::bad_state, 0, *reason + " of the colour target is not modelled");
  const unsigned level = field(view, 29, 26);
  const std::uint32_t width = std::max(image.width >> level, 1U), height = std::max(image.height >> level, 1U);
  for (std::uint32_t z = field(view, 12, 0); z <= field(view, 25, 13); ++z) {
    for (std::uint32_t y = 0; y < height; y += layout.tile_height()) {
      for (std::uint32_t x = 0; x < width; x += layout.tile_width()) {
        Tile tile;
        tile.address = layout.address(level, x, y, z);
        tile.key = layout.key(level, z, tile.address);
        if (auto fault = expand(machine, packet, tile, bytes, all)) return fault;
      }
    }
  }
  return {};
}

}  // namespace

namespace packets {

Outcome num_instances(Machine&, const Packet&) { return {}; }

Outcome draw_index_auto(Machine& machine, const Packet& packet) {
  const unsigned mode = field(machine.registers.get(colour::control), 6, 4);
  if (machine.gfx11()) return packet.refuse(FaultKind::unknown_packet, 0, "draws are not modelled");
  if (mode == colour::decompress || mode == colour::eliminate_fast_clear)
    return expand_target(machine, packet, mode == colour::decompress);
  return packet.refuse(
      FaultKind::unknown_packet, 0,
      "draws are not modelled, but for those that expand a compressed image (CB_COLOR_CONTROL.MODE 2 or "
      "6, not " +
          std::to_string(mode) + ")");
}

}  // namespace packets

}  // namespace kiln::simulator
