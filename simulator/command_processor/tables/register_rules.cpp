#include "simulator/command_processor/tables/register_map.hpp"

namespace kiln::simulator {
namespace {

using enum Treatment;

enum class On : std::uint8_t { invalid = 0, gfx10_3, gfx11, all };
enum class CuMask : std::uint8_t { invalid = 0, no, yes };

constexpr RegisterRule rule(std::uint32_t first, std::uint32_t last, On on, Rings rings, Treatment treatment,
                            std::string_view name, CuMask cu_mask = CuMask::no) {
  return {first, last, on != On::gfx11, on != On::gfx10_3, rings, treatment, cu_mask == CuMask::yes, name};
}

constexpr RegisterRule compute(std::uint32_t first, std::uint32_t last, Treatment treatment, std::string_view name) {
  return rule(first, last, On::all, Rings::both, treatment, name);
}

constexpr RegisterRule rules[] = {
    compute(0xB800, 0xB80C, refused, "COMPUTE_DISPATCH_INITIATOR, COMPUTE_DIM_X..Z"),  // by DISPATCH_* alone
    compute(0xB810, 0xB818, dispatch, "COMPUTE_START_X..Z"),
    compute(0xB81C, 0xB824, dispatch, "COMPUTE_NUM_THREAD_X..Z"),
    compute(0xB828, 0xB828, state, "COMPUTE_PIPELINESTAT_ENABLE"),
    compute(0xB82C, 0xB82C, state, "COMPUTE_PERFCOUNT_ENABLE"),
    compute(0xB830, 0xB834, dispatch, "COMPUTE_PGM_LO, _HI"),
    compute(0xB838, 0xB83C, zero_only, "COMPUTE_DISPATCH_PKT_ADDR_LO, _HI"),
    rule(0xB840, 0xB844, On::gfx11, Rings::both, dispatch, "COMPUTE_DISPATCH_SCRATCH_BASE_LO, _HI"),
    rule(0xB840, 0xB844, On::gfx10_3, Rings::both, zero_only, "COMPUTE_DISPATCH_SCRATCH_BASE_LO, _HI"),
    compute(0xB848, 0xB84C, dispatch, "COMPUTE_PGM_RSRC1, RSRC2"),
    compute(0xB850, 0xB850, refused, "COMPUTE_VMID"),
    compute(0xB854, 0xB854, dispatch, "COMPUTE_RESOURCE_LIMITS"),
    rule(0xB858, 0xB85C, On::all, Rings::both, dispatch, "COMPUTE_STATIC_THREAD_MGMT_SE0, SE1", CuMask::yes),
    compute(0xB860, 0xB860, dispatch, "COMPUTE_TMPRING_SIZE"),
    rule(0xB864, 0xB868, On::all, Rings::both, dispatch, "COMPUTE_STATIC_THREAD_MGMT_SE2, SE3", CuMask::yes),
    compute(0xB86C, 0xB874, zero_only, "COMPUTE_RESTART_X..Z"),
    compute(0xB878, 0xB878, zero_only, "COMPUTE_THREAD_TRACE_ENABLE"),
    compute(0xB87C, 0xB884, zero_only, "COMPUTE_MISC_RESERVED, DISPATCH_ID, THREADGROUP_ID"),
    compute(0xB888, 0xB888, state, "COMPUTE_REQ_CTRL"),
    compute(0xB890, 0xB89C, zero_only, "COMPUTE_USER_ACCUM_0..3"),
    compute(0xB8A0, 0xB8A0, dispatch, "COMPUTE_PGM_RSRC3"),
    compute(0xB8A4, 0xB8A4, zero_only, "COMPUTE_DDID_INDEX"),
    compute(0xB8A8, 0xB8A8, state, "COMPUTE_SHADER_CHKSUM"),
    rule(0xB8AC, 0xB8B8, On::gfx10_3, Rings::both, refused, "COMPUTE_RELAUNCH, WAVE_RESTORE_ADDR_LO, _HI, RELAUNCH2"),
    rule(0xB8AC, 0xB8B8, On::gfx11, Rings::both, dispatch, "COMPUTE_STATIC_THREAD_MGMT_SE4..7", CuMask::yes),
    rule(0xB8BC, 0xB8BC, On::gfx11, Rings::both, state, "COMPUTE_DISPATCH_INTERLEAVE"),
    rule(0xB8C0, 0xB8CC, On::gfx11, Rings::both, refused, "COMPUTE_RELAUNCH, WAVE_RESTORE_ADDR_LO, _HI, RELAUNCH2"),
    compute(0xB900, 0xB93C, dispatch, "COMPUTE_USER_DATA_0..15"),
    compute(0xB9F4, 0xB9F4, zero_only, "COMPUTE_DISPATCH_TUNNEL"),

    rule(0xB004, 0xB004, On::all, Rings::graphics, state, "SPI_SHADER_PGM_RSRC4_PS", CuMask::yes),
    rule(0xB01C, 0xB01C, On::all, Rings::graphics, state, "SPI_SHADER_PGM_RSRC3_PS", CuMask::yes),
    rule(0xB104, 0xB104, On::gfx10_3, Rings::graphics, state, "SPI_SHADER_PGM_RSRC4_VS", CuMask::yes),
    rule(0xB118, 0xB118, On::gfx10_3, Rings::graphics, state, "SPI_SHADER_PGM_RSRC3_VS", CuMask::yes),
    rule(0xB204, 0xB204, On::all, Rings::graphics, state, "SPI_SHADER_PGM_RSRC4_GS", CuMask::yes),
    rule(0xB21C, 0xB21C, On::all, Rings::graphics, state, "SPI_SHADER_PGM_RSRC3_GS", CuMask::yes),
    rule(0xB404, 0xB404, On::all, Rings::graphics, state, "SPI_SHADER_PGM_RSRC4_HS", CuMask::yes),
    rule(0xB41C, 0xB41C, On::all, Rings::graphics, state, "SPI_SHADER_PGM_RSRC3_HS", CuMask::yes),

    rule(0x300FC, 0x300FC, On::gfx10_3, Rings::graphics, state, "CP_STRMOUT_CNTL"),
    rule(0x301EC, 0x301EC, On::gfx10_3, Rings::both, state, "CP_COHER_START_DELAY"),
    rule(0x30900, 0x3090C, On::gfx10_3, Rings::graphics, state, "VGT_ESGS_RING_SIZE..VGT_INDEX_TYPE"),
    rule(0x30908, 0x3090C, On::gfx11, Rings::graphics, state, "VGT_PRIMITIVE_TYPE, VGT_INDEX_TYPE"),
    rule(0x30924, 0x3093C, On::all, Rings::graphics, state, "GE_MIN_VTX_INDX..VGT_HS_OFFCHIP_PARAM"),
    rule(0x30960, 0x3098C, On::gfx10_3, Rings::graphics, state, "IA_MULTI_VGT_PARAM_PIPED..GE_VRS_RATE"),
    rule(0x30964, 0x30998, On::gfx11, Rings::graphics, state, "GE_MAX_VTX_INDX..VGT_GS_OUT_PRIM_TYPE"),
    rule(0x30A00, 0x30A04, On::all, Rings::graphics, state, "PA_SU_LINE_STIPPLE_VALUE, PA_SC_LINE_STIPPLE_STATE"),
    rule(0x30E00, 0x30E04, On::all, Rings::both, state, "TA_CS_BC_BASE_ADDR, _HI"),
    rule(0x31110, 0x3111C, On::gfx11, Rings::graphics, state, "SPI_GS_THROTTLE_CNTL1..SPI_ATTRIBUTE_RING_SIZE"),
};

}  // namespace

std::span<const RegisterRule> register_rules() noexcept { return rules; }

}  // namespace kiln::simulator
