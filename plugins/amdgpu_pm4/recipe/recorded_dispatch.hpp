// RecordedDispatch: the packets of one program's dispatch, made once, with the places where each dispatch differs: the
// address of its arguments and its number of groups. To dispatch is to copy and to patch.
//
// Thread-safety: const methods from any thread. Ownership: holds its dwords itself; no method but record() allocates.
#pragma once

#include <kiln/status.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/recipe/scratch_ring.hpp"

namespace kiln::amdgpu_pm4 {

inline constexpr std::uint32_t most_workgroup_lanes = 1024;
inline constexpr std::uint32_t most_lds_bytes = 64 * 1024;
inline constexpr std::uint32_t lds_granule = 512;
inline constexpr std::uint64_t code_alignment = 256;
inline constexpr std::uint64_t kernarg_alignment = 16;
inline constexpr std::uint32_t user_data_registers = 16;

struct DispatchPlace {
  std::uint64_t image_va = 0;  // where CodeObject::image lies
  std::array<std::uint32_t, 3> workgroup{};
  std::uint32_t dynamic_lds_bytes = 0;  // beside the kernel's own
  ScratchRing scratch;                  // where the kernel has scratch bytes; else empty
  std::uint64_t scratch_va = 0;
};

struct DispatchArguments {
  std::uint64_t kernarg_va = 0;            // a multiple of kernarg_alignment; not read where the kernel has none
  std::array<std::uint32_t, 3> groups{};   // workgroups
  std::optional<std::uint64_t> groups_at;  // instead: the address of three dwords, read when the dispatch begins
};

class RecordedDispatch {
 public:
  // invalid_argument: the place does not fit the kernel. unsupported: the kernel wants what is not offered. Both name
  // it.
  static Result<RecordedDispatch> record(const KernelCode& kernel, const DeviceShape& shape,
                                         const DispatchPlace& place);

  static constexpr std::size_t most_dwords = 56;

  // All state, then the dispatch. false: no room, and nothing written.
  [[nodiscard]] bool append(PacketWriter& out, const DispatchArguments& arguments) const noexcept;
  // Only what differs, where the last dispatch of the stream had the same state.
  [[nodiscard]] bool append_again(PacketWriter& out, const DispatchArguments& arguments) const noexcept;

  // The registers that the dispatch depends on, arguments left out.
  std::span<const std::uint32_t> state() const noexcept { return std::span(dwords_).first(size_); }

 private:
  RecordedDispatch() = default;
  bool append_launch(PacketWriter& out, const DispatchArguments& arguments) const noexcept;

  std::array<std::uint32_t, most_dwords> dwords_{};  // packets that set registers
  std::uint32_t size_ = 0;
  std::optional<std::uint32_t> kernarg_sgpr_;  // the first of two
  std::uint32_t kernarg_at_ = 0;               // their place in dwords_
  std::uint32_t initiator_ = 0;
};

}  // namespace kiln::amdgpu_pm4
