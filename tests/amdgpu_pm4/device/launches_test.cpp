// What a device says of buffers and launches that do not fit, each in its words; and which dispatches are equal.
#include <catch2/catch.hpp>

#include <array>
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

// A device on a fake GPU whose compiler answers the corpus's file that the text names.
struct CorpusDevice {
  std::shared_ptr<fake::Gpu> gpu = std::make_shared<fake::Gpu>();
  WorkCounters counters;
  std::unique_ptr<Device> device;

  CorpusDevice() {
    device = open_on(gpu, counters, "amdgpu:3", "corpus",
                     [](const KernelSource& source, Target) -> Result<std::vector<std::byte>> {
                       return ObjectFile::named(source.text).bytes;
                     });
  }
  std::unique_ptr<Buffer> buffer(BufferUsage usage, std::uint64_t bytes = 256) const {
    BufferDesc desc;
    desc.usage = usage;
    desc.bytes = bytes;
    auto made = device->create_buffer(desc);
    REQUIRE(made);
    return std::move(*made);
  }
  std::unique_ptr<Program> program(const std::string& file, const std::string& entry,
                                   std::vector<Access> bindings) const {
    KernelSource source;
    source.dialect = Dialect::opencl_c;
    source.text = file;
    source.entry = entry;
    source.bindings = std::move(bindings);
    source.workgroup = {64, 1, 1};
    auto built = device->build(source);
    INFO((built ? std::string() : built.error().text()));
    REQUIRE(built);
    return std::move(*built);
  }
  std::unique_ptr<Program> scaling() const {
    return program("readable-gfx1100", "saxpy", {Access::read, Access::write, Access::read});
  }
  std::string refusal(const std::vector<PassLaunch>& passes) const {
    const auto value = device->submit({passes});
    if (!value) return value.error().text();
    REQUIRE(device->wait(*value, Deadline::after(std::chrono::seconds(60))));
    return "it ran";
  }
};

}  // namespace

TEST_CASE("launches: bytes are written and read up to the end of a buffer") {
  const CorpusDevice d;
  const auto buffer = d.buffer(BufferUsage::storage, 100);
  std::array<std::byte, 101> bytes{};
  bytes[0] = std::byte{7};
  bytes[99] = std::byte{9};
  const auto from = [&bytes](std::size_t count) { return std::span<const std::byte>(bytes).first(count); };
  CHECK(buffer->bytes() == 100);
  CHECK(buffer->mapped().size() == 100);
  CHECK(buffer->write(0, from(100)).text() == "ok");
  CHECK(buffer->mapped()[0] == std::byte{7});
  CHECK(buffer->mapped()[99] == std::byte{9});
  CHECK(buffer->write(99, from(1)).text() == "ok");
  CHECK(buffer->mapped()[99] == std::byte{7});
  CHECK(buffer->write(100, from(0)).text() == "ok");
  CHECK(buffer->write(0, from(101)).text() ==
        "invalid_argument: amdgpu:3: writing 101 bytes at offset 0 reaches beyond the end of a buffer of 100 bytes");
  CHECK(buffer->write(100, from(1)).text() ==
        "invalid_argument: amdgpu:3: writing 1 bytes at offset 100 reaches beyond the end of a buffer of 100 bytes");
  CHECK(buffer->write(101, from(0)).text() ==
        "invalid_argument: amdgpu:3: writing 0 bytes at offset 101 reaches beyond the end of a buffer of 100 bytes");
  std::array<std::byte, 2> to{};
  CHECK(buffer->read(98, to).text() == "ok");
  CHECK(to[1] == std::byte{7});
  CHECK(buffer->read(99, to).text() ==
        "invalid_argument: amdgpu:3: reading 2 bytes at offset 99 reaches beyond the end of a buffer of 100 bytes");
  CHECK(buffer->read(~std::uint64_t{0}, to).code == StatusCode::invalid_argument);
  CHECK(buffer->export_fd().error().text() == "unsupported: amdgpu:3: fake: no descriptors");
}

TEST_CASE("launches: memory without a mapping is neither read nor written by the host") {
  const auto gpu = std::make_shared<fake::Gpu>();
  const auto winsys = fake::make_winsys(gpu);
  auto made = winsys->create_buffer({4096, 0, {Heap::vram, HostMapping::none}, GpuAccess::read_write});
  REQUIRE(made);
  Pm4Buffer buffer("amdgpu:3", *winsys, std::move(*made), 100);
  std::array<std::byte, 4> bytes{};
  CHECK(buffer.mapped().empty());
  CHECK(buffer.write(0, std::span(bytes).first(0)).text() == "ok");
  CHECK(buffer.write(0, bytes).text() ==
        "unsupported: amdgpu:3: writing imported memory failed: the memory has no host mapping");
  CHECK(buffer.read(0, bytes).text() ==
        "unsupported: amdgpu:3: reading imported memory failed: the memory has no host mapping");
}

TEST_CASE("launches: a part of a buffer is as large as the buffer at most, and of this device") {
  const CorpusDevice d, other;
  const auto whole = d.buffer(BufferUsage::storage, 100), foreign = other.buffer(BufferUsage::storage, 100);
  const auto part = [&d](const Buffer& of, std::uint64_t bytes) {
    BufferDesc desc;
    desc.usage = BufferUsage::storage;
    desc.bytes = bytes;
    desc.part_of = const_cast<Buffer*>(&of);
    const auto made = d.device->create_buffer(desc);
    if (!made) return made.error().text();
    CHECK((*made)->mapped().data() == const_cast<Buffer&>(of).mapped().data());
    return std::to_string((*made)->bytes());
  };
  CHECK(part(*whole, 1) == "1");
  CHECK(part(*whole, 100) == "100");
  CHECK(part(*whole, 101) ==
        "invalid_argument: amdgpu:3: part of a buffer has 101 bytes, expected at most 100 bytes of a buffer of this "
        "device");
  CHECK(part(*foreign, 1) ==
        "invalid_argument: amdgpu:3: part of a buffer has 1 bytes, expected at most 100 bytes of a buffer of this "
        "device");
  BufferDesc desc;
  desc.usage = BufferUsage::storage;
  desc.bytes = 100;
  desc.import_fd = 0;
  CHECK(d.device->create_buffer(desc).error().text() == "unsupported: amdgpu:3: fake: no descriptors");
}

TEST_CASE("launches: a pass that is not complete is refused by what it lacks") {
  const CorpusDevice d, other;
  const auto program = d.scaling(), foreign = other.scaling();
  const auto x = d.buffer(BufferUsage::upload), y = d.buffer(BufferUsage::storage),
             a = d.buffer(BufferUsage::upload, 4);
  const auto theirs = other.buffer(BufferUsage::storage);
  const std::array<Buffer*, 3> good{x.get(), y.get(), a.get()};
  const PassLaunch fits{program.get(), good, {1, 1, 1}};
  CHECK(d.refusal({fits, fits}) == "it ran");
  const std::string begin = "invalid_argument: amdgpu:3: pass ";
  CHECK(d.refusal({}) == "invalid_argument: amdgpu:3: the dispatch has no passes");
  CHECK(d.refusal({{nullptr, good, {1, 1, 1}}}) == begin + "0 has no program");
  CHECK(d.refusal({fits, {nullptr, good, {1, 1, 1}}}) == begin + "1 has no program");
  CHECK(d.refusal({{foreign.get(), good, {1, 1, 1}}}) == begin + "0: its program belongs to another device");
  CHECK(d.refusal({{program.get(), std::span(good).first(2), {1, 1, 1}}}) == begin + "0: 2 buffers, expected 3");
  const std::array<Buffer*, 4> four{x.get(), y.get(), a.get(), a.get()};
  CHECK(d.refusal({{program.get(), four, {1, 1, 1}}}) == begin + "0: 4 buffers, expected 3");
  for (std::size_t i = 0; i < 3; ++i) {
    std::array<Buffer*, 3> changed = good;
    changed[i] = nullptr;
    CHECK(d.refusal({{program.get(), changed, {1, 1, 1}}}) == begin + "0: binding " + std::to_string(i) + " is empty");
    changed[i] = theirs.get();
    CHECK(d.refusal({{program.get(), changed, {1, 1, 1}}}) ==
          begin + "0: binding " + std::to_string(i) + " belongs to another device");
  }
}

TEST_CASE("launches: what a pass writes and what it takes by value is bound to buffers of the right kind and size") {
  const CorpusDevice d;
  const auto program = d.scaling();
  const auto x = d.buffer(BufferUsage::upload), y = d.buffer(BufferUsage::storage),
             a = d.buffer(BufferUsage::upload, 4);
  const auto with = [&](std::size_t at, BufferUsage usage, std::uint64_t bytes) {
    const auto made = d.buffer(usage, bytes);
    std::array<Buffer*, 3> bindings{x.get(), y.get(), a.get()};
    bindings[at] = made.get();
    return d.refusal({{program.get(), bindings, {1, 1, 1}}});
  };
  const std::string begin = "invalid_argument: amdgpu:3: pass 0: binding ";
  for (const BufferUsage usage :
       {BufferUsage::upload, BufferUsage::constant, BufferUsage::storage, BufferUsage::readback}) {
    const bool written = usage == BufferUsage::storage || usage == BufferUsage::readback;
    CHECK(with(0, usage, 256) == "it ran");
    CHECK(with(1, usage, 256) ==
          (written ? "it ran" : begin + "1 is written, but bound to an upload or constant buffer"));
    CHECK(with(2, usage, 4) ==
          (written ? begin + "2 is passed by value, but bound to a buffer that kernels may write" : "it ran"));
  }
  CHECK(with(2, BufferUsage::upload, 3) == begin + "2 has 3 bytes, expected 4 for the argument by value");
  CHECK(with(2, BufferUsage::upload, 5) == begin + "2 has 5 bytes, expected 4 for the argument by value");
}

TEST_CASE("launches: a grid has 1 to the most of each axis, or nothing at all") {
  const CorpusDevice d;
  const auto program = d.scaling();
  const auto x = d.buffer(BufferUsage::upload), y = d.buffer(BufferUsage::storage),
             a = d.buffer(BufferUsage::upload, 4);
  const std::array<Buffer*, 3> bindings{x.get(), y.get(), a.get()};
  const auto with = [&](std::array<std::uint32_t, 3> grid) { return d.refusal({{program.get(), bindings, grid}}); };
  const std::string begin = "invalid_argument: amdgpu:3: pass 0: grid ";
  CHECK(with({0x7fffffff, 1, 1}) == "it ran");
  CHECK(with({1, 65535, 65535}) == "it ran");
  CHECK(d.gpu->dispatches == 2);
  CHECK(with({0, 0, 0}) == "it ran");
  CHECK(d.gpu->dispatches == 2);
  CHECK(with({0x80000000, 1, 1}) == begin + "x = 2147483648, expected 1 to 2147483647");
  CHECK(with({0, 1, 1}) == begin + "x = 0, expected 1 to 2147483647");
  CHECK(with({1, 65536, 1}) == begin + "y = 65536, expected 1 to 65535");
  CHECK(with({1, 1, 65536}) == begin + "z = 65536, expected 1 to 65535");
  CHECK(with({1, 1, 0}) == begin + "z = 0, expected 1 to 65535");
}

TEST_CASE("launches: commands are kept for a dispatch that is equal in everything, and for no other") {
  const CorpusDevice d;
  const auto program = d.program("readable-relocated", "second", {Access::write});
  const auto again = d.program("readable-relocated", "second", {Access::write});
  const auto y = d.buffer(BufferUsage::storage), z = d.buffer(BufferUsage::storage);
  const std::array<Buffer*, 1> to_y{y.get()}, to_z{z.get()};
  const PassLaunch usual{program.get(), to_y, {3, 2, 1}};
  // Where the last pass finds its arguments: those of kept commands have a place of their own.
  const auto place_of = [&d](const std::vector<PassLaunch>& passes) {
    REQUIRE(d.refusal(passes) == "it ran");
    return d.gpu->arguments.back();
  };
  place_of({usual});
  const std::uint64_t kept = place_of({usual});
  CHECK(place_of({usual}) == kept);
  const PassLaunch others[] = {{program.get(), to_y, {4, 2, 1}}, {program.get(), to_y, {3, 1, 1}},
                               {program.get(), to_y, {3, 2, 2}}, {program.get(), to_y, {2, 3, 1}},
                               {program.get(), to_z, {3, 2, 1}}, {again.get(), to_y, {3, 2, 1}}};
  for (const PassLaunch& other : others) {
    CHECK(place_of({other}) != kept);
    CHECK(place_of({usual}) == kept);
  }
  CHECK(place_of({usual, usual}) != kept);
  CHECK(place_of({usual}) == kept);
}

TEST_CASE("launches: a program is loaded as it was serialized, and another source's is damaged") {
  const CorpusDevice d, other;
  const auto program = d.scaling();
  CHECK(d.counters.builds == 1);
  const auto binary = d.device->serialize(*program);
  REQUIRE(binary);
  CHECK(binary->format == "amdgpu:gfx1100:v5");
  CHECK(binary->bytes.size() == 32 + ObjectFile::named("readable-gfx1100").bytes.size());
  CHECK(other.device->serialize(*program).error().text() ==
        "invalid_argument: amdgpu:3: the program belongs to another device");
  KernelSource source;
  source.dialect = Dialect::opencl_c;
  source.entry = "saxpy";
  source.bindings = {Access::read, Access::write, Access::read};
  CHECK(d.device->load(source, *binary));
  CHECK(d.counters.loads == 1);
  CHECK(d.counters.builds == 1);
  source.entry = "other";
  CHECK(d.device->load(source, *binary).error().text() ==
        "corrupt: amdgpu:3: the code object has no kernel 'other': expected one of saxpy");
  CHECK(d.counters.loads == 2);
  ProgramBinary foreign = *binary;
  foreign.format = "amdgpu:gfx1030:v5";
  CHECK(d.device->load(source, foreign).error().text() ==
        "unsupported: amdgpu:3: program binary has format 'amdgpu:gfx1030:v5', expected one of amdgpu:gfx1100:v4, "
        "amdgpu:gfx1100:v5");
  CHECK(d.counters.loads == 2);
}

TEST_CASE("launches: a chip that nothing is dispatched to is not opened") {
  WorkCounters counters;
  NodeFacts facts = fake::navi31_facts();
  facts.family = 177;
  DeviceParts parts;
  parts.winsys = fake::make_winsys(std::make_shared<fake::Gpu>(), facts);
  parts.counters = &counters;
  CHECK(Pm4Device::open(std::move(parts)).error().text() ==
        "unsupported: /dev/dri/renderD128: unknown chip: family 177, revision 1, expected gfx10.3 or gfx11");
}

TEST_CASE("launches: a device in words and numbers") {
  const NodeVersion real{"amdgpu", "3.54.0", "AMD GPU"}, simulated{"amdgpu", "3.49.0", "AMD GPU (kiln-simulated)"};
  CHECK(driver_words(real) == "amdgpu 3.54.0 (AMD GPU)");
  CHECK(is_simulated(simulated));
  CHECK_FALSE(is_simulated(real));
  CHECK_FALSE(is_simulated({"kiln-simulated", "kiln-simulated", "AMD GPU"}));
  CHECK(is_simulated({"", "", "kiln-simulated"}));
  NodeFacts facts = fake::navi31_facts();
  const auto chip = identify_chip(145, 1);
  REQUIRE(chip);
  const DeviceInfo info = describe_device(real, facts, *chip, "clang");
  CHECK(info.kind == DeviceKind::gpu);
  CHECK(info.name == "AMD Radeon RX 7900 XTX (gfx1100, 96 compute units)");
  CHECK(info.driver == "amdgpu 3.54.0 (AMD GPU)");
  CHECK(info.shared_resource == "");
  CHECK(info.roof_gflops == Approx(58269.696));  // 2 * 96 * 128 * 2.371 GHz
  CHECK(info.driver_identity == std::vector<std::pair<std::string, std::string>>{{"toolchain", "clang"}});
  CHECK(info.speed_identity == std::vector<std::pair<std::string, std::string>>{{"revision", "1"},
                                                                                {"compute_units", "96"},
                                                                                {"simulated", "no"},
                                                                                {"kernel", "amdgpu 3.54.0"},
                                                                                {"libdrm", "fake"}});
  facts.marketing_name.clear();
  const DeviceInfo other = describe_device(simulated, facts, *chip, "clang");
  CHECK(other.kind == DeviceKind::simulated);
  CHECK(other.name == "AMD Navi31 (gfx1100, 96 compute units)");
  CHECK(other.shared_resource == "host-cores");
  CHECK(other.roof_gflops == 0);
  CHECK(other.speed_identity[2].second == "yes");
  const auto largest = [&](std::uint64_t vram, std::uint64_t gtt, std::uint64_t visible) {
    facts.memory = {64, visible, 64, vram, gtt};
    return describe_device(real, facts, *chip, "").max_buffer_bytes;
  };
  CHECK(largest(12, 6, 64) == 6);
  CHECK(largest(5, 6, 64) == 5);
  CHECK(largest(5, 6, 63) == 6);
}

}  // namespace kiln::amdgpu_pm4
