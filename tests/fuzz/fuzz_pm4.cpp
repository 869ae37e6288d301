// Any bytes as a command stream: the decoder reads each dword once and says what it does not know, and the validator,
// which judges the same stream as a submission's, refuses or passes it. Then the same for what passes: its text marks
// nothing as unknown.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/stream_text.hpp"
#include "amdgpu_pm4/safety/validator.hpp"

namespace {

using namespace kiln::amdgpu_pm4;

void require(bool holds) {
  if (!holds) std::abort();
}

void read(std::span<const std::uint32_t> stream, Generation generation) {
  std::size_t at = 0;
  PacketReader reader(stream);
  for (PacketView packet; reader.next(packet);) {
    require(packet.at == at);
    at += 1 + packet.body.size();
    const PacketDescription description = describe(packet, generation);
    require(description.words.size() == packet.body.size());
    require(!description.name.empty());
    require(packet.finding == Finding::known || packet.finding == Finding::filler || !description.why.empty());
  }
  require(at == stream.size());
  require(stream_text(stream, generation).empty() == stream.empty());
}

constexpr std::uint64_t stream_va = 0x100000, code_va = 0x10000000, data_va = 0x20000000, megabyte = 1 << 20;

ProgramFacts program() {
  ProgramFacts facts;
  facts.entry_va = code_va;
  facts.end_va = code_va + 4096;
  facts.wave_lanes = 32;
  facts.rsrc1 = 0x60AF0080;
  facts.rsrc2 = 0x9E;
  facts.kernarg_bytes = 24;
  facts.kernarg_sgpr = 0;
  return facts;
}

// As a submission of one buffer, its end filled up.
void judge(std::vector<std::uint32_t> stream, const DeviceShape& shape) {
  while (stream.empty() || stream.size() % 8 != 0) stream.push_back(filler_dword);
  const BufferRange buffers[] = {{stream_va, 4 * stream.size(), may_read},
                                 {code_va, megabyte, may_read | may_execute},
                                 {data_va, megabyte, may_read | may_write | is_signalled}};
  const ProgramFacts programs[] = {program()};
  const CommandBuffer views[] = {{stream_va, stream}};
  const kiln::Status status = validate({shape, buffers, programs, views});
  require(status.ok() == status.message.empty());
  if (status.ok()) require(stream_text(stream, shape.generation).find("??") == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = stream_text(std::as_bytes(std::span(data, size)), Generation::invalid);
  require(text.has_value() == (size != 0 && size % 4 == 0));
  std::vector<std::uint32_t> stream(size / 4);
  if (!stream.empty()) std::memcpy(stream.data(), data, 4 * stream.size());
  for (const Generation generation : {Generation::invalid, Generation::gfx10_3, Generation::gfx11}) {
    read(stream, generation);
  }
  judge(stream, {Generation::gfx10_3, 4, 80});
  judge(stream, {Generation::gfx11, 6, 96});
  return 0;
}
