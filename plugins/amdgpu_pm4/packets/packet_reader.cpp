#include "amdgpu_pm4/packets/packet_reader.hpp"

#include <algorithm>

#include "amdgpu_pm4/packets/packet_fields.hpp"
#include "amdgpu_pm4/packets/registers.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr WordLayout number(std::string_view name) { return {name, WordKind::number}; }
constexpr WordLayout low(std::string_view name) { return {name, WordKind::address_low}; }
constexpr WordLayout high(std::string_view name) { return {name, WordKind::address_high}; }
constexpr WordLayout fields(std::string_view name, std::span<const Field> of, WordKind kind = WordKind::fields) {
  return {name, kind, of, {known_bits(of, in_gfx10_3), known_bits(of, in_gfx11)}};
}

constexpr std::array set_register_words{fields("REGISTER", set_register::fields, WordKind::register_offset)};
constexpr std::array dispatch_direct_words{number("GROUPS_X"), number("GROUPS_Y"), number("GROUPS_Z"),
                                           fields("DISPATCH_INITIATOR", dispatch_initiator::fields)};
constexpr std::array dispatch_indirect_words{low("ADDRESS_LO"), high("ADDRESS_HI"),
                                             fields("DISPATCH_INITIATOR", dispatch_initiator::fields)};
constexpr std::array acquire_words{fields("COHER_CNTL", acquire_mem::coher_cntl),
                                   number("COHER_SIZE"),
                                   fields("COHER_SIZE_HI", acquire_mem::size_hi_fields),
                                   number("COHER_BASE_LO"),
                                   fields("COHER_BASE_HI", acquire_mem::base_hi_fields),
                                   fields("POLL", acquire_mem::poll_fields),
                                   fields("GCR_CNTL", gcr::fields)};
constexpr std::array release_words{fields("EVENT", release_mem::control),
                                   fields("SELECT", release_mem::select),
                                   low("ADDRESS_LO"),
                                   high("ADDRESS_HI"),
                                   number("DATA_LO"),
                                   number("DATA_HI"),
                                   number("INT_CTXID")};
constexpr std::array event_words{fields("EVENT", event_write::fields)};
constexpr std::array write_words{fields("CONTROL", write_data::control), low("DST_ADDR_LO"), high("DST_ADDR_HI")};
constexpr std::array copy_words{fields("CONTROL", copy_data::control), low("SRC_LO"), high("SRC_HI"), low("DST_LO"),
                                high("DST_HI")};
constexpr std::array dma_words{
    fields("CONTROL", dma_data::control), low("SRC_LO"), high("SRC_HI"), low("DST_LO"), high("DST_HI"),
    fields("COMMAND", dma_data::command)};
constexpr std::array wait_words{fields("CONTROL", wait_reg_mem::control),
                                low("ADDRESS_LO"),
                                high("ADDRESS_HI"),
                                number("REFERENCE"),
                                number("MASK"),
                                fields("POLL", wait_reg_mem::poll_fields)};
constexpr std::array indirect_words{low("IB_BASE_LO"), high("IB_BASE_HI"), fields("CONTROL", indirect_buffer::control)};

constexpr PacketLayout layouts[] = {
    {Opcode::nop, "NOP"},
    {Opcode::set_base, "SET_BASE"},
    {Opcode::clear_state, "CLEAR_STATE"},
    {Opcode::dispatch_direct, "DISPATCH_DIRECT", 4, 4, dispatch_direct_words},
    {Opcode::dispatch_indirect, "DISPATCH_INDIRECT", 3, 3, dispatch_indirect_words},
    {Opcode::atomic_mem, "ATOMIC_MEM"},
    {Opcode::cond_exec, "COND_EXEC"},
    {Opcode::context_control, "CONTEXT_CONTROL"},
    {Opcode::write_data, "WRITE_DATA", 4, largest_count, write_words},
    {Opcode::wait_reg_mem, "WAIT_REG_MEM", 6, 6, wait_words},
    {Opcode::indirect_buffer, "INDIRECT_BUFFER", 3, 3, indirect_words},
    {Opcode::copy_data, "COPY_DATA", 5, 5, copy_words},
    {Opcode::pfp_sync_me, "PFP_SYNC_ME"},
    {Opcode::event_write, "EVENT_WRITE", 1, 1, event_words},
    {Opcode::release_mem, "RELEASE_MEM", 7, 7, release_words},
    {Opcode::dma_data, "DMA_DATA", 6, 6, dma_words},
    {Opcode::acquire_mem, "ACQUIRE_MEM", 7, 7, acquire_words},
    {Opcode::rewind, "REWIND"},
    {Opcode::load_sh_reg_index, "LOAD_SH_REG_INDEX"},
    {Opcode::set_config_reg, "SET_CONFIG_REG", 2, largest_count, set_register_words, config_space},
    {Opcode::set_context_reg, "SET_CONTEXT_REG", 2, largest_count, set_register_words, context_space},
    {Opcode::set_sh_reg, "SET_SH_REG", 2, largest_count, set_register_words, sh_space},
    {Opcode::set_uconfig_reg, "SET_UCONFIG_REG", 2, largest_count, set_register_words, uconfig_space},
    {Opcode::set_sh_reg_index, "SET_SH_REG_INDEX", 2, largest_count, set_register_words, sh_space},
};

constexpr std::array<std::uint8_t, 256> index_layouts() {
  std::array<std::uint8_t, 256> index{};
  std::uint8_t number_of = 0;
  for (const PacketLayout& layout : layouts) index[static_cast<std::uint8_t>(layout.opcode)] = ++number_of;
  return index;
}

constexpr std::array<std::uint8_t, 256> index = index_layouts();

}  // namespace

const PacketLayout* find_layout(Opcode opcode) noexcept {
  const std::uint8_t number_of = index[static_cast<std::uint8_t>(opcode)];
  return number_of == 0 ? nullptr : &layouts[number_of - 1];
}

namespace {

Finding finding_of(std::uint32_t header, const PacketLayout* layout) {
  switch (packet_type(header)) {
    case 0:
      return Finding::type_0;
    case 1:
      return Finding::type_1;
    case 2:
      return Finding::type_2;
    default:
      break;
  }
  if (layout == nullptr) return Finding::unknown_opcode;
  const std::uint32_t count = packet_count(header);
  if (layout->opcode == Opcode::nop && count == largest_count) return Finding::filler;
  const std::uint32_t body = count + 1;
  return body < layout->least_body || body > layout->most_body ? Finding::wrong_length : Finding::known;
}

bool has_body(Finding finding) {
  return finding != Finding::filler && finding != Finding::type_1 && finding != Finding::type_2;
}

}  // namespace

bool PacketReader::next(PacketView& packet) noexcept {
  if (at_ >= stream_.size()) return false;
  const std::uint32_t header = stream_[at_];
  const PacketLayout* layout = packet_type(header) == 3 ? find_layout(packet_opcode(header)) : nullptr;
  Finding finding = finding_of(header, layout);
  const std::size_t wanted = has_body(finding) ? packet_count(header) + std::size_t{1} : 0;
  const std::size_t there = std::min(wanted, stream_.size() - at_ - 1);
  if (there < wanted) finding = Finding::cut_off;
  packet = {at_, header, finding, layout, stream_.subspan(at_ + 1, there)};
  at_ += 1 + there;
  return true;
}

}  // namespace kiln::amdgpu_pm4
