#include "winsys/direct_device.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/packets/command_stream.hpp"
#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/safety/validator.hpp"
#include "amdgpu_pm4/winsys/chip.hpp"
#include "toolchain/fake_compiler.hpp"
#include "winsys/simulated_node.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

std::uint8_t rights_of(GpuAccess access) {
  switch (access) {
    case GpuAccess::read_write:
      return may_read | may_write;
    case GpuAccess::read_execute:
      return may_read | may_execute;
    default:
      return may_read;
  }
}

}  // namespace

std::span<std::uint32_t> dwords_in(BufferObject& buffer) {
  const auto memory = buffer.mapped();
  return {reinterpret_cast<std::uint32_t*>(memory.data()), memory.size() / 4};
}

bool DirectDevice::possible() { return !simulated_node().empty() && clang_of_this_machine() != nullptr; }

DirectDevice::DirectDevice() : winsys(open_simulated_node()) {
  const NodeFacts& facts = winsys->facts();
  const auto chip = identify_chip(facts.family, facts.external_revision);
  REQUIRE(chip.has_value());
  target = chip->target;
  shape = {generation_of(target), facts.shader_engines, facts.compute_units};
  loader = std::make_unique<ProgramLoader>(*winsys, target, shape);
  auto made_context = winsys->create_context(Priority::normal);
  REQUIRE(made_context.has_value());
  context = std::move(made_context).value();
  auto made_timeline = winsys->create_timeline();
  REQUIRE(made_timeline.has_value());
  timeline = std::move(made_timeline).value();
}

std::unique_ptr<BufferObject> DirectDevice::buffer(BufferUse use, std::uint64_t bytes) {
  auto made = winsys->create_buffer({bytes, 0, placement_of(use, winsys->facts().memory), access_of(use)});
  INFO((made ? std::string() : made.error().text()));
  REQUIRE(made.has_value());
  return std::move(made).value();
}

std::shared_ptr<const LoadedKernel> DirectDevice::load(const std::string& text, const std::vector<Access>& bindings) {
  KernelSource source = opencl(text, "work");
  source.bindings = bindings;
  source.workgroup = {64, 1, 1};
  const auto compiler = clang_of_this_machine();
  const auto compiled = compile_kernel(*compiler, source, "direct", target, soon());
  INFO((compiled ? std::string() : compiled.error().text()));
  REQUIRE(compiled.has_value());
  auto loaded = loader->load(source, compiled->object, sha256(std::span<const std::byte>(compiled->object)));
  INFO((loaded ? std::string() : loaded.error().text()));
  REQUIRE(loaded.has_value());
  return std::move(loaded).value();
}

std::unique_ptr<BufferObject> DirectDevice::arguments(const LoadedKernel& kernel,
                                                      const std::vector<const BufferObject*>& buffers) {
  auto segment = buffer(BufferUse::arguments);
  std::vector<std::uint64_t> addresses;
  for (const BufferObject* each : buffers) addresses.push_back(each->address());
  const auto bytes = segment->mapped().first(kernel.kernel.kernarg_bytes);
  REQUIRE(write_kernarg(kernel.kernel, {addresses, {}, {1, 1, 1}, kernel.workgroup}, bytes).ok());
  return segment;
}

DirectSubmission::DirectSubmission(DirectDevice& device)
    : device_(device),
      commands_(device.buffer(BufferUse::commands)),
      report_(device.buffer(BufferUse::reports)),
      out_(dwords_in(*commands_)) {
  touch(*commands_);
  touch(*report_);
  REQUIRE(emit_ring_state(out_, capabilities_of(device.shape.generation)));
}

void DirectSubmission::touch(const BufferObject& buffer, std::uint8_t rights) {
  if (std::find(handles_.begin(), handles_.end(), buffer.handle()) != handles_.end()) return;
  handles_.push_back(buffer.handle());
  const auto all = static_cast<std::uint8_t>(rights_of(buffer.access()) | rights);
  ranges_.push_back({buffer.address(), buffer.bytes(), all});
}

void DirectSubmission::dispatch(const LoadedKernel& kernel, const DispatchArguments& arguments) {
  touch(*kernel.code);
  programs_.push_back(kernel.facts);
  REQUIRE(kernel.recorded.append(out_, arguments));
}

void DirectSubmission::barrier() {
  REQUIRE(emit_event_write(out_, Event::cs_partial_flush, event_index_flush));
  REQUIRE(emit_acquire_mem(out_, acquire_after_host));
}

std::uint64_t DirectSubmission::submit(std::uint64_t point, const std::vector<SyncPoint>& waits) {
  REQUIRE(emit_release_mem(
      out_, {Event::cache_flush_and_inv_ts, release_to_host, ReleasedData::value_64, report_->address(), point}));
  REQUIRE(emit_fillers(out_, (8 - out_.size() % 8) % 8));
  std::sort(ranges_.begin(), ranges_.end(), [](const BufferRange& a, const BufferRange& b) { return a.va < b.va; });
  const CommandBuffer commands{commands_->address(), dwords_in(*commands_).first(out_.size())};
  const Status status = validate({device_.shape, ranges_, programs_, {&commands, 1}});
  INFO(status.text());
  REQUIRE(status.ok());
  const CommandRange range{commands.va, static_cast<std::uint32_t>(commands.dwords.size_bytes())};
  const SyncPoint done{device_.timeline->handle(), point};
  const auto number = device_.context->submit({{&range, 1}, handles_, waits, {&done, 1}, 0});
  INFO((number ? std::string() : number.error().text()));
  REQUIRE(number.has_value());
  return *number;
}

}  // namespace kiln::amdgpu_pm4
