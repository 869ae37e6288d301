#include "amdgpu_pm4/recipe/scratch_ring.hpp"

#include <algorithm>

#include "amdgpu_pm4/packets/registers.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint32_t waves_per_compute_unit = 32;

constexpr Field wavesize_of(Generation generation) {
  return generation == Generation::gfx10_3 ? tmpring_size::wavesize_gfx10_3 : tmpring_size::wavesize_gfx11;
}

// Word 3 of a buffer resource of gfx10.
namespace resource {
constexpr Field format{"FORMAT", 12, 7};
constexpr Field index_stride{"INDEX_STRIDE", 21, 2};
constexpr Field add_tid_enable{"ADD_TID_ENABLE", 23, 1};
constexpr Field resource_level{"RESOURCE_LEVEL", 24, 1};
constexpr Field oob_select{"OOB_SELECT", 28, 2};
constexpr std::uint32_t format_32_float = 22, out_of_bounds_raw = 3;
constexpr std::uint32_t stride_of_32 = 2, stride_of_64 = 3;
constexpr std::uint32_t swizzle_enable = 1U << 31;  // in word 1
}  // namespace resource

}  // namespace

Result<ScratchRing> scratch_ring(const DeviceShape& shape, std::uint32_t bytes_per_lane, std::uint32_t wave_lanes) {
  const Capabilities& capabilities = capabilities_of(shape.generation);
  const std::uint64_t wave_bytes = std::uint64_t{bytes_per_lane} * wave_lanes;
  // An odd number of granules spreads the slots over the memory channels.
  const std::uint64_t granules = (wave_bytes + capabilities.scratch_granule - 1) / capabilities.scratch_granule | 1;
  const Field wavesize = wavesize_of(shape.generation);
  if (!wavesize.holds(granules)) {
    return unsupported("scratch of " + std::to_string(bytes_per_lane) + " bytes a lane: a wave of " +
                       std::to_string(wave_lanes) + " lanes needs " + std::to_string(wave_bytes) +
                       " bytes, the register holds at most " +
                       std::to_string(std::uint64_t{wavesize.largest()} * capabilities.scratch_granule));
  }
  const std::uint32_t engines = capabilities.scratch_waves_per_engine ? std::max(shape.shader_engines, 1U) : 1;
  const std::uint32_t waves =
      std::clamp(shape.compute_units * waves_per_compute_unit / engines, 1U, tmpring_size::waves.largest());
  ScratchRing ring;
  ring.tmpring_size = tmpring_size::waves.put(waves) | wavesize.put(static_cast<std::uint32_t>(granules));
  ring.bytes = scratch_ring_bytes(capabilities, ring.tmpring_size, shape.shader_engines);
  return ring;
}

std::uint64_t scratch_slot_bytes(const Capabilities& capabilities, std::uint32_t value) noexcept {
  return std::uint64_t{wavesize_of(capabilities.generation).of(value)} * capabilities.scratch_granule;
}

std::uint64_t scratch_ring_bytes(const Capabilities& capabilities, std::uint32_t value,
                                 std::uint32_t shader_engines) noexcept {
  const std::uint64_t engines = capabilities.scratch_waves_per_engine ? std::max(shader_engines, 1U) : 1;
  return scratch_slot_bytes(capabilities, value) * tmpring_size::waves.of(value) * engines;
}

std::array<std::uint32_t, 4> scratch_resource(std::uint64_t va, std::uint32_t wave_lanes) noexcept {
  using namespace resource;
  return {static_cast<std::uint32_t>(va), (static_cast<std::uint32_t>(va >> 32) & 0xFFFF) | swizzle_enable, ~0U,
          format.put(format_32_float) | index_stride.put(wave_lanes == 64 ? stride_of_64 : stride_of_32) |
              add_tid_enable.put(1) | resource_level.put(1) | oob_select.put(out_of_bounds_raw)};
}

}  // namespace kiln::amdgpu_pm4
