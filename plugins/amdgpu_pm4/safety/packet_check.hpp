// Checks of dispatches, against the registers as the stream has set them.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <kiln/status.hpp>

#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/packets/packet_reader.hpp"
#include "amdgpu_pm4/packets/registers.hpp"
#include "amdgpu_pm4/safety/validator.hpp"

namespace kiln::amdgpu_pm4 {

// RegisterShadow: the COMPUTE registers as a submission's own packets have set them. What another submission left there
// counts as not set.
//
// Thread-safety: one thread at a time. Ownership: value.

// REQUIRES: a COMPUTE register.
constexpr std::size_t shadow_index(Register which) noexcept { return (address_of(which) - compute_registers) / 4; }

class RegisterShadow {
 public:
  using Set = std::bitset<compute_register_count>;

  void set(std::size_t index, std::uint32_t value) noexcept {
    // Arguments differ from dispatch to dispatch; what else changes makes the program's check due again.
    if (values_[index] != value || !set_.test(index)) (index < first_user_data ? changed_ : user_data_changed_) = true;
    values_[index] = value;
    set_.set(index);
  }

  std::uint32_t operator[](Register which) const noexcept { return values_[shadow_index(which)]; }
  std::uint32_t at(std::size_t index) const noexcept { return values_[index]; }
  std::uint32_t user_data(std::uint32_t sgpr) const noexcept { return values_[first_user_data + sgpr]; }
  const Set& all_set() const noexcept { return set_; }

  bool changed() const noexcept { return changed_; }  // anything but USER_DATA since unchanged_from_here()
  bool user_data_changed() const noexcept { return user_data_changed_; }
  void unchanged_from_here() noexcept { changed_ = user_data_changed_ = false; }

 private:
  static constexpr std::size_t first_user_data = shadow_index(Register::user_data_0);

  std::array<std::uint32_t, compute_register_count> values_{};
  Set set_;
  bool changed_ = true, user_data_changed_ = true;
};

// DispatchCheck: whether a dispatch can run with the registers as they stand. On hardware most of what is refused here
// would hang the ring, and take other processes' work with it.
//
// Thread-safety: one thread at a time. Ownership: borrows the scope and the finder. Allocates nothing, but where it
// refuses.
class DispatchCheck {
 public:
  DispatchCheck(const SubmissionScope& scope, RangeFinder& finder);

  Status check(RegisterShadow& registers, std::uint32_t initiator);

 private:
  Status check_set(const RegisterShadow& registers) const;
  Status check_program(const RegisterShadow& registers);
  Status check_resources(const RegisterShadow& registers) const;
  Status check_workgroup(const RegisterShadow& registers) const;
  Status check_scratch(const RegisterShadow& registers);
  Status check_arguments(const RegisterShadow& registers);
  Status check_initiator(std::uint32_t initiator) const;

  const SubmissionScope& scope_;
  RangeFinder& finder_;
  const Capabilities& capabilities_;
  RegisterShadow::Set required_;
  const ProgramFacts* program_ = nullptr;  // of the last check
  std::uint32_t initiator_ = 0;            // the last that passed
};

// Checks of single packets of a finished stream.

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

  // dispatch_packets.cpp
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
  void remember(std::uint64_t va, Body values);
  void forget(std::uint64_t va, std::uint64_t bytes);

  struct Written {
    std::uint64_t va = 0;
    std::uint32_t value = 0;
    bool known = false;  // else something unknown was written over it
  };

  RangeFinder& finder_;
  const Capabilities& capabilities_;
  RegisterShadow registers_;
  DispatchCheck dispatch_;
  std::array<Written, 16> written_{};  // the last ones: what a stream waits for, it wrote shortly before
  std::size_t written_count_ = 0;
  std::uint32_t acquire_header_ = 0;  // of the last ACQUIRE_MEM that passed
  std::array<std::uint32_t, acquire_mem_dwords - 1> acquire_body_{};
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
