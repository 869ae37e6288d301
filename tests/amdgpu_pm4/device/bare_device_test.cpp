// A device on the fake GPU: what it takes and refuses before anything runs, and what it remembers of a hang.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "amdgpu_pm4/code_object/object_file.hpp"
#include "amdgpu_pm4/device/device.hpp"
#include "device/fake_winsys.hpp"
#include "device/opened_device.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

struct BareDevice {
  std::shared_ptr<fake::Gpu> gpu = std::make_shared<fake::Gpu>();
  WorkCounters counters;
  std::unique_ptr<Device> device;

  BareDevice() {
    device = open_on(
        gpu, counters, "amdgpu:0", "none",
        [](const KernelSource&, Target) -> Result<std::vector<std::byte>> { return unavailable("no compiler"); });
  }

  // The error of a build; "built" where there is none.
  std::string built(const KernelSource& source) const {
    const auto program = device->build(source);
    return program ? "built" : program.error().text();
  }
  std::string made(const BufferDesc& desc) const {
    const auto created = device->create_buffer(desc);
    return created ? "made" : created.error().text();
  }
  std::unique_ptr<Buffer> buffer(BufferUsage usage, std::uint64_t bytes) const {
    BufferDesc desc;
    desc.usage = usage;
    desc.bytes = bytes;
    auto created = device->create_buffer(desc);
    INFO((created ? std::string() : created.error().text()));
    REQUIRE(created.has_value());
    return std::move(created).value();
  }
  // Submits one pass and waits for its end.
  Status run(const PassLaunch& launch) const {
    const auto value = device->submit({{&launch, 1}});
    if (!value) return value.error();
    const auto result = device->wait(*value, Deadline::after(std::chrono::seconds(60)));
    return result ? ok_status() : result.error();
  }
};

// saxpy(x, y, a) of the corpus, compiled for gfx1100.
KernelSource compiled_saxpy() {
  const ObjectFile file = ObjectFile::named("readable-gfx1100");
  KernelSource source;
  source.dialect = Dialect::code_object;
  source.text.assign(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  source.entry = "saxpy";
  source.bindings = {Access::read, Access::read_write, Access::read};
  source.workgroup = {64, 1, 1};
  return source;
}

}  // namespace

TEST_CASE("bare device: accepts sources and rejects bad dialects, bindings and views") {
  const BareDevice d;
  const KernelSource good = compiled_saxpy();
  CHECK(d.built(good) == "built");
  CHECK(d.counters.builds == 0);  // nothing was compiled for it

  KernelSource source = good;
  source.views = {View::storage, View::storage, View::storage};
  CHECK(d.built(source) == "built");
  const std::pair<View, const char*> others[] = {{View::texels, "texels"},
                                                 {View::image, "image"},
                                                 {View::uniforms, "uniforms"},
                                                 {View::pixels, "pixels"},
                                                 {View::invalid, "invalid"}};
  for (const auto& [view, name] : others) {
    for (std::size_t at = 0; at < 3; ++at) {
      source.views = {View::storage, View::storage, View::storage};
      source.views[at] = view;
      CHECK(d.built(source) ==
            "invalid_argument: amdgpu:0: binding " + std::to_string(at) + " has view " + name + ", expected storage");
    }
  }

  source = good;
  source.bindings.assign(64, Access::read);
  CHECK_THAT(d.built(source), Catch::StartsWith("invalid_argument: amdgpu:0: kernel 'saxpy' takes 3 arguments, found "
                                                "64 bindings"));
  source.bindings.assign(65, Access::read);
  CHECK(d.built(source) == "invalid_argument: amdgpu:0: 65 bindings, expected at most 64");

  source = good;
  source.dialect = Dialect::glsl;
  CHECK(d.built(source) == "unsupported: amdgpu:0: source in glsl, expected opencl_c or code_object");
  CHECK(d.counters.builds == 0);
  source.dialect = Dialect::opencl_c;
  CHECK(d.built(source) == "unavailable: amdgpu:0: no compiler");
  CHECK(d.counters.builds == 1);
}

TEST_CASE("bare device: creates buffers and rejects bad sizes, usages and memory") {
  const BareDevice d;
  BufferDesc desc;
  desc.usage = BufferUsage::storage;
  desc.bytes = 1;
  CHECK(d.made(desc) == "made");
  desc.bytes = 0;
  CHECK(d.made(desc) == "invalid_argument: amdgpu:0: buffer size is 0 bytes, expected at least 1 byte");
  desc.bytes = (20ull << 30) + 1;
  CHECK(d.made(desc) ==
        "invalid_argument: amdgpu:0: buffer size is 21474836481 bytes, expected at most 21474836480 bytes");
  desc.usage = BufferUsage::readback;
  CHECK(d.made(desc) ==
        "invalid_argument: amdgpu:0: buffer size is 21474836481 bytes, expected at most 12884901888 bytes");
  desc.bytes = 64;
  desc.usage = BufferUsage::invalid;
  CHECK(d.made(desc) == "invalid_argument: amdgpu:0: no buffer usage is set");
  std::vector<std::byte> memory(64);
  desc.usage = BufferUsage::storage;
  desc.host = memory;
  CHECK(d.made(desc) == "unsupported: amdgpu:0: host memory cannot be wrapped as a buffer");
}

TEST_CASE("bare device: an empty launch runs nothing and is rejected after its kernel hung the device") {
  const BareDevice d;
  auto program = d.device->build(compiled_saxpy());
  INFO((program ? std::string() : program.error().text()));
  REQUIRE(program.has_value());
  const PassLaunch nothing{program->get(), {}, PassLaunch::nothing};
  CHECK(d.run(nothing).text() == "ok");
  CHECK(d.gpu->dispatches == 0);

  const auto x = d.buffer(BufferUsage::upload, 256), y = d.buffer(BufferUsage::storage, 256);
  const auto a = d.buffer(BufferUsage::upload, 4);
  Buffer* const bindings[] = {x.get(), y.get(), a.get()};
  const PassLaunch launch{program->get(), bindings, {1, 1, 1}};
  CHECK(d.run(launch).text() == "ok");
  CHECK(d.gpu->dispatches == 1);
  CHECK(d.run(nothing).text() == "ok");

  d.gpu->hang_at = 1;
  const Status hung = d.run(launch);
  CHECK(hung.code == StatusCode::unavailable);
  CHECK_THAT(hung.message, Catch::StartsWith("amdgpu:0: submission 4: pass 0: kernel 'saxpy' (program ") &&
                               Catch::Contains(") hung the device and is in quarantine"));
  for (const PassLaunch& again : {launch, nothing}) {
    const Status refused = d.run(again);
    CHECK(refused.code == StatusCode::unsupported);
    CHECK_THAT(refused.message, Catch::StartsWith("amdgpu:0: kernel 'saxpy' (program ") &&
                                    Catch::Contains(") caused a hang or a fault of this device (") &&
                                    Catch::Contains(") and is quarantined until "));
  }
  CHECK(d.gpu->dispatches == 2);
}

}  // namespace kiln::amdgpu_pm4
