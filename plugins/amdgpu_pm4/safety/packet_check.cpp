#include "amdgpu_pm4/safety/packet_check.hpp"

#include <string>

#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/safety/submission_scope.hpp"

namespace kiln::amdgpu_pm4 {

PacketCheck::PacketCheck(const SubmissionScope& scope, RangeFinder& finder)
    : finder_(finder), capabilities_(capabilities_of(scope.shape.generation)), dispatch_(scope, finder) {}

Status PacketCheck::check(const PacketView& packet) {
  if (packet.finding == Finding::filler && packet.header == filler_dword) return {};
  if (Status status = check_form(packet); !status.ok()) return status;
  return check_body(packet);
}

Status PacketCheck::check_form(const PacketView& packet) const {
  switch (packet.finding) {
    case Finding::known:
      break;
    case Finding::filler:
      return wrong_word(0, "the header", packet.header, hex_text(filler_dword) + " of a NOP without a body");
    case Finding::cut_off:
      return invalid_argument("its body of " + std::to_string(packet_count(packet.header) + 1) +
                              " dwords is cut off after " + std::to_string(packet.body.size()));
    case Finding::wrong_length:
      return invalid_argument("a body of " + std::to_string(packet.body.size()) + " dwords, expected " +
                              std::to_string(packet.layout->least_body) + " to " +
                              std::to_string(packet.layout->most_body));
    default:
      return unsupported("header " + hex_text(packet.header) + ": not a packet that compute rings are given");
  }
  if (!capabilities_.knows(packet.opcode())) {
    return unsupported("opcode " + hex_text(static_cast<std::uint8_t>(packet.opcode())) +
                       " is not on the allow-list of " + std::string(to_string(capabilities_.generation)));
  }
  if ((packet.header & 0xFF) != compute_shader_type) {
    return wrong_word(0, "the header's low byte", packet.header & 0xFF, "2: for compute, without a predicate");
  }
  const std::size_t column = column_of(capabilities_.generation);
  for (std::size_t i = 0; i < packet.layout->words.size(); ++i) {
    const std::uint32_t known = packet.layout->words[i].known[column];
    if ((packet.body[i] & ~known) != 0) {
      return wrong_word(1 + i, packet.layout->words[i].name, packet.body[i], "no bits beside " + hex_text(known));
    }
    if (packet.layout->words[i].kind == WordKind::address_low && packet.opcode() != Opcode::copy_data &&
        packet.opcode() != Opcode::dma_data && !is_address(address_at(packet.body, i))) {
      return wrong_word(2 + i, packet.layout->words[i + 1].name, packet.body[i + 1],
                        "the upper half of a 48-bit address");
    }
  }
  return {};
}

Status PacketCheck::check_body(const PacketView& packet) {
  const Body body = packet.body;
  switch (packet.opcode()) {
    case Opcode::nop:
      return {};
    case Opcode::set_sh_reg:
    case Opcode::set_sh_reg_index:
    case Opcode::set_uconfig_reg:
      return set_registers(packet);
    case Opcode::dispatch_direct:
      if (body[0] == 0 || body[1] == 0 || body[2] == 0) {
        return invalid_argument("a grid of " + std::to_string(body[0]) + "x" + std::to_string(body[1]) + "x" +
                                std::to_string(body[2]) + " groups, expected at least 1 on each axis");
      }
      return dispatch_.check(registers_, body[3]);
    case Opcode::dispatch_indirect:
      return dispatch_indirect(body);
    case Opcode::acquire_mem:
      return acquire(body);
    case Opcode::release_mem:
      return release(body);
    case Opcode::event_write:
      return event(body);
    case Opcode::write_data:
      return write(body);
    case Opcode::copy_data:
      return copy(body);
    case Opcode::dma_data:
      return dma(body);
    case Opcode::wait_reg_mem:
      return wait(body);
    case Opcode::indirect_buffer:
      return indirect_buffer(body);
    default:
      return internal_error("an allowed packet without a check");
  }
}

Status PacketCheck::indirect_buffer(Body body) const {
  using namespace kiln::amdgpu_pm4::indirect_buffer;
  if (chain.of(body[2]) == 0) return wrong_word(3, "CHAIN", 0, "1: compute rings are given no buffer to return from");
  constexpr std::uint32_t needed = chain.mask() | valid.mask();
  if ((body[2] & ~size.mask()) != needed) {
    return wrong_word(3, "CONTROL", body[2], "CHAIN and VALID, and nothing else beside the size");
  }
  return {};
}

bool is_address(std::uint64_t address) {
  const std::uint64_t above = address >> 48;
  return above == 0 || address == canonical(address);
}

Status wrong_word(std::size_t dword, std::string_view name, std::uint32_t is, std::string_view expected) {
  return invalid_argument("dword " + std::to_string(dword) + ", " + std::string(name) + " is " + hex_text(is) +
                          ", expected " + std::string(expected));
}

Status check_aligned(std::uint64_t va, std::uint64_t alignment, std::string_view what) {
  if (va % alignment == 0) return {};
  return invalid_argument(std::string(what) + " at " + hex_text(va) + ", expected a multiple of " +
                          std::to_string(alignment));
}

// What PacketCheck says of packets that change state: registers, caches, events, and the dispatch that reads its size.

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
