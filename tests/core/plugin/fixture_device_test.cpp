// The fixture device itself: other tests stand on it.
#include <catch2/catch.hpp>

#include "support/fixture_driver.hpp"

using namespace kiln;
using namespace kiln::support;
using namespace std::chrono_literals;

namespace {

KernelSource source_of(std::string function, std::vector<Define> constants = {}) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = std::move(function);
  source.constants = std::move(constants);
  return source;
}

std::unique_ptr<Buffer> buffer_of(Device& device, std::vector<float> values) {
  auto buffer = device.create_buffer({values.size() * sizeof(float), BufferUsage::upload, {}, -1});
  REQUIRE(buffer);
  REQUIRE((*buffer)->write(0, std::as_bytes(std::span(values))).ok());
  return std::move(buffer).value();
}

std::vector<float> floats_of(Buffer& buffer) {
  std::vector<float> values(buffer.bytes() / sizeof(float));
  REQUIRE(buffer.read(0, std::as_writable_bytes(std::span(values))).ok());
  return values;
}

std::uint64_t submit(Device& device, const Program& program, std::vector<Buffer*> bindings) {
  const PassLaunch pass{&program, bindings, {1, 1, 1}};
  auto value = device.submit({std::span(&pass, 1)});
  REQUIRE(value);
  return *value;
}

}  // namespace

TEST_CASE("the fixture device runs named functions") {
  FixtureOptions options;
  options.queue = GENERATE(FixtureQueue::own_thread, FixtureQueue::inside_submit);
  FixtureDevice device(options);
  const auto a = buffer_of(device, {1, 2, 3});
  const auto b = buffer_of(device, {10, 20, 30});
  const auto c = buffer_of(device, {0, 0, 0});
  auto add = device.build(source_of("add"));
  auto scale = device.build(source_of("scale", {{"FACTOR", "2.5"}}));
  REQUIRE(add);
  REQUIRE(scale);
  Buffer* first[] = {a.get(), b.get(), c.get()};
  Buffer* second[] = {c.get(), c.get()};
  const PassLaunch passes[] = {{add->get(), first, {1, 1, 1}}, {scale->get(), second, {1, 1, 1}}};
  auto value = device.submit({passes});
  REQUIRE(value);
  REQUIRE(device.wait(*value, Deadline::never()));
  CHECK(floats_of(*c) == std::vector<float>{27.5F, 55.F, 82.5F});
  CHECK(device.wait(*value, Deadline::never()).error().code == StatusCode::not_found);
  CHECK(device.controls().builds == 2);
  CHECK(device.controls().submits == 1);
}

TEST_CASE("the fixture device computes library specs") {
  FixtureDevice device;
  KernelSource source;
  source.dialect = Dialect::library;
  Conv2dSpec spec;
  spec.c = 1, spec.h = 3, spec.w = 3, spec.k = 1, spec.r = 3, spec.s = 3, spec.pad_y = 1, spec.pad_x = 1;
  source.spec = spec;
  auto program = device.build(source);
  REQUIRE(program);
  const auto in = buffer_of(device, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto weights = buffer_of(device, {0, 0, 0, 0, 1, 1, 0, 0, 0});
  const auto out = buffer_of(device, std::vector<float>(9, -1.F));
  REQUIRE(device.wait(submit(device, **program, {in.get(), weights.get(), out.get()}), Deadline::never()));
  CHECK(floats_of(*out) == std::vector<float>{3, 5, 3, 9, 11, 6, 15, 17, 9});
}

TEST_CASE("a serialized fixture program loads, and a foreign or refused one does not") {
  FixtureOptions options;
  options.binary_bytes = 4096;
  FixtureDevice device(options);
  auto program = device.build(source_of("copy"));
  REQUIRE(program);
  auto binary = device.serialize(**program);
  REQUIRE(binary);
  CHECK(binary->bytes.size() == 4096);
  CHECK(device.load(source_of("copy"), *binary));
  CHECK(device.load(source_of("add"), *binary).error().code == StatusCode::corrupt);
  CHECK(device.load(source_of("copy"), {"other", binary->bytes}).error().code == StatusCode::unsupported);
  device.controls().refuse_load = true;
  CHECK(device.load(source_of("copy"), *binary).error().code == StatusCode::corrupt);
  CHECK(device.controls().builds == 1);
  CHECK(device.controls().loads == 4);
  program = internal_error("dropped");
  CHECK(*device.controls().live_programs == 0);
}

TEST_CASE("a failed build carries the compiler's log") {
  FixtureDevice device;
  CHECK_THAT(device.build(source_of("nonsense")).error().message, Catch::Contains("no function named 'nonsense'"));
  device.controls().fail_build = true;
  CHECK_THAT(device.build(source_of("copy")).error().message, Catch::Contains("told to fail"));
}

TEST_CASE("fixture work hangs until the test lets it on") {
  FixtureDevice device;
  device.controls().run.close();
  auto program = device.build(source_of("add_one"));
  REQUIRE(program);
  const auto data = buffer_of(device, {1});
  const std::uint64_t value = submit(device, **program, {data.get()});
  REQUIRE(device.controls().run.await_waiting(1, Deadline::after(60s)));
  CHECK(device.wait(value, Deadline::after(1ms)).error().code == StatusCode::timeout);
  device.controls().run.open();
  REQUIRE(device.wait(value, Deadline::never()));
  CHECK(floats_of(*data) == std::vector<float>{2});
}

TEST_CASE("a lost fixture device answers device_lost to all that wait") {
  FixtureDevice device;
  device.controls().lose_at = 2;
  auto program = device.build(source_of("add_one"));
  REQUIRE(program);
  const auto data = buffer_of(device, {1});
  const std::uint64_t first = submit(device, **program, {data.get()});
  CHECK(device.wait(first, Deadline::never()));
  const std::uint64_t second = submit(device, **program, {data.get()});
  CHECK(device.wait(second, Deadline::never()).error().code == StatusCode::device_lost);
  CHECK(device.build(source_of("copy")).error().code == StatusCode::device_lost);
}

TEST_CASE("a hung fixture device can be destroyed") {
  const auto data_count = [] {
    FixtureDevice device;
    device.controls().run.close();
    auto program = device.build(source_of("add_one"));
    const auto data = buffer_of(device, {1});
    submit(device, **program, {data.get()});
    return device.controls().live_buffers;
  }();
  CHECK(*data_count == 0);
}

TEST_CASE("a fixture device that shares memory computes in a buffer that another device exported") {
  FixtureOptions options;
  options.info.shares_memory = true;
  FixtureDevice exporter(options), importer(options);
  auto data = buffer_of(exporter, {1, 2, 3});
  auto fd = data->export_fd();
  REQUIRE(fd);
  auto same = importer.create_buffer({3 * sizeof(float), BufferUsage::storage, {}, fd->get()});
  REQUIRE(same);
  auto program = importer.build(source_of("add_one"));
  REQUIRE(program);
  REQUIRE(importer.wait(submit(importer, **program, {same->get()}), Deadline::never()));
  CHECK(floats_of(*data) == std::vector<float>{2, 3, 4});
  data.reset();
  CHECK(floats_of(**same) == std::vector<float>{2, 3, 4});
  const auto larger = importer.create_buffer({4 * sizeof(float), BufferUsage::storage, {}, fd->get()});
  REQUIRE_FALSE(larger);
  CHECK(larger.error().code == StatusCode::invalid_argument);
  CHECK_THAT(larger.error().message, Catch::Contains("12 bytes behind it, expected 16"));
}

TEST_CASE("the fixture device computes wrongly, or not at all, when it is told to") {
  FixtureDevice device;
  device.controls().wrong_at = 1;
  device.controls().idle_at = 2;
  auto program = device.build(source_of("add_one"));
  REQUIRE(program);
  const auto data = buffer_of(device, {1, 1, 1});
  const std::vector<std::vector<float>> after = {{2, 3, 2}, {2, 3, 2}, {3, 4, 3}};
  for (const std::vector<float>& expected : after) {
    REQUIRE(device.wait(submit(device, **program, {data.get()}), Deadline::never()));
    CHECK(floats_of(*data) == expected);
  }
}

TEST_CASE("the fixture driver follows its settings") {
  DriverContext context;
  context.settings = {{"devices", std::int64_t{2}}, {"fail_build", true}};
  FixtureDriver driver(context);
  CHECK(driver.enumerate().size() == 2);
  CHECK(driver.open("fixture:2").error().code == StatusCode::not_found);
  auto device = driver.open("fixture:1");
  REQUIRE(device);
  CHECK((*device)->info().id == "fixture:1");
  CHECK((*device)->build(source_of("copy")).error().code == StatusCode::invalid_argument);
}
