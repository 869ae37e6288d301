// The whole way on the simulated device: source, compiler, code object, packets, kernel interface, results.
#include <catch2/catch.hpp>
#include <thread>

#include "device/opened_device.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// Stores far outside of every buffer: on hardware a fault, on the simulation an error that has the device reset.
const char* const wild = R"(
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void work(global const float* x, global float* y) { y[(ulong)1 << 34] = x[get_global_id(0)]; }
)";

const char* const spilling = R"(
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void work(global const float* x, global float* y) {
  volatile float kept[40];
  for (uint i = 0; i < 40; ++i) kept[(i * 7) % 40] = x[(get_global_id(0) + i) % 256];
  float sum = 0;
  for (uint i = 0; i < 40; ++i) sum += kept[i];
  y[get_global_id(0)] = sum;
}
)";

const char* const grid_teller = R"(
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void work(global uint* y) {
  if (get_local_id(0) == 0)
    y[get_group_id(0) + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2))] =
        get_num_groups(0) | get_num_groups(1) << 8 | get_num_groups(2) << 16 | get_local_size(0) << 24;
}
)";

// A struct, and values before and behind the buffers.
const char* const taking_values = R"(
struct Line { float slope; int shift; };
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void work(uint first, global float* y, struct Line line, double scale) {
  const uint i = get_global_id(0);
  y[first + i] = (float)(scale * (line.slope * (float)i + (float)line.shift));
}
)";

const char* const reversing = R"(
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void work(global float* y, local float* a, local float* b) {
  const uint l = get_local_id(0);
  a[l] = y[l];
  b[l] = 2 * y[l];
  barrier(CLK_LOCAL_MEM_FENCE);
  y[l] = a[63 - l] + b[63 - l];
}
)";

std::vector<float> saxpy_of(float a, std::size_t count) {
  std::vector<float> values = counting(count);
  for (float& value : values) value = a * value + value;
  return values;
}

}  // namespace

TEST_CASE("device: a kernel of the user's runs and the right numbers come back") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  const auto program = d.build(saxpy("3.0f"));
  const auto x = d.buffer(BufferUsage::upload, counting(4096)), y = d.buffer(BufferUsage::storage, counting(4096));
  REQUIRE(d.run(*program, {x.get(), y.get()}, 64).ok());
  CHECK(d.read(*y) == saxpy_of(3, 4096));
  CHECK(d.counters.builds == 1);
}

TEST_CASE("device: passes of one submission see what those before wrote, many of them") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  const auto program = d.build(saxpy("1.0f"));
  const auto one = d.buffer(BufferUsage::upload, std::vector<float>(128, 1.0F));
  const auto sum = d.buffer(BufferUsage::readback, std::vector<float>(128, 0.0F));
  Buffer* const bindings[] = {one.get(), sum.get()};
  const std::vector<PassLaunch> passes(300, PassLaunch{program.get(), bindings, {2, 1, 1}});
  const auto value = d.device->submit({passes});
  REQUIRE(value.has_value());
  const auto result = d.device->wait(*value, Deadline::never());
  REQUIRE(result.has_value());
  CHECK(d.read(*sum) == std::vector<float>(128, 300.0F));
  CHECK(result->device_ns > 0);
  CHECK(result->begun_ns > 0);
  CHECK(result->begun_ns <= now_ns());
}

TEST_CASE("device: equal launches in any order among others each run, with their own buffers, program and grid") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  const std::unique_ptr<Program> programs[] = {d.build(saxpy("1.0f")), d.build(saxpy("2.0f"))};
  const auto one = d.buffer(BufferUsage::upload, std::vector<float>(128, 1.0F));
  std::vector<std::unique_ptr<Buffer>> sums;
  std::vector<std::array<Buffer*, 2>> bindings;
  std::vector<std::vector<float>> expected(40, std::vector<float>(128, 0.0F));
  for (const std::vector<float>& zeros : expected) {
    sums.push_back(d.buffer(BufferUsage::readback, zeros));
    bindings.push_back({one.get(), sums.back().get()});
  }
  std::vector<PassLaunch> passes;
  std::uint32_t state = 1;
  const auto draw = [&state](std::uint32_t below) { return (state = state * 1664525 + 1013904223) / 65536 % below; };
  for (int i = 0; i < 500; ++i) {
    const std::uint32_t program = draw(2), groups = 1 + draw(2), at = draw(i < 250 ? 3 : 40);
    passes.push_back({programs[program].get(), bindings[at], {groups, 1, 1}});
    for (std::uint32_t lane = 0; lane < 64 * groups; ++lane) expected[at][lane] += program == 0 ? 1.0F : 2.0F;
  }
  const auto value = d.device->submit({passes});
  REQUIRE(value.has_value());
  REQUIRE(d.device->wait(*value, Deadline::never()).has_value());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    CAPTURE(i);
    CHECK(d.read(*sums[i]) == expected[i]);
  }
}

TEST_CASE("device: equal dispatches compute on what their buffers hold then, also where one replaced another") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  auto program = d.build(saxpy("1.0f"));
  auto one = d.buffer(BufferUsage::upload, std::vector<float>(64, 1.0F));
  auto sum = d.buffer(BufferUsage::storage, std::vector<float>(64, 0.0F));
  float expected = 0;
  const auto run = [&](float factor, float value) {
    for (int i = 0; i < 4; ++i) {
      REQUIRE(d.run(*program, {one.get(), sum.get()}).ok());
      expected += factor * value;
      CHECK(d.read(*sum) == std::vector<float>(64, expected));
    }
  };
  run(1, 1);
  const std::vector<float> threes(64, 3.0F);
  REQUIRE(one->write(0, std::as_bytes(std::span(threes))).ok());
  run(1, 3);
  one = nullptr;
  one = d.buffer(BufferUsage::upload, std::vector<float>(64, 5.0F));  // where the other was, or not
  run(1, 5);
  program = nullptr;
  program = d.build(saxpy("2.0f"));
  run(2, 5);
}

TEST_CASE("device: submissions run in order, also when nobody waits between them") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  const auto program = d.build(saxpy("1.0f"));
  const auto one = d.buffer(BufferUsage::upload, std::vector<float>(64, 1.0F));
  const auto sum = d.buffer(BufferUsage::storage, std::vector<float>(64, 0.0F));
  Buffer* const bindings[] = {one.get(), sum.get()};
  const PassLaunch launch{program.get(), bindings, {1, 1, 1}};
  std::uint64_t last = 0;
  for (int i = 0; i < 500; ++i) {
    const auto value = d.device->submit({{&launch, 1}});
    REQUIRE(value.has_value());
    CHECK(*value == last + 1);
    last = *value;
  }
  REQUIRE(d.device->wait(last, Deadline::never()).has_value());
  CHECK(d.read(*sum) == std::vector<float>(64, 500.0F));
}

TEST_CASE("device: a kernel with private memory gets it") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  const auto program = d.build(kernel_of(spilling, {Access::read, Access::write}));
  const std::vector<float> values = counting(256);
  const auto x = d.buffer(BufferUsage::upload, values), y = d.buffer(BufferUsage::readback, std::vector<float>(256));
  REQUIRE(d.run(*program, {x.get(), y.get()}, 4).ok());
  std::vector<float> expected(256);
  for (std::size_t i = 0; i < 256; ++i) {
    for (std::size_t k = 0; k < 40; ++k) expected[i] += values[(i + k) % 256];
  }
  CHECK(d.read(*y) == expected);
}

TEST_CASE("device: a kernel that asks for its grid is told it") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  const auto program = d.build(kernel_of(grid_teller, {Access::write}));
  const auto y = d.buffer(BufferUsage::readback, std::vector<float>(30));
  Buffer* const bindings[] = {y.get()};
  const PassLaunch launch{program.get(), bindings, {5, 3, 2}};
  const auto value = d.device->submit({{&launch, 1}});
  REQUIRE(value.has_value());
  REQUIRE(d.device->wait(*value, Deadline::never()).has_value());
  std::vector<std::uint32_t> told(30);
  REQUIRE(y->read(0, std::as_writable_bytes(std::span(told))).ok());
  CHECK(told == std::vector<std::uint32_t>(30, 5u | 3u << 8 | 2u << 16 | 64u << 24));
}

TEST_CASE("device: local memory is given as asked for, or refused by its argument and both sizes") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  const auto program = d.build(kernel_of(reversing, {Access::read_write}));
  const auto y = d.buffer(BufferUsage::readback, counting(64));
  Buffer* const bindings[] = {y.get()};
  const auto submit = [&](std::uint64_t a, std::uint64_t b) {
    const ResourceSource sources[] = {{0}, {ResourceSource::none, a}, {ResourceSource::none, b}};
    const PassLaunch launch{program.get(), bindings, {1, 1, 1}, sources};
    return d.device->submit({{&launch, 1}});
  };
  const auto value = submit(256, 256);
  REQUIRE(value.has_value());
  REQUIRE(d.device->wait(*value, Deadline::never()).has_value());
  CHECK(d.read(*y)[0] == 3 * 63);
  const auto refused = submit(~std::uint64_t{15}, 16);  // whose sum is 0
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == StatusCode::invalid_argument);
  CHECK_THAT(refused.error().message, Catch::EndsWith("pass 0: argument 'a' has 18446744073709551600 bytes of "
                                                      "local memory, expected at most 65536"));
  CHECK_THAT(submit(65536, 16).error().message, Catch::Contains("the job adds 65552, expected at most 65536 together"));
}

TEST_CASE("device: a code object is a dialect of its own, and loads as it was serialized") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  const KernelSource source = saxpy("2.0f");
  const auto built = d.build(source);
  auto binary = d.device->serialize(*built);
  REQUIRE(binary.has_value());
  CHECK_THAT(binary->format, Catch::StartsWith("amdgpu:gfx1"));
  KernelSource object = source;
  object.dialect = Dialect::code_object;
  object.constants.clear();
  object.text.assign(reinterpret_cast<const char*>(binary->bytes.data()) + 32, binary->bytes.size() - 32);
  const auto from_object = d.build(object);
  CHECK(d.counters.builds == 1);  // nothing was compiled for it
  auto loaded = d.device->load(source, *binary);
  REQUIRE(loaded.has_value());
  CHECK(d.counters.loads == 1);
  for (const Program* program : {built.get(), from_object.get(), loaded->get()}) {
    const auto x = d.buffer(BufferUsage::constant, counting(64)), y = d.buffer(BufferUsage::storage, counting(64));
    REQUIRE(d.run(*program, {x.get(), y.get()}).ok());
    CHECK(d.read(*y) == saxpy_of(2, 64));
  }
  KernelSource other = source;
  other.bindings.push_back(Access::read);
  CHECK(d.device->load(other, *binary).error().code == StatusCode::corrupt);
}

TEST_CASE("device: what a source says and its text does not is an error with both sides") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  KernelSource source = saxpy("2.0f");
  source.workgroup = {32, 1, 1};
  auto program = d.device->build(source);
  REQUIRE_FALSE(program.has_value());
  CHECK(program.error().code == StatusCode::invalid_argument);
  CHECK_THAT(program.error().message, Catch::Contains("64x1x1") && Catch::Contains("32x1x1"));
  source = saxpy("2.0f");
  source.workgroup = {0, 0, 0};  // the text's
  CHECK(d.device->build(source).has_value());
  source.bindings = {Access::read};
  program = d.device->build(source);
  REQUIRE_FALSE(program.has_value());
  CHECK_THAT(program.error().message, Catch::Contains("takes 2 arguments, found 1"));
  source = saxpy("2.0f");
  source.entry = "elsewhere";
  program = d.device->build(source);
  REQUIRE_FALSE(program.has_value());
  CHECK_THAT(program.error().message, Catch::Contains("elsewhere") && Catch::Contains("work"));
}

TEST_CASE("device: arguments by value are the bytes of their bindings when the pass is submitted") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  const auto program = d.build(kernel_of(taking_values, {Access::read, Access::write, Access::read, Access::read}));
  const auto value = [&](BufferUsage usage, const auto& held) {
    BufferDesc desc;
    desc.bytes = sizeof held;
    desc.usage = usage;
    auto made = d.device->create_buffer(desc);
    REQUIRE(made.has_value());
    REQUIRE((*made)->write(0, std::as_bytes(std::span(&held, 1))).ok());
    return std::move(made).value();
  };
  struct Line {
    float slope;
    std::int32_t shift;
  };
  const auto first = value(BufferUsage::upload, std::uint32_t{64}), line = value(BufferUsage::upload, Line{3, -7});
  const auto scale = value(BufferUsage::constant, 0.5);
  const auto y = d.buffer(BufferUsage::readback, std::vector<float>(192, -1.0F));
  Buffer* const bindings[] = {first.get(), y.get(), line.get(), scale.get()};
  const PassLaunch launch{program.get(), bindings, {1, 1, 1}};
  const auto one = d.device->submit({{&launch, 1}});
  REQUIRE(one.has_value());
  // Another value, while the first submission may still run.
  const std::uint32_t behind = 128;
  REQUIRE(first->write(0, std::as_bytes(std::span(&behind, 1))).ok());
  const auto other = d.device->submit({{&launch, 1}});
  REQUIRE(other.has_value());
  REQUIRE(d.device->wait(*one, Deadline::never()).has_value());
  REQUIRE(d.device->wait(*other, Deadline::never()).has_value());
  std::vector<float> expected(192, -1.0F);
  for (std::size_t i = 0; i < 128; ++i) expected[64 + i] = 0.5F * (3.0F * static_cast<float>(i % 64) - 7);
  CHECK(d.read(*y) == expected);

  const auto refused = [&](Buffer* with) { return d.run(*program, {with, y.get(), line.get(), scale.get()}); };
  const auto wide = value(BufferUsage::upload, std::uint64_t{64});
  CHECK(refused(wide.get()).code == StatusCode::invalid_argument);
  CHECK_THAT(refused(wide.get()).message,
             Catch::Contains("binding 0 has 8 bytes, expected 4 for the argument by value"));
  const auto written = value(BufferUsage::storage, std::uint32_t{64});
  CHECK(refused(written.get()).code == StatusCode::invalid_argument);
  CHECK_THAT(refused(written.get()).message, Catch::Contains("binding 0 is passed by value"));
  const auto writing =
      d.device->build(kernel_of(taking_values, {Access::read_write, Access::write, Access::read, Access::read}));
  REQUIRE_FALSE(writing.has_value());
  CHECK_THAT(writing.error().message, Catch::Contains("takes 'first' by value: binding 0 is written"));
}

TEST_CASE("device: a pass that writes to what programs may only read is refused before it runs") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  const auto program = d.build(saxpy("2.0f"));
  const auto x = d.buffer(BufferUsage::upload, counting(64)), y = d.buffer(BufferUsage::constant, counting(64));
  const Status status = d.run(*program, {x.get(), y.get()});
  CHECK(status.code == StatusCode::invalid_argument);
  CHECK_THAT(status.message, Catch::Contains("pass 0: binding 1 is written"));
}

TEST_CASE("device: one memory by two buffers: a kernel writes through the import, the export shows it") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  const auto program = d.build(saxpy("5.0f"));
  const auto x = d.buffer(BufferUsage::upload, counting(64)), y = d.buffer(BufferUsage::storage, counting(64));
  const auto fd = y->export_fd();
  REQUIRE(fd.has_value());
  const auto imported = d.import(fd->get(), y->bytes());
  REQUIRE(d.run(*program, {x.get(), imported.get()}).ok());
  CHECK(d.read(*y) == saxpy_of(5, 64));
}

TEST_CASE("device: a kernel that faults is named and refused from then on, in later processes too") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  const KernelSource bad = kernel_of(wild, {Access::read, Access::write});
  const auto x = d.buffer(BufferUsage::upload, counting(64)), y = d.buffer(BufferUsage::storage, counting(64));
  const auto good_program = d.build(saxpy("2.0f"));
  const auto program = d.build(bad);
  const auto binary = d.device->serialize(*program);
  REQUIRE(binary.has_value());
  const Status fault = d.run(*program, {x.get(), y.get()});
  INFO(fault.text());
  CHECK(fault.code == StatusCode::unavailable);
  CHECK_THAT(fault.message, Catch::Contains("pass 0: kernel 'work'") && Catch::Contains("in quarantine"));
  CHECK(d.run(*program, {x.get(), y.get()}).code == StatusCode::unsupported);
  CHECK(d.run(*good_program, {x.get(), y.get()}).ok());  // the others go on
  CHECK(d.read(*y) == saxpy_of(2, 64));

  OpenedDevice later;
  later.notes.kept = d.notes.kept;
  later.reopen();
  const auto loaded = later.device->load(bad, *binary);  // what a cache kept is no reason to compile it again
  REQUIRE(loaded.has_value());
  const auto in = later.buffer(BufferUsage::upload, counting(64)),
             out = later.buffer(BufferUsage::storage, counting(64));
  const Status refused = later.run(**loaded, {in.get(), out.get()});
  CHECK(refused.code == StatusCode::unsupported);
  CHECK_THAT(refused.message, Catch::Contains("quarantined until"));
  const PassLaunch nothing{loaded->get(), {}, PassLaunch::nothing};
  const auto readied = later.device->submit({{&nothing, 1}});  // what warming asks
  REQUIRE_FALSE(readied.has_value());
  CHECK(readied.error().code == StatusCode::unsupported);
  CHECK(later.run(*later.build(saxpy("2.0f")), {in.get(), out.get()}).ok());
  CHECK(later.read(*out) == saxpy_of(2, 64));
}

}  // namespace kiln::amdgpu_pm4
