// Bit fields of packets: what a field is, and those that packets have.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::amdgpu_pm4 {

// Field: a run of bits of a dword, with its name. The one description of a register's or packet's bits: encoders put,
// the decoder names, the validator checks what is left over.
//
// Thread-safety and ownership: constants; names are literals.

struct ValueName {
  std::uint32_t value = 0;
  std::string_view name;
};

// Which generations have a field or register: a set of bits.
inline constexpr std::uint8_t in_gfx10_3 = 1;
inline constexpr std::uint8_t in_gfx11 = 2;
inline constexpr std::uint8_t in_both = in_gfx10_3 | in_gfx11;

struct Field {
  std::string_view name;
  std::uint8_t low = 0;
  std::uint8_t width = 0;
  std::span<const ValueName> values = {};  // that have names
  std::uint8_t generations = in_both;

  constexpr std::uint32_t largest() const noexcept { return width >= 32 ? ~0U : (1U << width) - 1; }
  constexpr std::uint32_t mask() const noexcept { return largest() << low; }
  constexpr bool holds(std::uint64_t value) const noexcept { return value <= largest(); }
  constexpr std::uint32_t of(std::uint32_t word) const noexcept { return word >> low & largest(); }
  // REQUIRES: holds(value). The bits beside the field stay 0 in any case.
  constexpr std::uint32_t put(std::uint32_t value) const noexcept { return (value & largest()) << low; }
};

// Every bit that some field of a generation in `generations` has.
constexpr std::uint32_t known_bits(std::span<const Field> fields, std::uint8_t generations) noexcept {
  std::uint32_t bits = 0;
  for (const Field& field : fields) {
    if ((field.generations & generations) != 0) bits |= field.mask();
  }
  return bits;
}

// The bits of packet bodies, dword by dword, and the values that Kiln knows for them. Numbers that one packet alone
// uses stand in its own namespace: the same cache action has different bits in ACQUIRE_MEM and RELEASE_MEM.
//
// Thread-safety and ownership: constants.

namespace set_register {
inline constexpr Field offset{"REG_OFFSET", 0, 16};  // in dwords from the start of the register space
inline constexpr Field index{"INDEX", 28, 4};
inline constexpr std::array fields{offset, index};
inline constexpr std::uint32_t through_cu_mask = 3;  // index of SET_SH_REG_INDEX
}  // namespace set_register

namespace gcr {  // GCR_CNTL of ACQUIRE_MEM: what is written back and invalidated
inline constexpr ValueName gli_values[] = {{0, "NONE"}, {1, "ALL"}, {2, "RANGE"}, {3, "FIRST_LAST"}};
inline constexpr ValueName seq_values[] = {{0, "PARALLEL"}, {1, "FORWARD"}, {2, "REVERSE"}};
inline constexpr Field gli_inv{"GLI_INV", 0, 2, gli_values};
inline constexpr Field gl1_range{"GL1_RANGE", 2, 2};
inline constexpr Field glm_wb{"GLM_WB", 4, 1};
inline constexpr Field glm_inv{"GLM_INV", 5, 1};
inline constexpr Field glk_wb{"GLK_WB", 6, 1};
inline constexpr Field glk_inv{"GLK_INV", 7, 1};
inline constexpr Field glv_inv{"GLV_INV", 8, 1};
inline constexpr Field gl1_inv{"GL1_INV", 9, 1};
inline constexpr Field gl2_us{"GL2_US", 10, 1};
inline constexpr Field gl2_range{"GL2_RANGE", 11, 2};
inline constexpr Field gl2_discard{"GL2_DISCARD", 13, 1};
inline constexpr Field gl2_inv{"GL2_INV", 14, 1};
inline constexpr Field gl2_wb{"GL2_WB", 15, 1};
inline constexpr Field seq{"SEQ", 16, 2, seq_values};
inline constexpr Field range_is_pa{"RANGE_IS_PA", 18, 1};
inline constexpr std::array fields{gli_inv, gl1_range, glm_wb,      glm_inv, glk_wb, glk_inv, glv_inv,    gl1_inv,
                                   gl2_us,  gl2_range, gl2_discard, gl2_inv, gl2_wb, seq,     range_is_pa};
}  // namespace gcr

namespace acquire_mem {
inline constexpr Field pws_stage_sel{"PWS_STAGE_SEL", 11, 3, {}, in_gfx11};
inline constexpr Field pws_counter_sel{"PWS_COUNTER_SEL", 14, 2, {}, in_gfx11};
inline constexpr Field pws_ena2{"PWS_ENA2", 17, 1, {}, in_gfx11};
inline constexpr Field pws_count{"PWS_COUNT", 18, 6, {}, in_gfx11};
inline constexpr std::array coher_cntl{pws_stage_sel, pws_counter_sel, pws_ena2, pws_count};
inline constexpr Field size_hi{"COHER_SIZE_HI", 0, 25};
inline constexpr std::array size_hi_fields{size_hi};
inline constexpr Field base_hi{"COHER_BASE_HI", 0, 24};
inline constexpr std::array base_hi_fields{base_hi};
inline constexpr Field poll_interval{"POLL_INTERVAL", 0, 16};
inline constexpr Field pws_ena{"PWS_ENA", 31, 1, {}, in_gfx11};
inline constexpr std::array poll_fields{poll_interval, pws_ena};
}  // namespace acquire_mem

enum class Event : std::uint8_t {
  invalid = 0,
  cs_partial_flush = 0x07,  // waits for the compute waves of this queue; touches no cache
  cache_flush_and_inv_ts = 0x14,
  bottom_of_pipe_ts = 0x28,
  cs_done = 0x2F,
};
inline constexpr std::uint32_t event_index_flush = 4;
inline constexpr std::uint32_t event_index_end_of_pipe = 5;
inline constexpr std::uint32_t event_index_done = 6;
inline constexpr ValueName event_names[] = {{0x04, "CACHE_FLUSH_TS"},
                                            {0x06, "CACHE_FLUSH"},
                                            {0x07, "CS_PARTIAL_FLUSH"},
                                            {0x0F, "VS_PARTIAL_FLUSH"},
                                            {0x10, "PS_PARTIAL_FLUSH"},
                                            {0x14, "CACHE_FLUSH_AND_INV_TS"},
                                            {0x16, "CACHE_FLUSH_AND_INV"},
                                            {0x19, "PIPELINESTAT_START"},
                                            {0x1A, "PIPELINESTAT_STOP"},
                                            {0x28, "BOTTOM_OF_PIPE_TS"},
                                            {0x2F, "CS_DONE"},
                                            {0x30, "PS_DONE"}};

namespace event_write {
inline constexpr Field event_type{"EVENT_TYPE", 0, 6, event_names};
inline constexpr Field event_index{"EVENT_INDEX", 8, 4};
inline constexpr std::array fields{event_type, event_index};
}  // namespace event_write

namespace release_mem {
inline constexpr ValueName dst_values[] = {{0, "MEMORY"}, {1, "TC_L2"}};
inline constexpr ValueName int_values[] = {
    {0, "NONE"}, {1, "INTERRUPT"}, {2, "INTERRUPT_AFTER_WRITE"}, {3, "DATA_AFTER_WRITE"}};
inline constexpr ValueName data_values[] = {{0, "NONE"},  {1, "VALUE_32"},   {2, "VALUE_64"},
                                            {3, "CLOCK"}, {4, "CP_COUNTER"}, {5, "GDS"}};
inline constexpr Field event_type{"EVENT_TYPE", 0, 6, event_names};
inline constexpr Field wait_sync{"WAIT_SYNC", 7, 1, {}, in_gfx11};
inline constexpr Field event_index{"EVENT_INDEX", 8, 4};
inline constexpr Field glm_wb{"GLM_WB", 12, 1};
inline constexpr Field glm_inv{"GLM_INV", 13, 1};
inline constexpr Field glv_inv{"GLV_INV", 14, 1};
inline constexpr Field gl1_inv{"GL1_INV", 15, 1};
inline constexpr Field gl2_us{"GL2_US", 16, 1};
inline constexpr Field gl2_range{"GL2_RANGE", 17, 2};
inline constexpr Field gl2_discard{"GL2_DISCARD", 19, 1};
inline constexpr Field gl2_inv{"GL2_INV", 20, 1};
inline constexpr Field gl2_wb{"GL2_WB", 21, 1};
inline constexpr Field seq{"SEQ", 22, 2, gcr::seq_values};
inline constexpr Field glk_wb{"GLK_WB", 24, 1, {}, in_gfx11};
inline constexpr Field cache_policy{"CACHE_POLICY", 25, 2, {}, in_gfx11};
inline constexpr Field execute{"EXECUTE", 28, 2, {}, in_gfx11};
inline constexpr Field glk_inv{"GLK_INV", 30, 1, {}, in_gfx11};
inline constexpr Field pws_enable{"PWS_ENABLE", 31, 1, {}, in_gfx11};
inline constexpr std::array control{event_type, wait_sync, event_index,  glm_wb,      glm_inv, glv_inv,
                                    gl1_inv,    gl2_us,    gl2_range,    gl2_discard, gl2_inv, gl2_wb,
                                    seq,        glk_wb,    cache_policy, execute,     glk_inv, pws_enable};
inline constexpr Field dst_sel{"DST_SEL", 16, 2, dst_values};
inline constexpr Field int_sel{"INT_SEL", 24, 3, int_values};
inline constexpr Field data_sel{"DATA_SEL", 29, 3, data_values};
inline constexpr std::array select{dst_sel, int_sel, data_sel};
}  // namespace release_mem

inline constexpr ValueName place_values[] = {{0, "REGISTER"}, {1, "MEMORY_OLD"},  {2, "TC_L2"},
                                             {3, "GDS"},      {4, "PERFCOUNTER"}, {5, "MEMORY"}};
inline constexpr ValueName source_values[] = {{0, "REGISTER"},    {1, "MEMORY"},    {2, "TC_L2"},         {3, "GDS"},
                                              {4, "PERFCOUNTER"}, {5, "IMMEDIATE"}, {6, "ATOMIC_RETURN"}, {9, "CLOCK"}};

namespace write_data {
inline constexpr Field dst_sel{"DST_SEL", 8, 4, place_values};
inline constexpr Field wr_one_addr{"WR_ONE_ADDR", 16, 1};
inline constexpr Field wr_confirm{"WR_CONFIRM", 20, 1};
inline constexpr Field cache_policy{"CACHE_POLICY", 25, 2};
inline constexpr Field engine_sel{"ENGINE_SEL", 30, 2};
inline constexpr std::array control{dst_sel, wr_one_addr, wr_confirm, cache_policy, engine_sel};
inline constexpr std::uint32_t to_memory = 5;
inline constexpr std::uint32_t to_l2 = 2;
}  // namespace write_data

namespace copy_data {
inline constexpr Field src_sel{"SRC_SEL", 0, 4, source_values};
inline constexpr Field dst_sel{"DST_SEL", 8, 4, place_values};
inline constexpr Field src_cache_policy{"SRC_CACHE_POLICY", 13, 2};
inline constexpr Field count_sel{"COUNT_SEL", 16, 1};
inline constexpr Field wr_confirm{"WR_CONFIRM", 20, 1};
inline constexpr Field dst_cache_policy{"DST_CACHE_POLICY", 25, 2};
inline constexpr std::array control{src_sel, dst_sel, src_cache_policy, count_sel, wr_confirm, dst_cache_policy};
}  // namespace copy_data

namespace dma_data {
inline constexpr ValueName dst_values[] = {{0, "ADDRESS"}, {1, "GDS"}, {2, "NOWHERE"}, {3, "ADDRESS_TC_L2"}};
inline constexpr ValueName src_values[] = {{0, "ADDRESS"}, {1, "GDS"}, {2, "FILL"}, {3, "ADDRESS_TC_L2"}};
inline constexpr Field engine_sel{"ENGINE_SEL", 0, 1};
inline constexpr Field src_cache_policy{"SRC_CACHE_POLICY", 13, 2};
inline constexpr Field dst_sel{"DST_SEL", 20, 2, dst_values};
inline constexpr Field dst_cache_policy{"DST_CACHE_POLICY", 25, 2};
inline constexpr Field src_sel{"SRC_SEL", 29, 2, src_values};
inline constexpr Field cp_sync{"CP_SYNC", 31, 1};
inline constexpr std::array control{engine_sel, src_cache_policy, dst_sel, dst_cache_policy, src_sel, cp_sync};
inline constexpr std::uint32_t through_l2 = 3;
inline constexpr std::uint32_t fill = 2;
inline constexpr Field byte_count{"BYTE_COUNT", 0, 26};
inline constexpr Field src_address_space{"SAS", 26, 1};
inline constexpr Field dst_address_space{"DAS", 27, 1};
inline constexpr Field src_no_increment{"SAIC", 28, 1};
inline constexpr Field dst_no_increment{"DAIC", 29, 1};
inline constexpr Field raw_wait{"RAW_WAIT", 30, 1};
inline constexpr Field disable_wr_confirm{"DISABLE_WR_CONFIRM", 31, 1};
inline constexpr std::array command{byte_count,       src_address_space, dst_address_space, src_no_increment,
                                    dst_no_increment, raw_wait,          disable_wr_confirm};
}  // namespace dma_data

namespace wait_reg_mem {
inline constexpr ValueName function_values[] = {{0, "ALWAYS"},    {1, "LESS"},     {2, "LESS_OR_EQUAL"}, {3, "EQUAL"},
                                                {4, "NOT_EQUAL"}, {5, "NOT_LESS"}, {6, "GREATER"}};
inline constexpr ValueName space_values[] = {{0, "REGISTER"}, {1, "MEMORY"}};
inline constexpr Field function{"FUNCTION", 0, 3, function_values};
inline constexpr Field mem_space{"MEM_SPACE", 4, 2, space_values};
inline constexpr Field operation{"OPERATION", 6, 2};
inline constexpr Field engine_sel{"ENGINE_SEL", 8, 1};
inline constexpr Field cache_policy{"CACHE_POLICY", 25, 2};
inline constexpr std::array control{function, mem_space, operation, engine_sel, cache_policy};
inline constexpr Field poll_interval{"POLL_INTERVAL", 0, 16};
inline constexpr std::array poll_fields{poll_interval};
}  // namespace wait_reg_mem

namespace indirect_buffer {
inline constexpr Field size{"IB_SIZE", 0, 20};
inline constexpr Field chain{"CHAIN", 20, 1};
inline constexpr Field pre_ena{"PRE_ENA", 21, 1};
inline constexpr Field valid{"VALID", 23, 1};
inline constexpr Field vmid{"VMID", 24, 4};
inline constexpr Field cache_policy{"CACHE_POLICY", 28, 2};
inline constexpr std::array control{size, chain, pre_ena, valid, vmid, cache_policy};
}  // namespace indirect_buffer

}  // namespace kiln::amdgpu_pm4
