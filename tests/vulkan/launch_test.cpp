// What a dispatch lacks is named, and nothing of it runs; what is waited for and how that ends.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "vulkan/kernel_under_test.hpp"
#include "vulkan/pretended_card.hpp"

namespace kiln::vulkan {
namespace {

using Words = std::vector<std::uint32_t>;

KernelSource squaring() { return from_words("x[i] * x[i]"); }

std::unique_ptr<Program> program_of(Device& device, const KernelSource& source) {
  auto program = device.build(source);
  INFO((program ? std::string() : program.error().text()));
  REQUIRE(program.has_value());
  return std::move(*program);
}

std::string refused(Device& device, std::span<const PassLaunch> passes,
                    StatusCode code = StatusCode::invalid_argument) {
  const auto value = device.submit({passes});
  REQUIRE_FALSE(value);
  CHECK(value.error().code == code);
  return value.error().message;
}

Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

}  // namespace

TEST_CASE("vulkan launch: what a pass lacks is named with its number", "[vulkan][launch]") {
  if (!on_software()) return;
  Device& device = *Vulkan::instance().device();
  const auto elsewhere = Vulkan::instance().plugin().open("vulkan:0");
  const auto program = program_of(device, squaring()), foreign_program = program_of(*elsewhere, squaring());
  const auto in = buffer_on(device, 256, BufferUsage::upload), out = buffer_on(device, 256, BufferUsage::readback),
             foreign = buffer_on(*elsewhere, 256, BufferUsage::readback);
  Buffer* const right[] = {in.get(), out.get()};
  Buffer* const empty[] = {in.get(), nullptr};
  Buffer* const wrong[] = {in.get(), foreign.get()};
  const PassLaunch good{program.get(), right, {1, 1, 1}};
  const struct {
    PassLaunch pass;
    const char* words;
  } cases[] = {{{nullptr, right, {1, 1, 1}}, " has no program"},
               {{foreign_program.get(), right, {1, 1, 1}}, ": the program belongs to another device"},
               {{program.get(), empty, {1, 1, 1}}, ": binding 1 has no buffer"},
               {{program.get(), wrong, {1, 1, 1}}, ": binding 1: the buffer belongs to another device"},
               {{program.get(), std::span(right).first(1), {1, 1, 1}}, ": 1 buffers, expected 2"}};
  CHECK(refused(device, {}) == "vulkan:0: the dispatch has no passes");
  write_words(*in, Words(lanes, 3));
  write_words(*out, Words(lanes, 5));
  for (const auto& each : cases) {
    INFO(each.words);
    CHECK(refused(device, std::array{each.pass}) == std::string("vulkan:0: pass 0") + each.words);
    CHECK(refused(device, std::array{good, good, each.pass}) == std::string("vulkan:0: pass 2") + each.words);
  }
  CHECK(read_words(*out) == Words(lanes, 5));
  CHECK(device.serialize(*foreign_program).error().text() ==
        "invalid_argument: vulkan:0: the program belongs to another device");
  const auto value = device.submit({std::array{good, good}});
  REQUIRE(value);
  REQUIRE(device.wait(*value, soon()));
  CHECK(read_words(*out) == Words(lanes, 9));
}

TEST_CASE("vulkan launch: bindings are those that the program declares", "[vulkan][launch]") {
  if (!on_software()) return;
  Device& device = *Vulkan::instance().device();
  const auto a = buffer_on(device, 256, BufferUsage::storage), b = buffer_on(device, 256, BufferUsage::storage);
  Buffer* const bindings[] = {a.get(), b.get()};
  KernelSource far = squaring();
  far.text.replace(far.text.find("binding = 1"), 11, "binding = 9");
  const auto beyond = program_of(device, far);
  CHECK(refused(device, std::array{PassLaunch{beyond.get(), bindings, {1, 1, 1}}}) ==
        "vulkan:0: pass 0: the program needs 10 bindings, the launch provides 2");
  for (const View view : {View::texels, View::image}) {
    KernelSource other = squaring();
    other.views = {View::storage, view};
    const auto viewed = program_of(device, other);
    CHECK(refused(device, std::array{PassLaunch{viewed.get(), bindings, {1, 1, 1}}}) ==
          "vulkan:0: pass 0: binding 1 is viewed as " + std::string(to_string(view)) +
              ", but the program declares another kind of resource");
  }
}

TEST_CASE("vulkan launch: views have the bindings that the device has for them", "[vulkan][launch]") {
  if (!on_software()) return;
  const Pretence pretence;
  pretence->properties = [](VkPhysicalDeviceProperties& properties) {
    properties.limits.maxPerStageDescriptorSampledImages = 2;
    properties.limits.maxPerStageDescriptorStorageImages = 1;
  };
  support::FaultyVulkan vulkan({});
  const auto device = vulkan.plugin().open("vulkan:0");
  const auto error_of = [&](std::vector<View> views) {
    KernelSource source = squaring();
    source.views = std::move(views);
    const auto built = device->build(source);
    const auto loaded = device->load(source, {});
    REQUIRE_FALSE(loaded);
    if (!built) CHECK(loaded.error().message == built.error().message);
    return built ? std::string() : built.error().message;
  };
  constexpr View storage = View::storage, texels = View::texels, image = View::image;
  CHECK(error_of({texels, texels}).empty());
  CHECK(error_of({storage, storage, texels}) == "vulkan:0: binding 2 is viewed as texels, expected a binding below 2");
  CHECK(error_of({image, storage}).empty());
  CHECK(error_of({storage, image}) == "vulkan:0: binding 1 is viewed as image, expected a binding below 1");
}

TEST_CASE("vulkan launch: sources are as many as resources, and hold their values", "[vulkan][launch]") {
  if (!on_software()) return;
  const Pretence pretence;
  become_card(pretence);
  support::FaultyVulkan vulkan({});
  const auto device = vulkan.plugin().open("vulkan:0");
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text =
      "#version 430\n"
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) writeonly buffer Out { uint y[]; };\n"
      "uniform int gain;\n"
      "void main() { y[gl_LocalInvocationID.x] = uint(gain) * gl_LocalInvocationID.x; }\n";
  source.bindings = {Access::write};
  const auto program = program_of(*device, source);
  const std::vector<ProgramResource>& resources = program->interface(source)->resources;
  REQUIRE(resources.size() == 2);
  const std::size_t of_gain = resources[0].name == "gain" ? 0 : 1;
  const auto out = buffer_on(*device, 256, BufferUsage::readback);
  // Of each usage: the host keeps what it wrote, or has to ask the card.
  for (const BufferUsage usage :
       {BufferUsage::upload, BufferUsage::readback, BufferUsage::storage, BufferUsage::constant}) {
    INFO("usage " << static_cast<int>(usage));
    const auto values = buffer_on(*device, 16, usage);
    Buffer* const bindings[] = {out.get(), values.get()};
    std::vector<ResourceSource> sources(2);
    sources[1 - of_gain].binding = 0;
    sources[of_gain].binding = 1;
    sources[of_gain].given = UserKernelSpec::Uniform::Type::integer;
    for (const std::uint32_t offset : {0U, 8U}) {
      sources[of_gain].offset = offset;
      write_words(*values, {7, 0, 11, 0});
      const PassLaunch launch{program.get(), bindings, {1, 1, 1}, sources};
      const auto value = device->submit({{&launch, 1}});
      INFO((value ? std::string() : value.error().text()));
      REQUIRE(value);
      REQUIRE(device->wait(*value, soon()));
      CHECK(read_words(*out)[3] == (offset == 0 ? 21 : 33));
    }
    sources[of_gain].offset = 16;
    CHECK(refused(*device, std::array{PassLaunch{program.get(), bindings, {1, 1, 1}, sources}}) ==
          "vulkan:0: pass 0: uniforms.gain: the values end at byte 24, expected at most 16");
    CHECK(refused(*device, std::array{PassLaunch{program.get(), bindings, {1, 1, 1}, std::span(sources).first(1)}}) ==
          "vulkan:0: pass 0: 1 resources are provided, expected 2");
    sources[of_gain].offset = 0;
    sources[1 - of_gain] = {};
    CHECK_THAT(refused(*device, std::array{PassLaunch{program.get(), bindings, {1, 1, 1}, sources}}),
               Catch::StartsWith("vulkan:0: pass 0: ") && Catch::EndsWith(" Out is not provided"));
  }
}

TEST_CASE("vulkan launch: a pass of nothing runs nothing, whatever its program declares", "[vulkan][launch]") {
  if (!on_software()) return;
  Device& device = *Vulkan::instance().device();
  const char* const bodies[] = {
      "layout(std430, binding = 0) buffer Y { float y[]; };\nvoid main() { y[0] = 1.0; }\n",
      "layout(std430, binding = 0) buffer Y { float y[]; };\nuniform float u;\nvoid main() { y[0] = u; }\n",
      "layout(std430, binding = 0) buffer Y { float y[]; };\nlayout(push_constant) uniform P { vec4 p; };\n"
      "void main() { y[0] = p.x; }\n",
      "layout(std430, binding = 0) buffer Y { float y[]; };\nuniform samplerBuffer b;\n"
      "void main() { y[0] = texelFetch(b, 0).x; }\n",
      "layout(std430, binding = 0) buffer Y { float y[]; };\nuniform sampler2D s;\n"
      "void main() { y[0] = texelFetch(s, ivec2(0), 0).x; }\n",
      "layout(std430, binding = 0) buffer Y { float y[]; };\nlayout(r32f) uniform image2D m;\n"
      "void main() { y[0] = imageLoad(m, ivec2(0)).x; }\n"};
  for (const char* body : bodies) {
    INFO(body);
    KernelSource source;
    source.dialect = Dialect::glsl;
    source.text = std::string("#version 450\nlayout(local_size_x = 1) in;\n") + body;
    source.bindings = {Access::read_write};
    const auto program = program_of(device, source);
    const PassLaunch nothing{program.get(), {}, PassLaunch::nothing};
    for (const std::size_t passes : {1, 2}) {
      const std::vector<PassLaunch> all(passes, nothing);
      const auto value = device.submit({all});
      INFO((value ? std::string() : value.error().text()));
      REQUIRE(value);
      const std::uint64_t before = now_ns();
      const auto done = device.wait(*value, soon());
      REQUIRE(done);
      CHECK(done->device_ns == 0);
      CHECK(done->begun_ns <= before);
    }
  }
}

TEST_CASE("vulkan launch: a result is taken once, and that of no submission is not waited for", "[vulkan][launch]") {
  if (!on_software()) return;
  support::FaultyVulkan vulkan({});
  const auto device = vulkan.plugin().open("vulkan:0");
  const auto program = program_of(*device, squaring());
  const auto in = buffer_on(*device, 256, BufferUsage::upload), out = buffer_on(*device, 256, BufferUsage::readback);
  Buffer* const bindings[] = {in.get(), out.get()};
  const PassLaunch launch{program.get(), bindings, {1, 1, 1}};
  for (const std::uint64_t expected : {1, 2}) {
    const auto value = device->submit({{&launch, 1}});
    REQUIRE(value);
    CHECK(*value == expected);
    REQUIRE(device->wait(*value, soon()));
  }
  const auto error_of = [&](std::uint64_t value) {
    const auto done = device->wait(value, soon());
    REQUIRE_FALSE(done);
    return done.error().text();
  };
  CHECK(error_of(1) == "not_found: vulkan:0: submission 1: the result was already taken");
  CHECK(error_of(2) == "not_found: vulkan:0: submission 2: the result was already taken");
  CHECK(error_of(0) == "not_found: vulkan:0: submission 0 does not exist, the last submission is 2");
  CHECK(error_of(3) == "not_found: vulkan:0: submission 3 does not exist, the last submission is 2");
}

TEST_CASE("vulkan launch: a wait ends at its deadline, goes on before it, or tells what the driver says",
          "[vulkan][launch]") {
  if (!on_software()) return;
  const Pretence pretence;
  support::FaultyVulkan vulkan({});
  const auto device = vulkan.plugin().open("vulkan:0");
  const auto program = program_of(*device, squaring());
  const auto in = buffer_on(*device, 256, BufferUsage::upload), out = buffer_on(*device, 256, BufferUsage::readback);
  Buffer* const bindings[] = {in.get(), out.get()};
  const PassLaunch launch{program.get(), bindings, {1, 1, 1}};
  const auto submitted = [&] {
    const auto value = device->submit({{&launch, 1}});
    REQUIRE(value);
    return *value;
  };
  const std::uint64_t first = submitted();
  pretence.fail("vkWaitSemaphores", 0, VK_TIMEOUT);
  const auto late = device->wait(first, Deadline::after(std::chrono::nanoseconds(0)));
  REQUIRE_FALSE(late);
  CHECK(late.error().text() ==
        "timeout: vulkan:0: submission 1: not finished by its deadline; it may still be running");
  CHECK(device->wait(first, soon()));
  for (const Deadline deadline : {soon(), Deadline::never()}) {
    const std::uint64_t next = submitted();
    pretence.fail("vkWaitSemaphores", 0, VK_TIMEOUT);
    CHECK(device->wait(next, deadline));
    CHECK(pretence->has_failed);
  }
  const std::uint64_t last = submitted();
  pretence.fail("vkWaitSemaphores", 0, VK_ERROR_UNKNOWN);
  const auto failed = device->wait(last, soon());
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == StatusCode::internal);
  CHECK_THAT(failed.error().message, Catch::Contains("waiting for a submission: VK_ERROR_UNKNOWN"));
  CHECK(device->wait(last, soon()));
}

}  // namespace kiln::vulkan
