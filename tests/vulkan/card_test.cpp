// A card with memory of its own: where buffers lie, what is copied between host and card, and the card's times.
#include <catch2/catch.hpp>

#include <unistd.h>

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <kiln/clock.hpp>

#include "vulkan/kernel_under_test.hpp"
#include "vulkan/pretended_card.hpp"

namespace kiln::vulkan {
namespace {

// y[i] += x[i] * 2
KernelSource adding() {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text =
      "#version 430\n"
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) buffer X { uint x[]; };\n"
      "layout(std430, binding = 1) buffer Y { uint y[]; };\n"
      "void main() { uint i = gl_GlobalInvocationID.x; y[i] += x[i] * 2u; }\n";
  source.bindings = {Access::read_write, Access::read_write};
  return source;
}

std::unique_ptr<Program> built(Device& device, const KernelSource& source) {
  auto program = device.build(source);
  INFO((program ? std::string() : program.error().text()));
  REQUIRE(program.has_value());
  return std::move(*program);
}

Result<FenceResult> run(Device& device, const Program& program, std::vector<Buffer*> buffers) {
  const PassLaunch launch{&program, buffers, {1, 1, 1}};
  const auto value = device.submit({{&launch, 1}});
  if (!value) return value.error();
  return device.wait(*value, Deadline::after(std::chrono::seconds(60)));
}

using Words = std::vector<std::uint32_t>;

Words ramp_of(std::size_t count, std::uint32_t first = 1) {
  Words words(count);
  std::iota(words.begin(), words.end(), first);
  return words;
}

}  // namespace

TEST_CASE("vulkan card: a buffer lies in the memory that its usage and the device ask for", "[vulkan][card]") {
  if (!on_software()) return;
  using Counts = std::map<std::uint32_t, int>;
  constexpr auto storage = BufferUsage::storage, upload = BufferUsage::upload, readback = BufferUsage::readback,
                 constant = BufferUsage::constant;
  const auto discrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, integrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  // Type 0 is the card's, 1 the host's, 2 the host's and cached, 3 the window.
  const auto with_window = [](VkDeviceSize window) {
    return memory_of({{local, 0}, {host, 1}, {host | cached, 1}, {local | host, 2}}, window);
  };
  const auto uncached = memory_of({{local, 0}, {host, 1}});
  const auto unified = memory_of({{local, 0}, {host, 1}, {local | host, 0}, {local | host | cached, 0}});
  const auto hosts_only = memory_of({{0, 1}, {host, 1}});
  constexpr VkDeviceSize half = 4 * gibibyte;
  const struct {
    const char* what;
    VkPhysicalDeviceType type;
    VkPhysicalDeviceMemoryProperties memory;
    BufferUsage usage;
    std::uint64_t bytes;
    Counts types;
    bool mapped;
  } cases[] = {
      {"storage", discrete, with_window(half), storage, 65537, {{0, 1}}, false},
      {"readback", discrete, with_window(half), readback, 65537, {{0, 1}, {2, 1}}, false},
      {"a small upload", discrete, with_window(half), upload, 65536, {{0, 1}, {1, 1}}, false},
      {"a large upload", discrete, with_window(half), upload, 65537, {{3, 1}}, false},
      {"a small constant", discrete, with_window(half), constant, 65536, {{0, 1}}, false},
      {"a large constant", discrete, with_window(half), constant, 65537, {{3, 1}}, false},
      {"an upload, small window", discrete, with_window(half - 1), upload, 65537, {{0, 1}, {1, 1}}, false},
      {"a constant, small window", discrete, with_window(half - 1), constant, 65537, {{0, 1}}, false},
      {"an upload, no window", discrete, uncached, upload, 65537, {{0, 1}, {1, 1}}, false},
      {"readback, nothing cached", discrete, uncached, readback, 4, {{0, 1}, {1, 1}}, false},
      {"storage, no memory of its own", integrated, hosts_only, storage, 4, {{0, 1}}, false},
      {"unified memory of a card", discrete, unified, storage, 4, {{0, 1}}, false},
      {"unified storage", integrated, unified, storage, 4, {{3, 1}}, true},
      {"unified upload", integrated, unified, upload, 65537, {{3, 1}}, true},
      {"unified readback", integrated, unified, readback, 65537, {{3, 1}}, true},
      {"a window of no card", integrated, with_window(half), constant, 65537, {{0, 1}}, false},
      {"a window of no card, upload", integrated, with_window(half), upload, 65537, {{0, 1}, {1, 1}}, false},
  };
  for (const auto& each : cases) {
    INFO(each.what);
    const Pretence pretence;
    become_card(pretence);
    pretence->properties = [&](VkPhysicalDeviceProperties& properties) { properties.deviceType = each.type; };
    pretence->memory = each.memory;
    support::FaultyVulkan vulkan({});
    const auto device = vulkan.plugin().open("vulkan:0");
    pretence->allocations.clear();
    const auto buffer = buffer_on(*device, each.bytes, each.usage);
    CHECK(pretence->allocations == each.types);
    CHECK(buffer->mapped().size() == (each.mapped ? each.bytes : 0));
    std::vector<std::byte> bytes(static_cast<std::size_t>(each.bytes)), back(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
    REQUIRE(buffer->write(0, bytes).ok());
    REQUIRE(buffer->read(0, back).ok());
    CHECK(back == bytes);
  }
}

TEST_CASE("vulkan card: a buffer for which the window has no room lies elsewhere", "[vulkan][card]") {
  if (!on_software()) return;
  const Pretence pretence;
  become_card(pretence, 8 * gibibyte);
  support::FaultyVulkan vulkan({});
  const auto device = vulkan.plugin().open("vulkan:0");
  pretence->allocations.clear();
  pretence.fail("vkAllocateMemory");
  const auto buffer = buffer_on(*device, 65540, BufferUsage::upload);
  CHECK(pretence->allocations == std::map<std::uint32_t, int>{{0, 1}, {1, 1}});
  write_words(*buffer, ramp_of(16385));
  CHECK(read_words(*buffer) == ramp_of(16385));
}

TEST_CASE("vulkan card: a device without memory that the host reaches is refused", "[vulkan][card]") {
  if (!on_software()) return;
  const Pretence pretence;
  become_card(pretence);
  pretence->memory = memory_of({{local, 0}, {local | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, 0}});
  support::FaultyVulkan vulkan({});
  const auto opened = vulkan.plugin().driver().open("vulkan:0");
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == StatusCode::unavailable);
  CHECK_THAT(opened.error().message, Catch::Contains("the device has no memory that the host reaches"));
}

TEST_CASE("vulkan card: ranges of any place and length are written and read", "[vulkan][card]") {
  if (!on_software()) return;
  const Pretence pretence;
  become_card(pretence);
  support::FaultyVulkan vulkan({});
  const auto device = vulkan.plugin().open("vulkan:0");
  constexpr std::size_t mebi_words = 1 << 18;
  // Staged in parts of 4 MiB.
  for (const std::size_t words : {std::size_t{1}, 4 * mebi_words, 4 * mebi_words + 1, 9 * mebi_words + 3}) {
    INFO(words << " words");
    const auto buffer = buffer_on(*device, words * 4, BufferUsage::storage);
    Words all = ramp_of(words);
    write_words(*buffer, all);
    CHECK(read_words(*buffer) == all);
    if (words < 8) continue;
    write_words(*buffer, {7, 8, 9}, (words - 3) * 4);
    write_words(*buffer, {5}, 4);
    all[1] = 5;
    all[words - 3] = 7, all[words - 2] = 8, all[words - 1] = 9;
    CHECK(read_words(*buffer) == all);
    CHECK(read_words(*buffer, (words - 2) * 4) == Words{8, 9});
    CHECK(read_words(*buffer, 4, 2) == Words{5, 3});
  }
}

TEST_CASE("vulkan card: a range beyond the buffer is refused", "[vulkan][card]") {
  if (!on_software()) return;
  const auto buffer = buffer_on(*Vulkan::instance().device(), 16, BufferUsage::storage);
  std::vector<std::byte> bytes(17);
  const std::span<std::byte> all(bytes);
  const struct {
    std::uint64_t offset;
    std::size_t length;
    bool fits;
  } ranges[] = {{0, 16, true},  {16, 0, true},          {12, 4, true},
                {0, 17, false}, {16, 1, false},         {17, 0, false},
                {13, 4, false}, {UINT64_MAX, 1, false}, {UINT64_MAX - 3, 4, false}};
  for (const auto& range : ranges) {
    INFO(range.offset << " and " << range.length);
    const Status written = buffer->write(range.offset, all.first(range.length));
    const Status read = buffer->read(range.offset, all.first(range.length));
    CHECK(written.ok() == range.fits);
    CHECK(read.ok() == range.fits);
    if (range.fits) continue;
    CHECK(written.code == StatusCode::invalid_argument);
    CHECK(written.message == "vulkan:0: writing " + std::to_string(range.length) + " bytes at offset " +
                                 std::to_string(range.offset) + " exceeds the buffer of 16 bytes");
    CHECK_THAT(read.message, Catch::StartsWith("vulkan:0: reading " + std::to_string(range.length) + " bytes"));
  }
}

TEST_CASE("vulkan card: what the host writes comes to the card, and what a kernel writes comes back",
          "[vulkan][card]") {
  if (!on_software()) return;
  const Pretence pretence;
  become_card(pretence);
  support::FaultyVulkan vulkan({});
  const auto device = vulkan.plugin().open("vulkan:0");
  const auto program = built(*device, adding());
  const auto in = buffer_on(*device, 256, BufferUsage::upload), out = buffer_on(*device, 256, BufferUsage::readback),
             other = buffer_on(*device, 256, BufferUsage::readback);
  const auto all = [](std::uint32_t value) { return Words(lanes, value); };
  const auto step = [&](const std::unique_ptr<Buffer>& from, const std::unique_ptr<Buffer>& to) {
    const auto done = run(*device, *program, {from.get(), to.get()});
    INFO((done ? std::string() : done.error().text()));
    REQUIRE(done.has_value());
  };
  write_words(*in, all(3));
  CHECK(read_words(*in) == all(3));  // before a submission has copied it
  write_words(*out, all(100));
  step(in, out);
  CHECK(read_words(*out) == all(106));
  for (std::uint32_t round = 1; round <= 3; ++round) {  // nothing is newer on the host
    step(in, out);
    CHECK(read_words(*out) == all(106 + 6 * round));
  }
  write_words(*in, {1000}, 4 * 63);
  write_words(*other, all(0));
  step(in, other);
  Words expected = all(6);
  expected[63] = 2000;
  CHECK(read_words(*other) == expected);
  CHECK(read_words(*out) == all(124));
  // The kernel writes the input, which the host reads from the card.
  step(out, in);
  expected = all(251);
  expected[63] = 1248;
  CHECK(read_words(*in) == expected);
  step(in, out);
  CHECK(read_words(*out)[0] == 124 + 502);
}

TEST_CASE("vulkan card: what the host wrote before a submission that failed comes with the next one",
          "[vulkan][card]") {
  if (!on_software()) return;
  for (const char* call : {"vkQueueSubmit", "vkEndCommandBuffer", "vkBeginCommandBuffer", "vkResetCommandPool"}) {
    const Pretence pretence;
    become_card(pretence);
    support::FaultyVulkan vulkan({});
    const auto device = vulkan.plugin().open("vulkan:0");
    const auto program = built(*device, adding());
    const auto in = buffer_on(*device, 256, BufferUsage::upload), out = buffer_on(*device, 256, BufferUsage::readback);
    write_words(*in, Words(lanes, 4));
    write_words(*out, Words(lanes, 1));
    for (int before = 0; before < 2; ++before) {
      INFO(call << " after " << before);
      pretence.fail(call, before);
      const auto failed = run(*device, *program, {in.get(), out.get()});
      if (!pretence->has_failed) continue;
      REQUIRE_FALSE(failed);
      const auto done = run(*device, *program, {in.get(), out.get()});
      REQUIRE(done.has_value());
      CHECK(read_words(*out) == Words(lanes, 9));
      write_words(*out, Words(lanes, 1));
    }
  }
}

TEST_CASE("vulkan card: kernels with uniforms, textures and images compute the same on a card", "[vulkan][card]") {
  if (!on_software()) return;
  const Pretence pretence;
  become_card(pretence);
  support::FaultyVulkan vulkan({});
  const auto device = vulkan.plugin().open("vulkan:0");
  check(Kernel("layout(std430, binding = 0) readonly buffer A { float a[]; };\nuniform float gain;\n", "a[i] * gain")
            .input(ramp(), "A")
            .number("gain", 2.5)
            .on(*device),
        {0, 2.5F, 5, 7.5F});
  check(Kernel("uniform sampler1D t;\n", "texelFetch(t, int(i), 0).x")
            .texture(BindingKind::sampler, Access::read, "t", ramp(), DType::f32, {64})
            .on(*device),
        {0, 1, 2, 3});
  Kernel image("layout(r32f) uniform image1D m;\n", "(imageStore(m, int(i), vec4(i * 3u)), 1.0)");
  image.texture(BindingKind::image, Access::write, "m", ramp(), DType::f32, {64}).on(*device);
  REQUIRE(image.run().ok());
  CHECK(values_of_bytes<float>(image.tensor(1))[21] == 63);
}

TEST_CASE("vulkan card: a submission takes the time between its stamps", "[vulkan][card][stamps]") {
  if (!on_software()) return;
  using Pair = std::array<std::uint64_t, 2>;
  constexpr std::uint64_t around = std::uint64_t{1} << 36;
  // A tick is 2 ns. begun: 0 is the host's own time of the submission.
  const struct {
    const char* what;
    std::uint32_t bits;
    Pair stamps, clocks;
    std::uint64_t took, begun;
  } cases[] = {
      {"ends later", 64, {1000, 1500}, {1100, 1'000'000}, 1000, 999'800},
      {"one tick", 64, {1000, 1001}, {1000, 5}, 2, 5},
      {"ends when it begins", 64, {1000, 1000}, {1100, 1'000'000}, 0, 999'800},
      {"ends earlier", 64, {1000, 999}, {1100, 1'000'000}, 0, 999'800},
      {"began with the host's clock", 64, {1000, 1500}, {1100, 201}, 1000, 1},
      {"began before the host's clock", 64, {1000, 1500}, {1100, 200}, 1000, 0},
      {"the counter goes round", 36, {around - 50, around - 40}, {50, 1'000'000}, 20, 999'800},
      {"the counter of 64 bits goes round", 64, {UINT64_MAX - 49, UINT64_MAX}, {50, 1'000'000}, 98, 999'800},
  };
  for (const auto& each : cases) {
    INFO(each.what);
    const Pretence pretence;
    become_card(pretence);
    pretence->families = {family_of(VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT, each.bits)};
    support::FaultyVulkan vulkan({});
    const auto device = vulkan.plugin().open("vulkan:0");
    const auto program = built(*device, adding());
    const auto in = buffer_on(*device, 256, BufferUsage::storage), out = buffer_on(*device, 256, BufferUsage::storage);
    pretence->stamps = each.stamps;
    pretence->clocks = each.clocks;
    const std::uint64_t before = now_ns();
    const auto done = run(*device, *program, {in.get(), out.get()});
    const std::uint64_t after = now_ns();
    REQUIRE(done.has_value());
    CHECK(done->device_ns == each.took);
    if (each.begun != 0) {
      CHECK(done->begun_ns == each.begun);
    } else {
      CHECK(done->begun_ns >= before);
      CHECK(done->begun_ns <= after);
    }
  }
}

TEST_CASE("vulkan card: without stamps or without the host's clock a time is the host's", "[vulkan][card][stamps]") {
  if (!on_software()) return;
  for (const int without : {0, 1, 2, 3}) {
    INFO("case " << without);
    const Pretence pretence;
    become_card(pretence);
    pretence->families = {family_of(VK_QUEUE_COMPUTE_BIT, without == 0 ? 0 : 64)};
    if (without == 1) {
      pretence->extensions = [](std::vector<std::string>& names) {
        std::erase(names, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
      };
    }
    if (without == 2) pretence->hidden = "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT";
    support::FaultyVulkan vulkan({});
    const auto device = vulkan.plugin().open("vulkan:0");
    const auto program = built(*device, adding());
    const auto in = buffer_on(*device, 256, BufferUsage::storage), out = buffer_on(*device, 256, BufferUsage::storage);
    pretence->stamps = {1000, 1500};
    pretence->clocks = {1100, 1'000'000};
    if (without == 3) pretence.fail("vkGetCalibratedTimestampsEXT", 0, VK_ERROR_UNKNOWN);
    const std::uint64_t before = now_ns();
    const auto done = run(*device, *program, {in.get(), out.get()});
    const std::uint64_t after = now_ns();
    REQUIRE(done.has_value());
    CHECK(done->device_ns == (without == 0 ? 0 : 1000));
    CHECK(done->begun_ns >= before);
    CHECK(done->begun_ns <= after);
  }
}

TEST_CASE("vulkan card: a submission that has no new stamps did not run, and the card is lost",
          "[vulkan][card][stamps]") {
  if (!on_software()) return;
  for (const bool repeated : {true, false}) {
    INFO((repeated ? "the stamps of the one before" : "no stamps"));
    const Pretence pretence;
    become_card(pretence);
    support::FaultyVulkan vulkan({});
    const auto device = vulkan.plugin().open("vulkan:0");
    const auto program = built(*device, adding());
    const auto in = buffer_on(*device, 256, BufferUsage::storage), out = buffer_on(*device, 256, BufferUsage::storage);
    pretence->stamps = {1000, 1500};
    REQUIRE(run(*device, *program, {in.get(), out.get()}).has_value());
    pretence->stamps = {1000, 1501};  // one of them is new
    REQUIRE(run(*device, *program, {in.get(), out.get()}).has_value());
    if (!repeated) {
      pretence->stamps = {2000, 2500};
      pretence.fail("vkGetQueryPoolResults", 0, VK_NOT_READY);
    }
    // The second and the third are submitted in other commands.
    Result<FenceResult> done = internal_error("not run");
    for (int i = 0; i < 3; ++i) {
      done = run(*device, *program, {in.get(), out.get()});
      if (!done) break;
    }
    REQUIRE_FALSE(done);
    CHECK(done.error().code == StatusCode::device_lost);
    CHECK_THAT(done.error().message, Catch::Contains("was signalled, but did not run: VK_ERROR_DEVICE_LOST"));
    CHECK(run(*device, *program, {in.get(), out.get()}).error().code == StatusCode::device_lost);
    Words words(64);
    CHECK(out->read(0, std::as_writable_bytes(std::span(words))).code == StatusCode::device_lost);
    CHECK(out->write(0, std::as_bytes(std::span(words))).code == StatusCode::device_lost);
    BufferDesc desc;
    desc.bytes = 4;
    desc.usage = BufferUsage::storage;
    CHECK(device->create_buffer(desc).error().code == StatusCode::device_lost);
    CHECK(device->build(adding()).error().code == StatusCode::device_lost);
    CHECK(device->serialize(*program).error().code == StatusCode::device_lost);
    CHECK(device->load(adding(), {}).error().code == StatusCode::device_lost);
  }
}

TEST_CASE("vulkan card: memory is exported and imported as a dma-buf", "[vulkan][card][exchange]") {
  if (!on_software()) return;
  const Pretence pretence;
  become_card(pretence);
  pretence->dma_bufs = true;
  pretence->extensions = [](std::vector<std::string>& names) {
    names.emplace_back(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
  };
  support::FaultyVulkan vulkan({}, {{"validation", false}});
  const auto device = vulkan.plugin().open("vulkan:0");
  if (!device->info().shares_memory) return;  // the driver shares no memory at all
  const auto upload = buffer_on(*device, 4096, BufferUsage::upload);
  CHECK_THAT(upload->export_fd().error().message, Catch::Contains("expected a storage buffer"));
  const auto own = buffer_on(*device, 4092, BufferUsage::storage);
  write_words(*own, ramp_of(1023));
  const auto fd = own->export_fd();
  INFO((fd ? std::string() : fd.error().text()));
  REQUIRE(fd.has_value());
  const auto import = [&](std::uint64_t bytes, int from) {
    BufferDesc desc;
    desc.bytes = bytes;
    desc.usage = BufferUsage::storage;
    desc.import_fd = from;
    return device->create_buffer(desc);
  };
  const auto there = static_cast<std::uint64_t>(lseek(fd->get(), 0, SEEK_END));
  REQUIRE(there >= 4092);
  auto imported = import(4092, fd->get());
  INFO((imported ? std::string() : imported.error().text()));
  REQUIRE(imported.has_value());
  CHECK(pretence->imported_bytes == there);
  CHECK((*imported)->mapped().empty());
  CHECK(read_words(**imported) == ramp_of(1023));
  write_words(**imported, ramp_of(1023, 5000));
  CHECK(read_words(*own) == ramp_of(1023, 5000));
  CHECK(import(there, fd->get()).has_value());
  const auto larger = import(there + 1, fd->get());
  REQUIRE_FALSE(larger);
  CHECK(larger.error().code == StatusCode::invalid_argument);
  CHECK_THAT(larger.error().message, Catch::Contains("the imported memory has " + std::to_string(there) + " bytes"));
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const UniqueFd one(ends[0]), two(ends[1]);
  const auto of_pipe = import(64, one.get());
  REQUIRE_FALSE(of_pipe);
  CHECK(of_pipe.error().code == StatusCode::invalid_argument);
  CHECK_THAT(of_pipe.error().message,
             Catch::Contains("descriptor " + std::to_string(one.get()) + " is not a dma-buf of a supported kind"));
}

}  // namespace kiln::vulkan
