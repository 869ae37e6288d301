// Checks of single packets of a finished stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <kiln/status.hpp>

#include "amdgpu_pm4/packets/packet_reader.hpp"
#include "amdgpu_pm4/safety/dispatch_check.hpp"

namespace kiln::amdgpu_pm4 {

// PacketCheck: one packet after the other, against the allow-lists and the submission's buffers. Keeps what later
// packets are judged by: registers, and values written that a wait may wait for.
//
// Thread-safety: one thread at a time. Ownership: borrows the scope and the finder. Allocates nothing, but where it
// refuses.
class PacketCheck {
 public:
  PacketCheck(const SubmissionScope& scope, RangeFinder& finder);

  // invalid_argument, or unsupported for a packet that no compute ring is given. A chain is only looked at as far as
  // the packet itself goes.
  Status check(const PacketView& packet);

 private:
  using Body = std::span<const std::uint32_t>;

  Status check_form(const PacketView& packet) const;
  Status check_body(const PacketView& packet);
  Status indirect_buffer(Body body) const;

  // state_packets.cpp
  Status set_registers(const PacketView& packet);
  Status dispatch_indirect(Body body);
  Status acquire(Body body) const;
  Status event(Body body) const;

  // memory_packets.cpp
  Status release(Body body);
  Status write(Body body);
  Status copy(Body body);
  Status dma(Body body);
  Status wait(Body body);
  void remember(std::uint64_t va, std::uint32_t value);

  struct Written {
    std::uint64_t va = 0;
    std::uint32_t value = 0;
  };

  RangeFinder& finder_;
  const Capabilities& capabilities_;
  RegisterShadow registers_;
  DispatchCheck dispatch_;
  std::array<Written, 16> written_{};  // the last ones: what a stream waits for, it wrote shortly before
  std::size_t written_count_ = 0;
};

// What the checks of packets have in common: the words of a body, and what is said of one that is wrong.
//
// Thread-safety: functions of their arguments alone.

// As written: canonical() completes it.
inline std::uint64_t address_at(std::span<const std::uint32_t> body, std::size_t low) {
  return std::uint64_t{body[low + 1]} << 32 | body[low];
}

// An address's upper half may leave out the copies of bit 47, but hold nothing else.
bool is_address(std::uint64_t address);

// invalid_argument: a dword of the packet, counted from its header, has a value that it may not have.
Status wrong_word(std::size_t dword, std::string_view name, std::uint32_t is, std::string_view expected);

Status check_aligned(std::uint64_t va, std::uint64_t alignment, std::string_view what);

}  // namespace kiln::amdgpu_pm4
