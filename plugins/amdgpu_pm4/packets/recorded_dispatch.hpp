// A dispatch as packets: the memory of its lanes, the packets themselves, and the check of its kernel.
//
// ScratchRing: private memory of lanes. Each wave in flight has a slot of a ring; TMPRING_SIZE says how many slots and
// how large, and the submitter says where the ring lies: by registers on gfx11, by user SGPRs on gfx10.3.
//
// Thread-safety and ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/packets/registers.hpp"

namespace kiln::amdgpu_pm4 {

struct ScratchRing {
  std::uint32_t tmpring_size = 0;  // the register
  std::uint64_t bytes = 0;         // that must lie at its address, which is a multiple of 256
};

inline constexpr std::uint64_t scratch_alignment = 256;

// A ring for every wave that the device can hold, as far as the register can count them. unsupported: one wave's slot
// is larger than the register can tell.
Result<ScratchRing> scratch_ring(const DeviceShape& shape, std::uint32_t bytes_per_lane, std::uint32_t wave_lanes);

// What TMPRING_SIZE makes of memory, read back: bytes of one wave's slot, and of the ring.
std::uint64_t scratch_slot_bytes(const Capabilities& capabilities, std::uint32_t tmpring_size) noexcept;
std::uint64_t scratch_ring_bytes(const Capabilities& capabilities, std::uint32_t tmpring_size,
                                 std::uint32_t shader_engines) noexcept;

// The buffer resource that gfx10.3 code finds in its first user SGPRs: lanes' dwords lie side by side.
std::array<std::uint32_t, 4> scratch_resource(std::uint64_t va, std::uint32_t wave_lanes) noexcept;

// RecordedDispatch: the packets of one program's dispatch, made once, with the places where each dispatch differs: the
// address of its arguments and its number of groups. To dispatch is to copy and to patch.
//
// Thread-safety: const methods from any thread. Ownership: holds its dwords itself; no method but record() allocates.

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
  // The launch alone, where its arguments were at the same address too.
  [[nodiscard]] bool append_launch(PacketWriter& out, const DispatchArguments& arguments) const noexcept;

  // The registers that the dispatch depends on, arguments left out.
  std::span<const std::uint32_t> state() const noexcept { return std::span(dwords_).first(size_); }

 private:
  RecordedDispatch() = default;

  std::array<std::uint32_t, most_dwords> dwords_{};  // packets that set registers
  std::uint32_t size_ = 0;
  std::optional<std::uint32_t> kernarg_sgpr_;  // the first of two
  std::uint32_t kernarg_at_ = 0;               // their place in dwords_
  std::uint32_t initiator_ = 0;
};

// Checks of a kernel against a device, and what one workgroup asks of a SIMD.

// Whether a kernel can be dispatched as it is asked for. The hardware checks none of this: it would hang, or compute
// nonsense.
//
// Thread-safety and ownership: a function without state.

// invalid_argument: the place does not fit the kernel. unsupported: the kernel wants what is not offered. corrupt: the
// kernel's own numbers contradict each other. The message names the kernel and both sides.
Status check_kernel(const KernelCode& kernel, const DeviceShape& shape, const DispatchPlace& place);

// GroupLoad: what a workgroup asks of one SIMD. Its waves run on one compute unit (2 SIMDs), or on a pair of them (4),
// and all must be there at once, or none ever starts.
//
// Thread-safety and ownership: values.
struct GroupLoad {
  std::uint32_t waves = 0;  // on the fullest SIMD
  std::uint32_t vgprs = 0;  // of 32 lanes, of those waves
};

// The largest PGM_RSRC1.VGPRS: 256 registers, counted in granules less one.
constexpr std::uint32_t most_vgpr_granules(std::uint32_t wave_lanes) noexcept { return wave_lanes == 32 ? 31 : 63; }

// REQUIRES: lanes at most 1024; wave_lanes 32 or 64. PGM_RSRC1 counts granules of 8 registers of 32 lanes or 4 of 64.
constexpr GroupLoad group_load(std::uint32_t rsrc1, std::uint32_t rsrc3, std::uint32_t lanes, std::uint32_t wave_lanes,
                               const VectorRegisters& registers) noexcept {
  const std::uint32_t simds = pgm_rsrc1::wgp_mode.of(rsrc1) != 0 ? 4 : 2;
  const std::uint32_t waves = (lanes + wave_lanes - 1) / wave_lanes;
  const std::uint32_t on_one = (waves + simds - 1) / simds;
  const std::uint32_t asked = 8 * (pgm_rsrc1::vgprs.of(rsrc1) + 1 + pgm_rsrc3::shared_vgpr_cnt.of(rsrc3));
  return {on_one, on_one * ((asked + registers.granule - 1) / registers.granule * registers.granule)};
}

constexpr bool fits(const GroupLoad& load, const Capabilities& capabilities,
                    const VectorRegisters& registers) noexcept {
  return load.waves <= capabilities.waves_per_simd && load.vgprs <= registers.count;
}

}  // namespace kiln::amdgpu_pm4
