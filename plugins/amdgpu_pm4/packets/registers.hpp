// The registers of a compute dispatch by byte address, and their fields. gfx10.3 and gfx11 unless a field says
// otherwise.
//
// Thread-safety and ownership: constants.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/packet_fields.hpp"

namespace kiln::amdgpu_pm4 {

inline constexpr std::uint32_t sh_space = 0xB000, sh_space_end = 0xC000;
inline constexpr std::uint32_t uconfig_space = 0x30000, uconfig_space_end = 0x40000;
inline constexpr std::uint32_t config_space = 0x8000, context_space = 0x28000;

enum class Register : std::uint32_t {
  invalid = 0,
  dispatch_initiator = 0xB800,
  dim_x = 0xB804,
  start_x = 0xB810,
  num_thread_x = 0xB81C,
  pgm_lo = 0xB830,
  pgm_hi = 0xB834,
  scratch_base_lo = 0xB840,
  scratch_base_hi = 0xB844,
  pgm_rsrc1 = 0xB848,
  pgm_rsrc2 = 0xB84C,
  vmid = 0xB850,
  resource_limits = 0xB854,
  static_thread_mgmt_se0 = 0xB858,
  static_thread_mgmt_se1 = 0xB85C,
  tmpring_size = 0xB860,
  static_thread_mgmt_se2 = 0xB864,
  static_thread_mgmt_se3 = 0xB868,
  req_ctrl = 0xB888,
  user_accum_0 = 0xB890,
  pgm_rsrc3 = 0xB8A0,
  static_thread_mgmt_se4 = 0xB8AC,
  dispatch_interleave = 0xB8BC,
  user_data_0 = 0xB900,
  dispatch_tunnel = 0xB9F4,
  cp_coher_start_delay = 0x301EC,
};

constexpr std::uint32_t address_of(Register which) noexcept { return static_cast<std::uint32_t>(which); }
constexpr Register next_after(Register which, std::uint32_t dwords) noexcept {
  return static_cast<Register>(address_of(which) + 4 * dwords);
}

namespace dispatch_initiator {
inline constexpr Field compute_shader_en{"COMPUTE_SHADER_EN", 0, 1};
inline constexpr Field partial_tg_en{"PARTIAL_TG_EN", 1, 1};
inline constexpr Field force_start_at_000{"FORCE_START_AT_000", 2, 1};
inline constexpr Field ordered_append_enbl{"ORDERED_APPEND_ENBL", 3, 1};
inline constexpr Field ordered_append_mode{"ORDERED_APPEND_MODE", 4, 1};
inline constexpr Field use_thread_dimensions{"USE_THREAD_DIMENSIONS", 5, 1};
inline constexpr Field order_mode{"ORDER_MODE", 6, 1};
inline constexpr Field scalar_l1_inv_vol{"SCALAR_L1_INV_VOL", 10, 1};
inline constexpr Field vector_l1_inv_vol{"VECTOR_L1_INV_VOL", 11, 1};
inline constexpr Field tunnel_enable{"TUNNEL_ENABLE", 13, 1};
inline constexpr Field restore{"RESTORE", 14, 1};
inline constexpr Field cs_w32_en{"CS_W32_EN", 15, 1};
inline constexpr Field amp_shader_en{"AMP_SHADER_EN", 16, 1, {}, in_gfx11};
inline constexpr Field disable_disp_prempt_en{"DISABLE_DISP_PREMPT_EN", 17, 1, {}, in_gfx11};
inline constexpr std::array fields{compute_shader_en,
                                   partial_tg_en,
                                   force_start_at_000,
                                   ordered_append_enbl,
                                   ordered_append_mode,
                                   use_thread_dimensions,
                                   order_mode,
                                   scalar_l1_inv_vol,
                                   vector_l1_inv_vol,
                                   tunnel_enable,
                                   restore,
                                   cs_w32_en,
                                   amp_shader_en,
                                   disable_disp_prempt_en};
}  // namespace dispatch_initiator

namespace num_thread {
inline constexpr Field full{"NUM_THREAD_FULL", 0, 16};
inline constexpr Field partial{"NUM_THREAD_PARTIAL", 16, 16};
inline constexpr std::array fields{full, partial};
}  // namespace num_thread

namespace address_high {  // PGM_HI, SCRATCH_BASE_HI: bits 47 to 40 of an address
inline constexpr Field data{"DATA", 0, 8};
inline constexpr std::array fields{data};
}  // namespace address_high

namespace pgm_rsrc1 {
inline constexpr Field vgprs{"VGPRS", 0, 6};
inline constexpr Field sgprs{"SGPRS", 6, 4};
inline constexpr Field priority{"PRIORITY", 10, 2};
inline constexpr Field float_mode{"FLOAT_MODE", 12, 8};
inline constexpr Field priv{"PRIV", 20, 1};
inline constexpr Field dx10_clamp{"DX10_CLAMP", 21, 1};
inline constexpr Field ieee_mode{"IEEE_MODE", 23, 1};
inline constexpr Field bulky{"BULKY", 24, 1};
inline constexpr Field fp16_ovfl{"FP16_OVFL", 26, 1};
inline constexpr Field wgp_mode{"WGP_MODE", 29, 1};
inline constexpr Field mem_ordered{"MEM_ORDERED", 30, 1};
inline constexpr Field fwd_progress{"FWD_PROGRESS", 31, 1};
inline constexpr std::array fields{vgprs,     sgprs, priority,  float_mode, priv,        dx10_clamp,
                                   ieee_mode, bulky, fp16_ovfl, wgp_mode,   mem_ordered, fwd_progress};
}  // namespace pgm_rsrc1

namespace pgm_rsrc2 {
inline constexpr Field scratch_en{"SCRATCH_EN", 0, 1};
inline constexpr Field user_sgpr{"USER_SGPR", 1, 5};
inline constexpr Field trap_present{"TRAP_PRESENT", 6, 1};
inline constexpr Field tgid_x_en{"TGID_X_EN", 7, 1};
inline constexpr Field tgid_y_en{"TGID_Y_EN", 8, 1};
inline constexpr Field tgid_z_en{"TGID_Z_EN", 9, 1};
inline constexpr Field tg_size_en{"TG_SIZE_EN", 10, 1};
inline constexpr Field tidig_comp_cnt{"TIDIG_COMP_CNT", 11, 2};
inline constexpr Field excp_en_msb{"EXCP_EN_MSB", 13, 2};
inline constexpr Field lds_size{"LDS_SIZE", 15, 9};  // units of 512 bytes
inline constexpr Field excp_en{"EXCP_EN", 24, 7};
inline constexpr std::array fields{scratch_en, user_sgpr,      trap_present, tgid_x_en, tgid_y_en, tgid_z_en,
                                   tg_size_en, tidig_comp_cnt, excp_en_msb,  lds_size,  excp_en};
}  // namespace pgm_rsrc2

namespace pgm_rsrc3 {
inline constexpr Field shared_vgpr_cnt{"SHARED_VGPR_CNT", 0, 4};
inline constexpr Field inst_pref_size{"INST_PREF_SIZE", 4, 6, {}, in_gfx11};  // lines of 128 bytes
inline constexpr Field trap_on_start{"TRAP_ON_START", 10, 1, {}, in_gfx11};
inline constexpr Field trap_on_end{"TRAP_ON_END", 11, 1, {}, in_gfx11};
inline constexpr Field image_op{"IMAGE_OP", 31, 1, {}, in_gfx11};
inline constexpr std::array fields{shared_vgpr_cnt, inst_pref_size, trap_on_start, trap_on_end, image_op};
}  // namespace pgm_rsrc3

namespace resource_limits {
inline constexpr Field waves_per_sh{"WAVES_PER_SH", 0, 10};
inline constexpr Field tg_per_cu{"TG_PER_CU", 12, 4};
inline constexpr Field lock_threshold{"LOCK_THRESHOLD", 16, 6};
inline constexpr Field simd_dest_cntl{"SIMD_DEST_CNTL", 22, 1};
inline constexpr Field force_simd_dist{"FORCE_SIMD_DIST", 23, 1};
inline constexpr Field cu_group_count{"CU_GROUP_COUNT", 24, 3};
inline constexpr std::array fields{waves_per_sh,   tg_per_cu,       lock_threshold,
                                   simd_dest_cntl, force_simd_dist, cu_group_count};
}  // namespace resource_limits

namespace static_thread_mgmt {
inline constexpr Field sa0_cu_en{"SA0_CU_EN", 0, 16};
inline constexpr Field sa1_cu_en{"SA1_CU_EN", 16, 16};
inline constexpr std::array fields{sa0_cu_en, sa1_cu_en};
}  // namespace static_thread_mgmt

namespace tmpring_size {
inline constexpr Field waves{"WAVES", 0, 12};
inline constexpr Field wavesize_gfx10_3{"WAVESIZE", 12, 13, {}, in_gfx10_3};  // units of 1 KiB
inline constexpr Field wavesize_gfx11{"WAVESIZE", 12, 15, {}, in_gfx11};      // units of 256 bytes
inline constexpr std::array fields{waves, wavesize_gfx10_3, wavesize_gfx11};
}  // namespace tmpring_size

namespace dispatch_interleave {
inline constexpr Field interleave{"INTERLEAVE", 0, 10};
inline constexpr std::array fields{interleave};
}  // namespace dispatch_interleave

namespace dispatch_tunnel {
inline constexpr Field off_delay{"OFF_DELAY", 0, 10};
inline constexpr Field immediate{"IMMEDIATE", 10, 1};
inline constexpr std::array fields{off_delay, immediate};
}  // namespace dispatch_tunnel

namespace one_bit {  // PIPELINESTAT_ENABLE and its kind
inline constexpr Field enable{"ENABLE", 0, 1};
inline constexpr std::array fields{enable};
}  // namespace one_bit

// Which registers there are: name, fields, generations, and whose they are to write. Serves the decoder, and is the
// validator's allow-list.
//
// Thread-safety and ownership: constants.

enum class RegisterOwner : std::uint8_t {
  invalid = 0,
  submitter,  // state of a dispatch: allowed
  processor,  // the command processor writes it, from a packet
  system      // the kernel's, a debugger's, another engine's
};

struct RegisterInfo {
  std::uint32_t address = 0;  // in bytes
  std::string_view name;
  RegisterOwner owner = RegisterOwner::invalid;
  std::uint8_t generations = in_both;
  std::span<const Field> fields = {};  // none: a plain number of 32 bits
};

std::span<const RegisterInfo> all_registers() noexcept;

// nullptr: not known there. Generation::invalid: as gfx11 has it, else gfx10.3.
const RegisterInfo* find_register(std::uint32_t address, Generation generation) noexcept;

// The bits that a submitter may set; 0 where the register is not the submitter's.
std::uint32_t allowed_bits(std::uint32_t address, Generation generation) noexcept;

// The same for every COMPUTE register, by (address - compute_registers) / 4.
inline constexpr std::uint32_t compute_registers = 0xB800;
inline constexpr std::size_t compute_register_count = 128;
using ComputeBits = std::array<std::uint32_t, compute_register_count>;
const ComputeBits& allowed_compute_bits(Generation generation) noexcept;

}  // namespace kiln::amdgpu_pm4
