#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "simulator/command_processor/machine.hpp"
#include "simulator/command_processor/packet_table.hpp"
#include "simulator/memory/address_space.hpp"

namespace kiln::simulator {
namespace {

enum class Place : std::uint8_t { invalid = 0, reg, memory, l2, immediate, clock };

// Engines: 0 is the one that executes, 1 the prefetching one of the graphics ring. The compute ring has one engine and
// ignores the field: Mesa names the prefetching one there too.
bool engine_known(std::uint32_t engine) { return engine <= 1; }

// One or two dwords from packet.body[at], body[at + 1].
struct Operand {
  Place place = Place::invalid;
  std::size_t at = 0;
};

Outcome check_address(const Packet& packet, std::size_t at, std::uint64_t bytes) {
  if (!is_high_half(packet.body[at + 1]))
    return packet.refuse(FaultKind::unknown_packet, at + 1, "an address of more than 48 bits");
  if (packet.body[at] % bytes != 0)
    return packet.refuse(FaultKind::misaligned, at, "an address that is not a multiple of " + std::to_string(bytes));
  return {};
}

std::uint64_t address_at(const Packet& packet, std::size_t at) {
  return sign_extended(joined(packet.body[at], packet.body[at + 1]));
}

// Register operands are absolute dword numbers.
Outcome register_offset(const Packet& packet, std::size_t at, std::uint32_t& offset) {
  if (packet.body[at] > 0x3'FFFF || packet.body[at + 1] != 0)
    return packet.refuse(FaultKind::unknown_register, at, "no register has that number");
  offset = packet.body[at] * 4;
  return {};
}

Outcome read_operand(Machine& machine, const Packet& packet, Operand from, std::span<std::uint32_t> words) {
  if (from.place == Place::immediate) {
    for (std::size_t at = 0; at < words.size(); ++at) words[at] = packet.body[from.at + at];
    return {};
  }
  if (from.place == Place::clock) {
    const std::uint64_t ticks = machine.gpu_clock();
    words[0] = static_cast<std::uint32_t>(ticks);
    if (words.size() == 2) words[1] = static_cast<std::uint32_t>(ticks >> 32);
    return {};
  }
  if (from.place == Place::reg) {
    std::uint32_t offset = 0;
    if (auto fault = register_offset(packet, from.at, offset)) return fault;
    for (std::uint32_t& word : words) {
      if (auto fault = read_register(machine, packet, from.at, offset, word)) return fault;
      offset += 4;
    }
    return {};
  }
  if (auto fault = check_address(packet, from.at, words.size_bytes())) return fault;
  return from.place == Place::l2 ? machine.read_l2(packet, address_at(packet, from.at), words)
                                 : machine.load(packet, address_at(packet, from.at), words);
}

Outcome write_operand(Machine& machine, const Packet& packet, Operand to, std::span<const std::uint32_t> words) {
  if (to.place == Place::reg) {
    std::uint32_t offset = 0;
    if (auto fault = register_offset(packet, to.at, offset)) return fault;
    for (const std::uint32_t word : words) {
      if (auto fault = write_register(machine, packet, to.at, offset, word)) return fault;
      offset += 4;
    }
    return {};
  }
  return to.place == Place::l2 ? machine.write_l2(packet, address_at(packet, to.at), words)
                               : machine.store(packet, address_at(packet, to.at), words);
}

Place destination(std::uint32_t selected) {
  switch (selected) {
    case 0:
      return Place::reg;
    case 2:
      return Place::l2;
    case 5:
      return Place::memory;
    default:
      return Place::invalid;
  }
}

Place source(std::uint32_t selected) {
  switch (selected) {
    case 0:
      return Place::reg;
    case 1:
      return Place::memory;
    case 2:
      return Place::l2;
    case 5:
      return Place::immediate;
    case 9:
      return Place::clock;
    default:
      return Place::invalid;
  }
}

Fault unknown_place(const Packet& packet, const char* what, std::uint32_t selected) {
  return packet.refuse(FaultKind::unknown_packet, 0,
                       std::string(what) + " " + std::to_string(selected) + " is not known");
}

}  // namespace

namespace packets {

Outcome write_data(Machine& machine, const Packet& packet) {
  const std::uint32_t control = packet.body[0];
  const Operand to{destination(field(control, 11, 8)), 1};
  if (to.place == Place::invalid) return unknown_place(packet, "DST_SEL", field(control, 11, 8));
  if (!engine_known(field(control, 31, 30))) return unknown_place(packet, "ENGINE_SEL", field(control, 31, 30));
  const auto words = packet.body.subspan(3);
  if (to.place != Place::reg)
    if (auto fault = check_address(packet, 1, 4)) return fault;
  const bool one_address = field(control, 16, 16) != 0;
  return write_operand(machine, packet, to, one_address ? words.last(1) : words);
}

Outcome copy_data(Machine& machine, const Packet& packet) {
  const std::uint32_t control = packet.body[0];
  const Operand from{source(field(control, 3, 0)), 1};
  const Operand to{destination(field(control, 11, 8)), 3};
  if (from.place == Place::invalid) return unknown_place(packet, "SRC_SEL", field(control, 3, 0));
  if (to.place == Place::invalid) return unknown_place(packet, "DST_SEL", field(control, 11, 8));
  if (!engine_known(field(control, 31, 30))) return unknown_place(packet, "ENGINE_SEL", field(control, 31, 30));
  std::array<std::uint32_t, 2> storage{};
  const std::span<std::uint32_t> words(storage.data(), field(control, 16, 16) != 0 ? 2 : 1);
  if (to.place != Place::reg)
    if (auto fault = check_address(packet, 3, words.size_bytes())) return fault;
  if (auto fault = read_operand(machine, packet, from, words)) return fault;
  return write_operand(machine, packet, to, words);
}

}  // namespace packets

namespace {

enum class Path : std::uint8_t { invalid = 0, memory, l2, fill, nowhere };

Path source_path(std::uint32_t selected) {
  constexpr std::array<Path, 4> paths{Path::memory, Path::invalid, Path::fill, Path::l2};
  return paths[selected];
}

Path destination_path(std::uint32_t selected) {
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
  what.from = source_path(field(control, 30, 29));
  what.to = destination_path(field(control, 21, 20));
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
    what.source = sign_extended(joined(packet.body[1], packet.body[2]));
  }
  constexpr std::uint64_t longest_prefetch = 32 * 1024 - 32;
  if (what.to == Path::nowhere && machine.gfx11() && what.bytes > longest_prefetch)
    return packet.refuse(FaultKind::bad_state, 5, "a prefetch of more than 32,736 bytes on gfx11");
  return run(machine, packet, what);
}

}  // namespace packets

namespace {

// Operations of the texture cache's numbering: +0x20 for 64 bits, +0x40 for those that answer nothing.
enum class Operation : std::uint8_t {
  invalid = 0,
  swap = 0x07,
  compare_swap = 0x08,
  add = 0x0F,
  subtract = 0x10,
  signed_min = 0x11,
  unsigned_min = 0x12,
  signed_max = 0x13,
  unsigned_max = 0x14,
  bit_and = 0x15,
  bit_or = 0x16,
  bit_xor = 0x17,
  increment = 0x18,
  decrement = 0x19
};

Operation operation_of(std::uint32_t code) {
  const std::uint32_t plain = code & 0x1F;
  if (plain == 0x07 || plain == 0x08 || (plain >= 0x0F && plain <= 0x19)) return static_cast<Operation>(plain);
  return Operation::invalid;
}

template <typename Word>
Word result(Operation operation, Word old, Word source, Word compare) {
  using Signed = std::make_signed_t<Word>;
  switch (operation) {
    case Operation::swap:
      return source;
    case Operation::compare_swap:
      return old == compare ? source : old;
    case Operation::add:
      return old + source;
    case Operation::subtract:
      return old - source;
    case Operation::signed_min:
      return static_cast<Signed>(old) < static_cast<Signed>(source) ? old : source;
    case Operation::unsigned_min:
      return std::min(old, source);
    case Operation::signed_max:
      return static_cast<Signed>(old) > static_cast<Signed>(source) ? old : source;
    case Operation::unsigned_max:
      return std::max(old, source);
    case Operation::bit_and:
      return old & source;
    case Operation::bit_or:
      return old | source;
    case Operation::bit_xor:
      return old ^ source;
    case Operation::increment:
      return old >= source ? 0 : old + 1;
    case Operation::decrement:
      return old == 0 || old > source ? source : old - 1;
    case Operation::invalid:
      break;
  }
  return old;
}

// Whether the compared value was there.
template <typename Word>
bool apply(std::byte* at, Operation operation, std::uint64_t source, std::uint64_t compare) {
  auto* const word = static_cast<Word*>(static_cast<void*>(at));
  const auto operand = static_cast<Word>(source);
  const auto expected = static_cast<Word>(compare);
  Word old = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(word, &old, result(operation, old, operand, expected), false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE)) {
  }
  return old == expected;
}

}  // namespace

namespace packets {

Outcome atomic_mem(Machine& machine, const Packet& packet) {
  const std::uint32_t code = field(packet.body[0], 6, 0);
  const std::uint32_t command = field(packet.body[0], 11, 8);
  const Operation operation = operation_of(code);
  const bool wide = (code & 0x20) != 0;
  if (operation == Operation::invalid)
    return packet.refuse(FaultKind::unknown_packet, 0, "atomic operation " + hexadecimal(code) + " is not known");
  if (command > 1 || (command == 1 && operation != Operation::compare_swap))
    return packet.refuse(FaultKind::unknown_packet, 0, "command " + std::to_string(command) + " is not known for it");
  if (const std::uint32_t engine = field(packet.body[0], 31, 30); !engine_known(engine))
    return packet.refuse(FaultKind::unknown_packet, 0, "ENGINE_SEL " + std::to_string(engine) + " is not known");
  const std::uint64_t address = sign_extended(joined(packet.body[1], packet.body[2]));
  if (address % (wide ? 8 : 4) != 0)
    return packet.refuse(FaultKind::misaligned, 1, "an address that is not a multiple of its word");
  Page page;
  if (auto fault = machine.memory.page(address, Access::write, page)) return of_packet(std::move(*fault), packet);
  std::byte* const at = page.data + (address - page.address);
  const std::uint64_t source = joined(packet.body[3], packet.body[4]), compare = joined(packet.body[5], packet.body[6]);
  const bool equal = wide ? apply<std::uint64_t>(at, operation, source, compare)
                          : apply<std::uint32_t>(at, operation, source, compare);
  page.mark(address, wide ? 8 : 4);
  // Nothing else of the device runs meanwhile: what did not compare equal now never will.
  if (command == 1 && !equal)
    return packet.refuse(FaultKind::watchdog, 5, "the value at " + hexadecimal(address) + " never compares equal");
  return {};
}

}  // namespace packets

}  // namespace kiln::simulator
