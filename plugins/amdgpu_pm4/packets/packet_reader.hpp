// The layout of each packet, and the reader of a stream of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/packet_fields.hpp"

namespace kiln::amdgpu_pm4 {

// PacketLayout: what the dwords of a packet's body mean. The decoder prints by it; the validator takes from it how long
// a body is and which bits nobody knows.
//
// Thread-safety and ownership: constants.

enum class WordKind : std::uint8_t {
  invalid = 0,
  number,
  fields,
  address_low,  // the next word is the upper half
  address_high,
  register_offset,  // fields; the body's further words are values of registers from there
};

struct WordLayout {
  std::string_view name;
  WordKind kind = WordKind::invalid;
  std::span<const Field> fields = {};
  std::array<std::uint32_t, generation_count> known = {~0U, ~0U};  // bits, by column_of(generation)
};

struct PacketLayout {
  Opcode opcode = Opcode::invalid;
  std::string_view name;
  std::uint32_t least_body = 1;
  std::uint32_t most_body = largest_count;
  std::span<const WordLayout> words = {};  // the first ones; none: the body is not put into words
  std::uint32_t register_space = 0;        // byte address, where words.front() is a register_offset
};

// nullptr: an opcode without a name here.
const PacketLayout* find_layout(Opcode opcode) noexcept;

// PacketReader: cuts a stream of dwords into packets. Every stream: what is no packet is a packet with a finding, and
// each dword belongs to exactly one.
//
// Thread-safety: one thread at a time. Ownership: borrows the stream, which the views point into. Allocates nothing.

enum class Finding : std::uint8_t {
  invalid = 0,
  known,
  filler,          // the one-dword NOP
  unknown_opcode,  // type 3; its length is believed
  wrong_length,    // type 3 of a known opcode; its length is believed
  cut_off,         // the stream ends within it
  type_0,          // a register write in the form that compute rings refuse; its length is believed
  type_1,          // no such packet: one dword
  type_2           // the filler of older firmware: one dword
};

struct PacketView {
  std::size_t at = 0;  // of the header in the stream, in dwords
  std::uint32_t header = 0;
  Finding finding = Finding::invalid;
  const PacketLayout* layout = nullptr;  // type 3 with a known opcode
  std::span<const std::uint32_t> body;   // as much of it as there is

  Opcode opcode() const noexcept { return packet_opcode(header); }
  bool is(Opcode which) const noexcept { return packet_type(header) == 3 && opcode() == which; }
};

class PacketReader {
 public:
  explicit PacketReader(std::span<const std::uint32_t> stream) noexcept : stream_(stream) {}

  // The next packet; false at the end.
  bool next(PacketView& packet) noexcept;

 private:
  std::span<const std::uint32_t> stream_;
  std::size_t at_ = 0;
};

}  // namespace kiln::amdgpu_pm4
