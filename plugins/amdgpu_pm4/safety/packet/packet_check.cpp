#include "amdgpu_pm4/safety/packet/packet_check.hpp"

#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/safety/packet/packet_words.hpp"

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

}  // namespace kiln::amdgpu_pm4
