#include "safety/submission.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "amdgpu_pm4/packets/capabilities.hpp"

namespace kiln::amdgpu_pm4 {

Submission::Submission(const DeviceShape& device, std::size_t chunk_dwords, std::uint32_t dispatches) : shape(device) {
  const bool older = shape.generation == Generation::gfx10_3;
  KernelCode plain = older ? sample_kernel_gfx10_3() : sample_kernel_gfx11();
  plain.lds_bytes = 600;
  KernelCode deep = with_scratch(plain, 100);
  deep.entry = 0x400;
  SampleChunks chunks(chunk_dwords);
  CommandStream commands(shape, chunks);
  REQUIRE(commands.begin().ok());
  const auto one = RecordedDispatch::record(plain, shape, sample_place(plain, shape));
  const auto two = RecordedDispatch::record(deep, shape, sample_place(deep, shape));
  REQUIRE(one.has_value());
  REQUIRE(two.has_value());
  REQUIRE(commands.timestamp(data_va).ok());
  for (std::uint32_t i = 0; i < dispatches; ++i) {
    REQUIRE(commands.dispatch(i % 3 == 1 ? *two : *one, {sample_kernarg_va + 64 * (i % 16), {i + 1, 1, 1}, {}}).ok());
    REQUIRE(commands.barrier().ok());
  }
  REQUIRE(commands.copy(data_va + 4096, data_va + 8192, 4096).ok());
  REQUIRE(commands.fill(data_va + 4096, 1, 64).ok());
  REQUIRE(commands.wait(foreign_va, 5, ~0U).ok());
  REQUIRE(commands.signal(data_va + 16, 9).ok());
  const auto finished = commands.finish();
  REQUIRE(finished.has_value());
  for (const CommandBuffer& buffer : *finished) {
    stream.emplace_back(buffer.dwords.begin(), buffer.dwords.end());
    stream_va.push_back(buffer.va);
    buffers.push_back({buffer.va, SampleChunks::apart, may_read});
  }
  buffers.push_back({sample_image_va, sample_image_bytes + 4096, may_read | may_execute});
  buffers.push_back({sample_kernarg_va - 64, 4096, may_read});
  buffers.push_back({sample_scratch_va, 1 << 26, may_read | may_write});
  buffers.push_back({data_va, data_bytes, may_read | may_write});
  buffers.push_back({foreign_va, 4096, may_read | is_signalled});
  std::sort(buffers.begin(), buffers.end(), [](const BufferRange& a, const BufferRange& b) { return a.va < b.va; });
  programs = {program_facts(plain, sample_image_va, sample_image_bytes),
              program_facts(deep, sample_image_va, sample_image_bytes)};
}

Status Submission::validate() const {
  std::vector<CommandBuffer> views;
  for (std::size_t i = 0; i < stream.size(); ++i) views.push_back({stream_va[i], stream[i]});
  return amdgpu_pm4::validate({shape, buffers, programs, views});
}

std::size_t Submission::find(std::uint32_t header, std::uint32_t first) const {
  for (std::size_t i = 0; i + 1 < stream.front().size(); ++i) {
    if (stream.front()[i] == header && stream.front()[i + 1] == first) return i;
  }
  FAIL("no packet " << std::hex << header << " " << first);
  return 0;
}

void Submission::append(const std::vector<std::uint32_t>& packets) {
  std::vector<std::uint32_t>& last = stream.back();
  while (!last.empty() && last.back() == filler_dword) last.pop_back();
  last.insert(last.end(), packets.begin(), packets.end());
  while (last.size() % 8 != 0) last.push_back(filler_dword);
}

BufferRange& Submission::buffer_at(std::uint64_t va) {
  for (BufferRange& range : buffers) {
    if (range.va == va) return range;
  }
  FAIL("no buffer at " << va);
  return buffers.front();
}

std::string refused(const Change& change, StatusCode code, const DeviceShape& shape) {
  Submission submission(shape);
  REQUIRE(submission.validate().ok());
  change(submission);
  const Status status = submission.validate();
  CHECK(status.code == code);
  return status.message;
}

std::string refused_packet(const Dwords& packet, StatusCode code, const DeviceShape& shape) {
  return refused([&](Submission& s) { s.append(packet); }, code, shape);
}

bool passes_packet(const Dwords& packet, const DeviceShape& shape) {
  Submission submission(shape);
  submission.append(packet);
  INFO(submission.validate().text());
  CHECK(submission.validate().ok());
  return submission.validate().ok();
}

}  // namespace kiln::amdgpu_pm4
