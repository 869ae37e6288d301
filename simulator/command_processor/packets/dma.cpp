#include <algorithm>
#include <array>
#include <cstring>

#include "simulator/command_processor/packets/packets.hpp"
#include "simulator/memory/address_space.hpp"

namespace kiln::simulator {
namespace {

enum class Path : std::uint8_t { invalid = 0, memory, l2, fill, nowhere };

Path source(std::uint32_t selected) {
  constexpr std::array<Path, 4> paths{Path::memory, Path::invalid, Path::fill, Path::l2};
  return paths[selected];
}

Path destination(std::uint32_t selected) {
  constexpr std::array<Path, 4> paths{Path::memory, Path::invalid, Path::nowhere, Path::l2};
  return paths[selected];
}

struct Transfer {
  Path from = Path::invalid, to = Path::invalid;
  std::uint64_t source = 0, destination = 0;
  std::uint32_t pattern = 0;
  std::uint64_t bytes = 0;
};

Outcome read_piece(Machine& machine, const Packet& packet, const Transfer& what, std::span<std::byte> out) {
  if (what.from == Path::fill) {
    for (std::size_t at = 0; at < out.size(); at += 4) std::memcpy(out.data() + at, &what.pattern, 4);
    return {};
  }
  if (what.from == Path::memory) {
    if (auto fault = machine.memory.load(what.source, out)) return of_packet(std::move(*fault), packet);
    return {};
  }
  Page page;
  if (auto fault = machine.memory.page(what.source, Access::read, page)) return of_packet(std::move(*fault), packet);
  std::memcpy(out.data(), page.data + (what.source - page.address), out.size());
  return {};
}

Outcome write_piece(Machine& machine, const Packet& packet, const Transfer& what, std::span<const std::byte> bytes) {
  if (what.to == Path::nowhere) return {};
  if (what.to == Path::memory) {
    if (auto fault = machine.memory.store(what.destination, bytes)) return of_packet(std::move(*fault), packet);
    return {};
  }
  Page page;
  if (auto fault = machine.memory.page(what.destination, Access::write, page))
    return of_packet(std::move(*fault), packet);
  std::memcpy(page.data + (what.destination - page.address), bytes.data(), bytes.size());
  page.mark(what.destination, bytes.size());
  return {};
}

// Piece by piece, none of which crosses a page on either side.
Outcome run(Machine& machine, const Packet& packet, Transfer what) {
  std::array<std::byte, Page::bytes> piece;
  while (what.bytes != 0) {
    std::uint64_t count = std::min(what.bytes, Page::bytes);
    if (what.from != Path::fill) count = std::min(count, Page::bytes - what.source % Page::bytes);
    if (what.to != Path::nowhere) count = std::min(count, Page::bytes - what.destination % Page::bytes);
    const std::span<std::byte> part(piece.data(), static_cast<std::size_t>(count));
    if (auto fault = read_piece(machine, packet, what, part)) return fault;
    if (auto fault = write_piece(machine, packet, what, part)) return fault;
    what.source += count;
    what.destination += count;
    what.bytes -= count;
  }
  return {};
}

}  // namespace

namespace packets {

Outcome dma_data(Machine& machine, const Packet& packet) {
  const std::uint32_t control = packet.body[0];
  Transfer what;
  what.from = source(field(control, 30, 29));
  what.to = destination(field(control, 21, 20));
  if (what.from == Path::invalid || what.to == Path::invalid)
    return packet.refuse(FaultKind::unknown_packet, 0, "there is no global data share");
  if (field(control, 0, 0) != 0 && !machine.graphics())
    return packet.refuse(FaultKind::unknown_packet, 0, "the compute ring has no prefetching engine");
  what.bytes = field(packet.body[5], 25, 0);
  what.destination = sign_extended(joined(packet.body[3], packet.body[4]));
  if (what.from == Path::fill) {
    what.pattern = packet.body[1];
    if (what.to == Path::nowhere) return packet.refuse(FaultKind::bad_state, 0, "a fill of nothing");
    if (what.bytes % 4 != 0 || what.destination % 4 != 0)
      return packet.refuse(FaultKind::misaligned, 5, "a fill that is not of whole dwords");
  } else {
    if (!is_high_half(packet.body[2]))
      return packet.refuse(FaultKind::unknown_packet, 2, "an address of more than 48 bits");
    what.source = sign_extended(joined(packet.body[1], packet.body[2]));
  }
  constexpr std::uint64_t longest_prefetch = 32 * 1024 - 32;
  if (what.to == Path::nowhere && machine.gfx11() && what.bytes > longest_prefetch)
    return packet.refuse(FaultKind::bad_state, 5, "a prefetch of more than 32,736 bytes on gfx11");
  return run(machine, packet, what);
}

}  // namespace packets
}  // namespace kiln::simulator
