#include "amdgpu_pm4/packets/decode/packet_reader.hpp"

#include <algorithm>

namespace kiln::amdgpu_pm4 {
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
