// What PacketCheck says of packets that change state: registers, caches, events, and the dispatch that reads its size.
#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/safety/packet/packet_check.hpp"
#include "amdgpu_pm4/safety/packet/packet_words.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint64_t indirect_group_bytes = 12;

}  // namespace

Status PacketCheck::set_registers(const PacketView& packet) {
  const bool indexed = packet.opcode() == Opcode::set_sh_reg_index;
  const std::uint32_t index = set_register::index.of(packet.body[0]);
  if (index != (indexed ? set_register::through_cu_mask : 0)) {
    return wrong_word(1, "INDEX", index, indexed ? "3: through the mask of compute units" : "0");
  }
  const std::uint32_t first = packet.layout->register_space + 4 * set_register::offset.of(packet.body[0]);
  const ComputeBits& allowed = allowed_compute_bits(capabilities_.generation);
  for (std::size_t i = 1; i < packet.body.size(); ++i) {
    const std::uint32_t address = first + 4 * static_cast<std::uint32_t>(i - 1);
    const std::size_t at = (address - compute_registers) / 4;
    const bool compute = address >= compute_registers && at < compute_register_count;
    const std::uint32_t bits = compute ? allowed[at] : allowed_bits(address, capabilities_.generation);
    const std::uint32_t value = packet.body[i];
    if (bits == 0) {
      const RegisterInfo* info = find_register(address, capabilities_.generation);
      return unsupported("dword " + std::to_string(1 + i) + " sets register " + hex_text(address) +
                         (info == nullptr ? "" : " (" + std::string(info->name) + ")") +
                         ", which is not on the allow-list of " + std::string(to_string(capabilities_.generation)));
    }
    if ((value & ~bits) != 0) {
      return wrong_word(1 + i, find_register(address, capabilities_.generation)->name, value,
                        "no bits beside " + hex_text(bits));
    }
    if (compute) registers_.set(at, value);
  }
  return {};
}

Status PacketCheck::dispatch_indirect(Body body) {
  const std::uint64_t va = canonical(address_at(body, 0));
  if (Status status = check_aligned(va, 4, "group counts"); !status.ok()) return status;
  if (Status status = finder_.check(va, indirect_group_bytes, may_read, "group counts"); !status.ok()) return status;
  return dispatch_.check(registers_, body[2]);
}

Status PacketCheck::acquire(Body body) const {
  if (body[0] != 0) return wrong_word(1, "COHER_CNTL", body[0], "0");
  if (body[1] != ~0U || body[2] != 0x00FFFFFF || body[3] != 0 || body[4] != 0) {
    return invalid_argument("a range of memory, expected all of it: size 0xFFFFFF:0xFFFFFFFF from 0");
  }
  if (acquire_mem::pws_ena.of(body[5]) != 0) return wrong_word(6, "PWS_ENA", 1, "0");
  const std::uint32_t actions = body[6];
  constexpr std::uint32_t refused = gcr::gl1_range.mask() | gcr::gl2_range.mask() | gcr::gl2_us.mask() |
                                    gcr::gl2_discard.mask() | gcr::range_is_pa.mask();
  if ((actions & refused) != 0 || gcr::gli_inv.of(actions) > 1) {
    return wrong_word(7, "GCR_CNTL", actions, "whole caches, and nothing discarded");
  }
  if (gcr::glm_wb.of(actions) > gcr::glm_inv.of(actions)) {
    return wrong_word(7, "GCR_CNTL", actions, "GLM_WB with GLM_INV");
  }
  return {};
}

Status PacketCheck::event(Body body) const {
  using namespace event_write;
  if (static_cast<Event>(event_type.of(body[0])) == Event::cs_partial_flush &&
      event_index.of(body[0]) == event_index_flush) {
    return {};
  }
  return wrong_word(1, "EVENT", body[0], "CS_PARTIAL_FLUSH with index 4");
}

}  // namespace kiln::amdgpu_pm4
