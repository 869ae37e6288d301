#include "amdgpu_pm4/safety/validator.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

#include "amdgpu_pm4/packets/packet_fields.hpp"
#include "amdgpu_pm4/safety/packet_check.hpp"

namespace kiln::amdgpu_pm4 {

ProgramFacts program_facts(const KernelCode& kernel, std::uint64_t image_va, std::uint64_t image_bytes) noexcept {
  ProgramFacts facts;
  facts.entry_va = image_va + kernel.entry;
  facts.end_va = image_va + image_bytes;
  facts.wave_lanes = kernel.wave_lanes;
  facts.rsrc1 = kernel.rsrc1;
  facts.rsrc2 = kernel.rsrc2;
  facts.rsrc3 = kernel.rsrc3;
  facts.lds_bytes = kernel.lds_bytes;
  facts.scratch_bytes = kernel.scratch_bytes;
  facts.kernarg_bytes = kernel.kernarg_bytes;
  for (const UserSgprSlot& slot : kernel.user_sgpr_slots) {
    if (slot.value == UserSgpr::kernarg_pointer) facts.kernarg_sgpr = slot.first;
    if (slot.value == UserSgpr::private_segment_buffer) facts.scratch_sgpr = slot.first;
    if (slot.value == UserSgpr::flat_scratch_init && facts.scratch_sgpr == no_sgpr) facts.scratch_sgpr = slot.first;
  }
  return facts;
}

namespace {

bool holds(const BufferRange& range, std::uint64_t va) { return va >= range.va && va - range.va < range.bytes; }

std::string rights_text(std::uint8_t rights) {
  std::string text;
  if ((rights & may_read) != 0) text += "read and ";
  if ((rights & may_write) != 0) text += "write and ";
  if ((rights & may_execute) != 0) text += "execute and ";
  if (text.empty()) return "do nothing";
  text.resize(text.size() - std::string_view(" and ").size());
  return text;
}

}  // namespace

std::string hex_text(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%" PRIX64, value);
  return text.data();
}

Status RangeFinder::check_order() const {
  for (std::size_t i = 1; i < buffers_.size(); ++i) {
    const BufferRange& before = buffers_[i - 1];
    if (buffers_[i].va < before.va || buffers_[i].va - before.va < before.bytes) {
      return invalid_argument("buffer list: " + hex_text(buffers_[i].va) + " follows " + hex_text(before.va) + " of " +
                              std::to_string(before.bytes) + " bytes, expected ascending addresses without overlap");
    }
  }
  return {};
}

const BufferRange* RangeFinder::find(std::uint64_t va) {
  if (last_ != nullptr && holds(*last_, va)) return last_;
  const auto after = std::upper_bound(buffers_.begin(), buffers_.end(), va,
                                      [](std::uint64_t wanted, const BufferRange& range) { return wanted < range.va; });
  if (after == buffers_.begin()) return nullptr;
  const BufferRange& range = *std::prev(after);
  if (!holds(range, va)) return nullptr;
  return last_ = &range;
}

bool RangeFinder::has_rights(std::uint64_t va, std::uint8_t rights) {
  const BufferRange* range = find(va);
  return range != nullptr && (range->rights & rights) == rights;
}

Status RangeFinder::check(std::uint64_t va, std::uint64_t bytes, std::uint8_t rights, std::string_view what) {
  const BufferRange* range = find(va);
  if (range == nullptr) {
    return invalid_argument(std::string(what) + " at " + hex_text(va) + ": the submission has no buffer there");
  }
  if (const std::uint64_t there = range->va + range->bytes - va; bytes > there) {
    return invalid_argument(std::string(what) + " at " + hex_text(va) + ": " + std::to_string(bytes) +
                            " bytes, expected at most " + std::to_string(there) + " up to the end of the buffer");
  }
  if ((range->rights & rights) != rights) {
    return invalid_argument(std::string(what) + " at " + hex_text(va) + ": needs permission to " + rights_text(rights) +
                            ", found permission to " + rights_text(range->rights));
  }
  return {};
}

namespace {

constexpr std::uint64_t buffer_alignment = 32;
constexpr std::size_t buffer_granule = 8;  // dwords

struct Jump {
  std::uint64_t va = 0;
  std::size_t dwords = 0;
};

Status in_packet(Status status, const CommandBuffer& buffer, std::size_t number, const PacketView& packet) {
  const std::string name = packet.layout == nullptr ? std::string("unknown") : std::string(packet.layout->name);
  return status.within("command buffer " + hex_text(buffer.va) + ", packet " + std::to_string(number) + " (" + name +
                       ") at dword " + std::to_string(packet.at));
}

Status check_buffer(const CommandBuffer& buffer, RangeFinder& finder) {
  const std::string_view what = "a command buffer";
  if (buffer.va % buffer_alignment != 0) {
    return invalid_argument("command buffer " + hex_text(buffer.va) + ": expected an address that is a multiple of " +
                            std::to_string(buffer_alignment));
  }
  const std::size_t size = buffer.dwords.size();
  if (size == 0 || size % buffer_granule != 0 || !indirect_buffer::size.holds(size)) {
    return invalid_argument("command buffer " + hex_text(buffer.va) + ": " + std::to_string(size) +
                            " dwords, expected a multiple of " + std::to_string(buffer_granule) + " from " +
                            std::to_string(buffer_granule) + " to " + std::to_string(indirect_buffer::size.largest()));
  }
  return finder.check(buffer.va, 4 * std::uint64_t{size}, may_read, what);
}

// What a buffer's packets come to: the jump at its end, if there is one.
Status check_packets(const CommandBuffer& buffer, PacketCheck& check, Jump& jump) {
  jump = {};
  PacketReader reader(buffer.dwords);
  std::size_t number = 0;
  for (PacketView packet; reader.next(packet); ++number) {
    if (jump.dwords != 0) {
      return in_packet(invalid_argument("follows the packet that chains to " + hex_text(jump.va) + ", expected none"),
                       buffer, number, packet);
    }
    if (Status status = check.check(packet); !status.ok()) {
      return in_packet(std::move(status), buffer, number, packet);
    }
    if (!packet.is(Opcode::indirect_buffer)) continue;
    jump.va = canonical(std::uint64_t{packet.body[1]} << 32 | packet.body[0]);
    jump.dwords = indirect_buffer::size.of(packet.body[2]);
    if (jump.dwords == 0) {
      return in_packet(invalid_argument("chains to 0 dwords at " + hex_text(jump.va)), buffer, number, packet);
    }
  }
  return {};
}

}  // namespace

Status validate(const SubmissionScope& scope) {
  if (scope.shape.generation == Generation::invalid) return unsupported("unknown device generation");
  if (scope.command_buffers.empty()) return invalid_argument("the submission has no command buffer");
  RangeFinder finder(scope.buffers);
  if (Status status = finder.check_order(); !status.ok()) return status;
  PacketCheck check(scope, finder);
  CommandBuffer buffer = scope.command_buffers.front();
  for (std::size_t followed = 0;; ++followed) {
    if (followed == scope.command_buffers.size()) {
      return invalid_argument("command buffer " + hex_text(buffer.va) + ": the chain of " +
                              std::to_string(scope.command_buffers.size()) + " buffers contains a loop");
    }
    if (Status status = check_buffer(buffer, finder); !status.ok()) return status;
    Jump jump;
    if (Status status = check_packets(buffer, check, jump); !status.ok()) return status;
    if (jump.dwords == 0) return {};
    const auto next = std::find_if(scope.command_buffers.begin(), scope.command_buffers.end(),
                                   [&](const CommandBuffer& other) { return canonical(other.va) == jump.va; });
    if (next == scope.command_buffers.end() || jump.dwords > next->dwords.size()) {
      const std::string there =
          next == scope.command_buffers.end() ? "no buffer" : std::to_string(next->dwords.size()) + " dwords";
      return invalid_argument("command buffer " + hex_text(buffer.va) + " chains to " + std::to_string(jump.dwords) +
                              " dwords at " + hex_text(jump.va) + ", the submission has " + there + " there");
    }
    buffer = {next->va, next->dwords.first(jump.dwords)};
  }
}

}  // namespace kiln::amdgpu_pm4
