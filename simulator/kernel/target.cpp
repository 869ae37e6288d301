#include "simulator/kernel/target.hpp"

#include <algorithm>

namespace kiln::simulator::kernel {
namespace {

// Families that the system header of Debian 12 does not name yet.
constexpr std::uint32_t family_gc_11_0_0 = 145;

// The same on both: where user space may map, and what the kernel's own tables of gfx10 and later say.
constexpr drm_amdgpu_info_device common() {
  drm_amdgpu_info_device device{};
  device.num_shader_arrays_per_engine = 2;
  device.gpu_counter_freq = 100'000;
  device.num_hw_gfx_contexts = 8;
  device.virtual_address_offset = 0x200000;
  device.virtual_address_max = 0x8000'0000'0000;
  device.virtual_address_alignment = 4096;
  device.pte_fragment_size = 2 << 20;
  device.gart_page_size = 4096;
  device.vram_type = AMDGPU_VRAM_TYPE_GDDR6;
  device.gc_double_offchip_lds_buf = 1;
  device.wave_front_size = 32;
  device.gs_vgt_table_depth = 32;
  device.gs_prim_buffer_depth = 1792;
  device.max_gs_waves_per_vgt = 32;
  device.high_va_offset = 0xffff'8000'0000'0000;
  device.high_va_max = 0xffff'ffff'ffe0'0000;
  return device;
}

// A Radeon RX 7900 XTX: figures of a public dump of the device's answers. The bitmaps of engines 4 and 5 stand in the
// upper half of rows 0 and 1, as the kernel packs six engines into four rows.
constexpr DeviceFigures navi31() {
  DeviceFigures figures;
  figures.base = common();
  auto& device = figures.base;
  device.device_id = 0x744c;
  device.chip_rev = 0;
  device.external_rev = 1;
  device.pci_rev = 0xc8;
  device.family = family_gc_11_0_0;
  device.num_shader_engines = 6;
  device.max_engine_clock = 2'371'000;
  device.max_memory_clock = 1'249'000;
  device.cu_active_number = 96;
  for (std::uint32_t engine = 0; engine < 6; ++engine) {
    for (std::uint32_t array = 0; array < 2; ++array) {
      device.cu_bitmap[engine % 4][array + 2 * (engine / 4)] = 0xff;
      device.cu_ao_bitmap[engine % 4][array + 2 * (engine / 4)] = 0xff;
    }
  }
  device.enabled_rb_pipes_mask = 0xffffff;
  device.num_rb_pipes = 24;
  device.vram_bit_width = 384;
  device.num_shader_visible_vgprs = 1536;
  device.num_cu_per_sh = 8;
  device.num_tcc_blocks = 24;
  figures.min_engine_clock = 500'000;
  figures.min_memory_clock = 96'000;
  figures.tcp_cache_kib = 32;
  figures.num_sqc_per_wgp = 1;
  figures.sqc_data_cache_kib = 16;
  figures.sqc_instruction_cache_kib = 32;
  figures.gl1c_cache_kib = 256;
  figures.gl2c_cache_kib = 6144;
  figures.mall_bytes = 96 << 20;
  return figures;
}

// A Radeon RX 6800: figures of the public dump that Mesa's own device shim carries as "navi21" (one engine is fused
// off).
constexpr DeviceFigures navi21() {
  DeviceFigures figures;
  figures.base = common();
  auto& device = figures.base;
  device.device_id = 0x73bf;
  device.chip_rev = 1;
  device.external_rev = 0x29;
  device.pci_rev = 0xc3;
  device.family = AMDGPU_FAMILY_NV;
  device.num_shader_engines = 4;
  device.max_engine_clock = 2'475'000;
  device.max_memory_clock = 1'000'000;
  device.cu_active_number = 60;
  device.cu_ao_mask = 0x3ffff;
  for (const std::uint32_t engine : {0u, 2u, 3u}) {
    for (std::uint32_t array = 0; array < 2; ++array) {
      device.cu_bitmap[engine][array] = 0x3ff;
      device.cu_ao_bitmap[engine][array] = 0x3ff;
    }
  }
  device.enabled_rb_pipes_mask = 0xff0f;
  device.num_rb_pipes = 16;
  device.ce_ram_size = 65536;
  device.vram_bit_width = 256;
  device.num_shader_visible_vgprs = 1024;
  device.num_cu_per_sh = 10;
  device.num_tcc_blocks = 16;
  figures.min_engine_clock = 500'000;
  figures.min_memory_clock = 96'000;
  figures.mall_bytes = 128 << 20;
  return figures;
}

constexpr HardwareBlock graphics(std::uint32_t major, std::uint32_t discovery) {
  return {AMDGPU_HW_IP_GFX, major, 0, 1, discovery, 32, 32, 192};
}

constexpr HardwareBlock compute(std::uint32_t major, std::uint32_t discovery) {
  return {AMDGPU_HW_IP_COMPUTE, major, 0, 4, discovery, 32, 32, 125};
}

constexpr std::uint32_t gb_addr_config = 0x263e;

// All video memory is within reach of the host, as with a resizable BAR.
constexpr std::array<Target, 2> all = {
    Target{"gfx1100",
           Generation::gfx11,
           navi31(),
           0x1002,
           0x0e3b,
           25'753'026'560,
           16'746'784'768,
           {graphics(11, 0x0b0000), compute(11, 0x0b0000)},
           {Firmware{AMDGPU_INFO_FW_GFX_ME, 1486, 29},
            {AMDGPU_INFO_FW_GFX_PFP, 1525, 29},
            {AMDGPU_INFO_FW_GFX_MEC, 494, 29}},
           {gb_addr_config, 0x545}},
    Target{
        "gfx1030",
        Generation::gfx10_3,
        navi21(),
        0x1002,
        0x0e3a,
        17'163'091'968,
        16'746'784'768,
        {graphics(10, 0x0a0300), compute(10, 0x0a0300)},
        {Firmware{AMDGPU_INFO_FW_GFX_ME, 64, 42}, {AMDGPU_INFO_FW_GFX_PFP, 95, 42}, {AMDGPU_INFO_FW_GFX_MEC, 104, 42}},
        {gb_addr_config, 0x444}},
};

}  // namespace

std::span<const Target> targets() { return all; }

const Target* find_target(std::string_view name) {
  const auto at = std::find_if(all.begin(), all.end(), [name](const Target& target) { return target.name == name; });
  return at == all.end() ? nullptr : &*at;
}

}  // namespace kiln::simulator::kernel
