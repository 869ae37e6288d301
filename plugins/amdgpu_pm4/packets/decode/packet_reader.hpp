// PacketReader: cuts a stream of dwords into packets. Every stream: what is no packet is a packet with a finding, and
// each dword belongs to exactly one.
//
// Thread-safety: one thread at a time. Ownership: borrows the stream, which the views point into. Allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "amdgpu_pm4/packets/decode/packet_layout.hpp"

namespace kiln::amdgpu_pm4 {

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
