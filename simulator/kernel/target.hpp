// Target: the figures of a device that is simulated, as the kernel's information queries answer them. Data only.
//
// Thread-safety and ownership: constants, valid for the life of the process.
#pragma once

#include <amdgpu_drm.h>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "simulator/fault.hpp"

namespace kiln::simulator::kernel {

// DEV_INFO as the kernel of DRM 3.54 answers it: the system header's structure, then what later kernels appended.
struct DeviceFigures {
  drm_amdgpu_info_device base{};
  std::uint64_t min_engine_clock = 0;  // kHz
  std::uint64_t min_memory_clock = 0;
  std::uint32_t tcp_cache_kib = 0;
  std::uint32_t num_sqc_per_wgp = 0;
  std::uint32_t sqc_data_cache_kib = 0;
  std::uint32_t sqc_instruction_cache_kib = 0;
  std::uint32_t gl1c_cache_kib = 0;
  std::uint32_t gl2c_cache_kib = 0;
  std::uint64_t mall_bytes = 0;
  std::uint32_t enabled_rb_pipes_mask_high = 0;
  std::uint32_t shadow_bytes = 0;  // 0: no shadowing of registers, and so no chunk for it
  std::uint32_t shadow_alignment = 0;
  std::uint32_t csa_bytes = 0;
  std::uint32_t csa_alignment = 0;
};

struct HardwareBlock {
  std::uint32_t type = 0;  // AMDGPU_HW_IP_*
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t rings = 0;      // how many
  std::uint32_t discovery = 0;  // major << 16 | minor << 8 | revision
  std::uint32_t start_alignment = 0;
  std::uint32_t size_alignment = 0;
  std::uint32_t buffers = 0;  // most indirect buffers in one submission
};

struct Firmware {
  std::uint32_t type = 0;  // AMDGPU_INFO_FW_*
  std::uint32_t version = 0;
  std::uint32_t feature = 0;
};

struct Register {
  std::uint32_t dword = 0;
  std::uint32_t value = 0;
};

struct Target {
  std::string_view name;  // as compilers call it: "gfx1100"
  Generation generation = Generation::invalid;
  DeviceFigures figures;
  std::uint32_t subsystem_vendor = 0;
  std::uint32_t subsystem_device = 0;
  std::uint64_t vram_bytes = 0;
  std::uint64_t gtt_bytes = 0;
  std::array<HardwareBlock, 2> blocks;  // those without a ring are left out
  std::array<Firmware, 3> firmware;
  Register address_configuration;  // GB_ADDR_CONFIG, the one register that may be read
};

std::span<const Target> targets();
const Target* find_target(std::string_view name);  // null where it is unknown

}  // namespace kiln::simulator::kernel
