#include <algorithm>
#include <type_traits>

#include "simulator/command_processor/packets/packets.hpp"
#include "simulator/memory/address_space.hpp"

namespace kiln::simulator {
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
  if (const std::uint32_t engine = field(packet.body[0], 31, 30); engine > 1 || (engine == 1 && !machine.graphics()))
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
