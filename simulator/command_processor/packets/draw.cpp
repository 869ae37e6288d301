// Draws of which nothing is drawn: drivers cover an image by a rectangle, and the colour unit writes what the image's
// DCC keys say instead of its bytes. All of the level and the layers that the colour target names is expanded.
#include <algorithm>
#include <array>
#include <cstring>

#include "simulator/command_processor/packets/packets.hpp"
#include "simulator/memory/address_space.hpp"
#include "simulator/memory/image_layout.hpp"

namespace kiln::simulator {
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
