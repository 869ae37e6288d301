#include <catch2/catch.hpp>

#include <kiln/host_processor.hpp>

#include <algorithm>
#include <thread>

#include "cpu/cpu_under_test.hpp"

namespace kiln::cpu_test {
namespace {

Conv2dSpec small_conv() {
  Conv2dSpec spec;
  spec.c = 16, spec.h = 14, spec.w = 13, spec.k = 24, spec.r = 3, spec.s = 3;
  spec.pad_y = spec.pad_x = 1;
  return spec;
}

BufferDesc described(std::uint64_t bytes, BufferUsage usage) {
  BufferDesc desc;
  desc.bytes = bytes;
  desc.usage = usage;
  return desc;
}

}  // namespace

TEST_CASE("a repeated job makes no primitive and packs nothing") {
  OpenedCpu& cpu = shared_cpu();
  const WorkCounters& counters = cpu.plugin.counters();
  const std::uint64_t at_first = counters.prepared;
  Job job(*cpu.device, small_conv(), 1);
  const std::uint64_t built = counters.prepared;
  CHECK(built == at_first + 1);  // the primitives of the program
  REQUIRE(job.run().ok());
  const std::uint64_t packed = counters.prepared;
  CHECK(packed > built);
  for (int i = 0; i < 5; ++i) {
    job.poison();
    REQUIRE(job.run().ok());
    CHECK(job.difference() == "");
  }
  CHECK(counters.prepared == packed);
  CHECK(counters.builds == 0);
  CHECK(counters.loads == 0);
}

TEST_CASE("the roof is told, and lies above what the library reaches") {
  OpenedCpu& cpu = shared_cpu();
  const double roof = cpu.device->info().roof_gflops;
  CHECK(roof == host_roof_gflops());
  REQUIRE(roof > 0);
  Conv2dSpec spec = small_conv();
  spec.c = spec.k = 128, spec.h = spec.w = 28;
  Job job(*cpu.device, spec, 1);
  double best = 0;
  for (int i = 0; i < 20; ++i) {
    const auto value = job.submit();
    REQUIRE(value.has_value());
    const auto ran = cpu.device->wait(*value, Deadline::never());
    REQUIRE(ran.has_value());
    REQUIRE(ran->device_ns > 0);
    best = std::max(best, flops(spec) / static_cast<double>(ran->device_ns));
  }
  CHECK(best < roof);
}

TEST_CASE("a constant that is written again is packed again") {
  OpenedCpu& cpu = shared_cpu();
  const Conv2dSpec spec = small_conv();
  const auto decls = tensors_of(spec);
  auto program = cpu.device->build(source_of(spec));
  REQUIRE(program.has_value());
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Buffer*> bindings;
  for (const TensorDecl& decl : decls) {
    auto buffer = cpu.device->create_buffer(
        described(decl.bytes, decl.role == TensorRole::constant ? BufferUsage::constant : BufferUsage::upload));
    REQUIRE(buffer.has_value());
    REQUIRE((*buffer)->mapped().size() == decl.bytes);
    buffers.push_back(std::move(buffer).value());
    bindings.push_back(buffers.back().get());
  }
  const auto run_with = [&](float weight) {
    const std::vector<float> input(decls[0].bytes / sizeof(float), 1.0f);
    const std::vector<float> weights(decls[1].bytes / sizeof(float), weight);
    REQUIRE(buffers[0]->write(0, std::as_bytes(std::span(input))).ok());
    REQUIRE(buffers[1]->write(0, std::as_bytes(std::span(weights))).ok());
    const PassLaunch launch{program->get(), bindings, {1, 1, 1}};
    const auto value = cpu.device->submit({{&launch, 1}});
    REQUIRE(value.has_value());
    REQUIRE(cpu.device->wait(*value, Deadline::never()).has_value());
    std::vector<float> output(decls[2].bytes / sizeof(float));
    REQUIRE(buffers[2]->read(0, std::as_writable_bytes(std::span(output))).ok());
    return output[20];  // off the border: all 16 * 9 taps
  };
  CHECK(run_with(1.0f) == 144.0f);
  CHECK(run_with(2.0f) == 288.0f);
}

TEST_CASE("two threads submit to one device") {
  OpenedCpu& cpu = shared_cpu();
  std::vector<std::unique_ptr<Job>> jobs;
  for (std::uint64_t i = 0; i < 2; ++i) jobs.push_back(std::make_unique<Job>(*cpu.device, small_conv(), 50 + i));
  std::vector<std::string> failures(jobs.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 20; ++n) {
        jobs[i]->poison();
        if (const Status status = jobs[i]->run(); !status.ok()) failures[i] = status.text();
        if (const std::string wrong = jobs[i]->difference(); !wrong.empty()) failures[i] = wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) CHECK(failure == "");
}

TEST_CASE("buffers are checked when they are made and when they are accessed") {
  Device& device = *shared_cpu().device;
  const auto code = [&](const BufferDesc& desc) {
    const auto buffer = device.create_buffer(desc);
    return buffer ? StatusCode::ok : buffer.error().code;
  };
  CHECK(code(described(64, BufferUsage::invalid)) == StatusCode::invalid_argument);
  CHECK(code(described(0, BufferUsage::upload)) == StatusCode::invalid_argument);
  BufferDesc imported = described(64, BufferUsage::upload);
  imported.import_fd = 0;
  CHECK(code(imported) == StatusCode::unsupported);
  GuardedTensor memory(256);
  BufferDesc wrapped = described(128, BufferUsage::upload);
  wrapped.host = memory.bytes();
  CHECK(code(wrapped) == StatusCode::invalid_argument);  // 256 bytes given
  wrapped.host = memory.bytes().subspan(4, 128);
  CHECK(code(wrapped) == StatusCode::invalid_argument);  // not aligned
  wrapped.host = memory.bytes().first(128);
  auto buffer = device.create_buffer(wrapped);
  REQUIRE(buffer.has_value());
  CHECK((*buffer)->mapped().data() == memory.bytes().data());
  std::vector<std::byte> bytes(16, std::byte{7});
  CHECK((*buffer)->write(112, bytes).ok());
  CHECK(memory.bytes()[127] == std::byte{7});
  CHECK((*buffer)->write(113, bytes).code == StatusCode::invalid_argument);
  CHECK((*buffer)->read(~std::uint64_t{0}, bytes).code == StatusCode::invalid_argument);
  CHECK((*buffer)->export_fd().error().code == StatusCode::unsupported);
  CHECK(memory.guards_intact());
}

TEST_CASE("a dispatch with wrong bindings is refused and names both sides") {
  Device& device = *shared_cpu().device;
  const auto program = device.build(source_of(small_conv()));
  REQUIRE(program.has_value());
  CHECK(device.submit({}).error().code == StatusCode::invalid_argument);
  const auto small = device.create_buffer(described(64, BufferUsage::upload));
  REQUIRE(small.has_value());
  std::vector<Buffer*> bindings(2, small->get());
  PassLaunch launch{program->get(), bindings, {1, 1, 1}};
  const auto two = device.submit({{&launch, 1}});
  REQUIRE_FALSE(two.has_value());
  CHECK_THAT(two.error().message, Catch::Contains("2 bindings, expected 3"));
  bindings.push_back(small->get());
  launch.bindings = bindings;
  const auto sizes = device.submit({{&launch, 1}});
  REQUIRE_FALSE(sizes.has_value());
  CHECK_THAT(sizes.error().message, Catch::Contains("64 bytes, expected at least 11648"));
  bindings[0] = nullptr;
  const auto none = device.submit({{&launch, 1}});
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().code == StatusCode::invalid_argument);
}

TEST_CASE("sources that are not a library's, or not consistent, are refused") {
  Device& device = *shared_cpu().device;
  KernelSource source = source_of(small_conv());
  source.dialect = Dialect::glsl;
  CHECK(device.build(source).error().code == StatusCode::unsupported);
  source = source_of(small_conv());
  source.spec.reset();
  CHECK(device.build(source).error().code == StatusCode::invalid_argument);
  source = source_of(small_conv());
  source.text += " ";
  CHECK(device.build(source).error().code == StatusCode::invalid_argument);
  Conv2dSpec wrong = small_conv();
  wrong.groups = 5;
  CHECK(device.build(source_of(wrong)).error().code == StatusCode::invalid_argument);
}

}  // namespace kiln::cpu_test
