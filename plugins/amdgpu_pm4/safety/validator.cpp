#include "amdgpu_pm4/safety/validator.hpp"

#include <algorithm>

#include "amdgpu_pm4/packets/packet_fields.hpp"
#include "amdgpu_pm4/safety/packet_check.hpp"

namespace kiln::amdgpu_pm4 {
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
    return invalid_argument("command buffer " + hex_text(buffer.va) + ": expected at a multiple of " +
                            std::to_string(buffer_alignment));
  }
  const std::size_t size = buffer.dwords.size();
  if (size == 0 || size % buffer_granule != 0 || !indirect_buffer::size.holds(size)) {
    return invalid_argument("command buffer " + hex_text(buffer.va) + ": " + std::to_string(size) +
                            " dwords, expected a multiple of " + std::to_string(buffer_granule) + " up to " +
                            std::to_string(indirect_buffer::size.largest()));
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
      return in_packet(invalid_argument("stands after the packet that chains to " + hex_text(jump.va)), buffer, number,
                       packet);
    }
    if (Status status = check.check(packet); !status.ok()) {
      return in_packet(std::move(status), buffer, number, packet);
    }
    if (!packet.is(Opcode::indirect_buffer)) continue;
    jump.va = canonical(std::uint64_t{packet.body[1]} << 32 | packet.body[0]);
    jump.dwords = indirect_buffer::size.of(packet.body[2]);
    if (jump.dwords == 0) {
      return in_packet(invalid_argument("chains to " + hex_text(jump.va) + " with 0 dwords"), buffer, number, packet);
    }
  }
  return {};
}

}  // namespace

Status validate(const SubmissionScope& scope) {
  if (scope.shape.generation == Generation::invalid) return unsupported("a device of no generation known here");
  if (scope.command_buffers.empty()) return invalid_argument("a submission without a command buffer");
  RangeFinder finder(scope.buffers);
  if (Status status = finder.check_order(); !status.ok()) return status;
  PacketCheck check(scope, finder);
  CommandBuffer buffer = scope.command_buffers.front();
  for (std::size_t followed = 0;; ++followed) {
    if (followed == scope.command_buffers.size()) {
      return invalid_argument("command buffer " + hex_text(buffer.va) + ": the chain comes back, there are " +
                              std::to_string(scope.command_buffers.size()) + " buffers");
    }
    if (Status status = check_buffer(buffer, finder); !status.ok()) return status;
    Jump jump;
    if (Status status = check_packets(buffer, check, jump); !status.ok()) return status;
    if (jump.dwords == 0) return {};
    const auto next = std::find_if(scope.command_buffers.begin(), scope.command_buffers.end(),
                                   [&](const CommandBuffer& other) { return canonical(other.va) == jump.va; });
    if (next == scope.command_buffers.end() || jump.dwords > next->dwords.size()) {
      const std::string there =
          next == scope.command_buffers.end() ? "none" : std::to_string(next->dwords.size()) + " dwords";
      return invalid_argument("command buffer " + hex_text(buffer.va) + " chains to " + std::to_string(jump.dwords) +
                              " dwords at " + hex_text(jump.va) + ", the submission has " + there + " there");
    }
    buffer = {next->va, next->dwords.first(jump.dwords)};
  }
}

}  // namespace kiln::amdgpu_pm4
