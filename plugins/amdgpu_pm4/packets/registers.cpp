#include "amdgpu_pm4/packets/registers.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr RegisterOwner submitter = RegisterOwner::submitter;
constexpr RegisterOwner processor = RegisterOwner::processor;
constexpr RegisterOwner system_owned = RegisterOwner::system;

constexpr RegisterInfo table[] = {
    {0xB800, "COMPUTE_DISPATCH_INITIATOR", processor, in_both, dispatch_initiator::fields},
    {0xB804, "COMPUTE_DIM_X", processor},
    {0xB808, "COMPUTE_DIM_Y", processor},
    {0xB80C, "COMPUTE_DIM_Z", processor},
    {0xB810, "COMPUTE_START_X", submitter},
    {0xB814, "COMPUTE_START_Y", submitter},
    {0xB818, "COMPUTE_START_Z", submitter},
    {0xB81C, "COMPUTE_NUM_THREAD_X", submitter, in_both, num_thread::fields},
    {0xB820, "COMPUTE_NUM_THREAD_Y", submitter, in_both, num_thread::fields},
    {0xB824, "COMPUTE_NUM_THREAD_Z", submitter, in_both, num_thread::fields},
    {0xB828, "COMPUTE_PIPELINESTAT_ENABLE", submitter, in_both, one_bit::fields},
    {0xB82C, "COMPUTE_PERFCOUNT_ENABLE", submitter, in_both, one_bit::fields},
    {0xB830, "COMPUTE_PGM_LO", submitter},
    {0xB834, "COMPUTE_PGM_HI", submitter, in_both, address_high::fields},
    {0xB838, "COMPUTE_DISPATCH_PKT_ADDR_LO", processor},
    {0xB83C, "COMPUTE_DISPATCH_PKT_ADDR_HI", processor},
    {0xB840, "COMPUTE_DISPATCH_SCRATCH_BASE_LO", submitter, in_gfx11},
    {0xB844, "COMPUTE_DISPATCH_SCRATCH_BASE_HI", submitter, in_gfx11, address_high::fields},
    {0xB848, "COMPUTE_PGM_RSRC1", submitter, in_both, pgm_rsrc1::fields},
    {0xB84C, "COMPUTE_PGM_RSRC2", submitter, in_both, pgm_rsrc2::fields},
    {0xB850, "COMPUTE_VMID", system_owned},
    {0xB854, "COMPUTE_RESOURCE_LIMITS", submitter, in_both, resource_limits::fields},
    {0xB858, "COMPUTE_STATIC_THREAD_MGMT_SE0", submitter, in_both, static_thread_mgmt::fields},
    {0xB85C, "COMPUTE_STATIC_THREAD_MGMT_SE1", submitter, in_both, static_thread_mgmt::fields},
    {0xB860, "COMPUTE_TMPRING_SIZE", submitter, in_both, tmpring_size::fields},
    {0xB864, "COMPUTE_STATIC_THREAD_MGMT_SE2", submitter, in_both, static_thread_mgmt::fields},
    {0xB868, "COMPUTE_STATIC_THREAD_MGMT_SE3", submitter, in_both, static_thread_mgmt::fields},
    {0xB86C, "COMPUTE_RESTART_X", submitter},
    {0xB870, "COMPUTE_RESTART_Y", submitter},
    {0xB874, "COMPUTE_RESTART_Z", submitter},
    {0xB878, "COMPUTE_THREAD_TRACE_ENABLE", system_owned, in_both, one_bit::fields},
    {0xB888, "COMPUTE_REQ_CTRL", submitter},
    {0xB890, "COMPUTE_USER_ACCUM_0", submitter},
    {0xB894, "COMPUTE_USER_ACCUM_1", submitter},
    {0xB898, "COMPUTE_USER_ACCUM_2", submitter},
    {0xB89C, "COMPUTE_USER_ACCUM_3", submitter},
    {0xB8A0, "COMPUTE_PGM_RSRC3", submitter, in_both, pgm_rsrc3::fields},
    {0xB8A8, "COMPUTE_SHADER_CHKSUM", submitter},
    {0xB8AC, "COMPUTE_STATIC_THREAD_MGMT_SE4", submitter, in_gfx11, static_thread_mgmt::fields},
    {0xB8B0, "COMPUTE_STATIC_THREAD_MGMT_SE5", submitter, in_gfx11, static_thread_mgmt::fields},
    {0xB8B4, "COMPUTE_STATIC_THREAD_MGMT_SE6", submitter, in_gfx11, static_thread_mgmt::fields},
    {0xB8B8, "COMPUTE_STATIC_THREAD_MGMT_SE7", submitter, in_gfx11, static_thread_mgmt::fields},
    {0xB8BC, "COMPUTE_DISPATCH_INTERLEAVE", submitter, in_gfx11, dispatch_interleave::fields},
    {0xB8AC, "COMPUTE_RELAUNCH", system_owned, in_gfx10_3},
    {0xB8B0, "COMPUTE_WAVE_RESTORE_ADDR_LO", system_owned, in_gfx10_3},
    {0xB8B4, "COMPUTE_WAVE_RESTORE_ADDR_HI", system_owned, in_gfx10_3},
    {0xB8B8, "COMPUTE_RELAUNCH2", system_owned, in_gfx10_3},
    {0xB900, "COMPUTE_USER_DATA_0", submitter},
    {0xB904, "COMPUTE_USER_DATA_1", submitter},
    {0xB908, "COMPUTE_USER_DATA_2", submitter},
    {0xB90C, "COMPUTE_USER_DATA_3", submitter},
    {0xB910, "COMPUTE_USER_DATA_4", submitter},
    {0xB914, "COMPUTE_USER_DATA_5", submitter},
    {0xB918, "COMPUTE_USER_DATA_6", submitter},
    {0xB91C, "COMPUTE_USER_DATA_7", submitter},
    {0xB920, "COMPUTE_USER_DATA_8", submitter},
    {0xB924, "COMPUTE_USER_DATA_9", submitter},
    {0xB928, "COMPUTE_USER_DATA_10", submitter},
    {0xB92C, "COMPUTE_USER_DATA_11", submitter},
    {0xB930, "COMPUTE_USER_DATA_12", submitter},
    {0xB934, "COMPUTE_USER_DATA_13", submitter},
    {0xB938, "COMPUTE_USER_DATA_14", submitter},
    {0xB93C, "COMPUTE_USER_DATA_15", submitter},
    {0xB9F4, "COMPUTE_DISPATCH_TUNNEL", submitter, in_both, dispatch_tunnel::fields},
    {0x301EC, "CP_COHER_START_DELAY", submitter, in_gfx10_3},
    {0x30E00, "TA_CS_BC_BASE_ADDR", system_owned},  // where texture border colours lie
    {0x30E04, "TA_CS_BC_BASE_ADDR_HI", system_owned},
};

// Of COMPUTE registers: indices into the table, plus one.
constexpr std::uint32_t compute_first = compute_registers;
constexpr std::size_t compute_count = compute_register_count;
using Index = std::array<std::uint8_t, compute_count>;

constexpr bool has(const RegisterInfo& info, Generation generation) {
  return (info.generations & (1U << column_of(generation))) != 0;
}

constexpr Index index_for(Generation generation) {
  Index index{};
  std::uint8_t number = 0;
  for (const RegisterInfo& info : table) {
    ++number;
    if (info.address < uconfig_space && has(info, generation)) index[(info.address - compute_first) / 4] = number;
  }
  return index;
}

constexpr std::array<Index, generation_count> indices{index_for(Generation::gfx10_3), index_for(Generation::gfx11)};

constexpr std::uint32_t allowed_bits_of(const RegisterInfo* info, Generation generation) {
  if (info == nullptr || info->owner != submitter) return 0;
  return info->fields.empty() ? ~0U : known_bits(info->fields, static_cast<std::uint8_t>(1U << column_of(generation)));
}

constexpr ComputeBits allowed_for(Generation generation) {
  ComputeBits bits{};
  const Index& index = indices[column_of(generation)];
  for (std::size_t at = 0; at < compute_count; ++at) {
    bits[at] = index[at] == 0 ? 0 : allowed_bits_of(&table[index[at] - 1], generation);
  }
  return bits;
}

constexpr std::array allowed{allowed_for(Generation::gfx10_3), allowed_for(Generation::gfx11)};

constexpr bool is_compute(std::uint32_t address) {
  return address >= compute_first && address < compute_first + 4 * compute_count && address % 4 == 0;
}

}  // namespace

std::span<const RegisterInfo> all_registers() noexcept { return table; }

const RegisterInfo* find_register(std::uint32_t address, Generation generation) noexcept {
  if (generation == Generation::invalid) {
    const RegisterInfo* info = find_register(address, Generation::gfx11);
    return info != nullptr ? info : find_register(address, Generation::gfx10_3);
  }
  if (is_compute(address)) {
    const std::uint8_t number = indices[column_of(generation)][(address - compute_first) / 4];
    return number == 0 ? nullptr : &table[number - 1];
  }
  for (const RegisterInfo& info : table) {
    if (info.address == address && has(info, generation)) return &info;
  }
  return nullptr;
}

std::uint32_t allowed_bits(std::uint32_t address, Generation generation) noexcept {
  if (is_compute(address)) return allowed[column_of(generation)][(address - compute_first) / 4];
  return allowed_bits_of(find_register(address, generation), generation);
}

const ComputeBits& allowed_compute_bits(Generation generation) noexcept { return allowed[column_of(generation)]; }

}  // namespace kiln::amdgpu_pm4
