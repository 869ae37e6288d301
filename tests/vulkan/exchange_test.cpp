// Memory and fences between Vulkan and the other APIs of one card: what a kernel of one stored a kernel of the other
// loads, bit for bit, and the card alone orders the two. On a software device all of it is refused by type.
#include <sys/resource.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <cstdlib>
#include <string>
#include <vector>

#include <kiln/fence_exchange.hpp>

#include "vulkan/vulkan_under_test.hpp"

namespace kiln::vulkan {
namespace {

using support::lanes;
using support::Vulkan;

constexpr std::uint32_t groups = 65, words = lanes * groups;  // of several pages, the last one not whole
constexpr std::uint64_t bytes = words * sizeof(std::uint32_t);

// A kernel of so many steps that a reader that does not wait for it finds what was there before.
constexpr std::uint32_t steps = 300;

std::uint32_t mixed(std::uint32_t x, std::uint32_t odd, std::uint32_t i) {
  for (std::uint32_t step = 0; step < steps; ++step) x = (x ^ x >> 15) * odd + i;
  return x;
}

KernelSource mixing(Dialect dialect, std::uint32_t odd) {
  KernelSource source;
  source.dialect = dialect;
  source.text = dialect == Dialect::opencl_c ? R"(
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void work(global const uint* x, global uint* y) {
  const uint i = get_global_id(0);
  uint v = x[i];
  for (uint step = 0; step < STEPS; ++step) v = (v ^ v >> 15) * ODD + i;
  y[i] = v;
}
)"
                                             : R"(
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) writeonly buffer Y { uint y[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  uint v = x[i];
  for (uint step = 0; step < STEPS; ++step) v = (v ^ v >> 15) * ODD + i;
  y[i] = v;
}
)";
  if (dialect == Dialect::opencl_c) source.entry = "work";
  source.constants = {{"ODD", std::to_string(odd) + "u"}, {"STEPS", std::to_string(steps) + "u"}};
  source.bindings = {Access::read, Access::write};
  source.workgroup = {lanes, 1, 1};
  return source;
}

// A device with a kernel that mixes by its own factor.
struct Side {
  std::shared_ptr<Device> device;
  std::uint32_t odd = 0;
  std::unique_ptr<Program> program;

  Side(std::shared_ptr<Device> on, Dialect dialect, std::uint32_t factor) : device(std::move(on)), odd(factor) {
    auto built = device->build(mixing(dialect, odd));
    INFO((built ? std::string() : built.error().text()));
    REQUIRE(built.has_value());
    program = std::move(*built);
  }

  std::unique_ptr<Buffer> buffer(BufferUsage usage, int import_fd = -1) const {
    BufferDesc desc;
    desc.bytes = bytes;
    desc.usage = usage;
    desc.import_fd = import_fd;
    auto made = device->create_buffer(desc);
    INFO((made ? std::string() : made.error().text()));
    REQUIRE(made.has_value());
    return std::move(*made);
  }
  std::uint64_t submit(Buffer& from, Buffer& to) const {
    Buffer* const bindings[] = {&from, &to};
    const PassLaunch launch{program.get(), bindings, {groups, 1, 1}};
    const auto value = device->submit({{&launch, 1}});
    INFO((value ? std::string() : value.error().text()));
    REQUIRE(value.has_value());
    return *value;
  }
  void wait(std::uint64_t value) const {
    const auto fence = device->wait(value, Deadline::after(std::chrono::seconds(120)));
    INFO((fence ? std::string() : fence.error().text()));
    REQUIRE(fence.has_value());
  }
  FenceExchange& fences() const {
    auto* const exchange = dynamic_cast<FenceExchange*>(device.get());
    REQUIRE(exchange != nullptr);
    return *exchange;
  }
};

// What `to` is given from now on runs after the submission of `from`; the host does not wait.
void order(const Side& from, std::uint64_t value, const Side& to) {
  const auto fence = from.fences().export_fence(value);
  INFO((fence ? std::string() : fence.error().text()));
  REQUIRE(fence.has_value());
  const Status status = to.fences().wait_for_fence(fence->get());
  INFO(status.text());
  REQUIRE(status.ok());
}

std::vector<std::uint32_t> first_words(std::uint32_t seed) {
  std::vector<std::uint32_t> values(words);
  for (std::uint32_t& value : values) value = seed = seed * 1664525 + 1013904223;
  return values;
}

std::vector<std::uint32_t> mixed(std::vector<std::uint32_t> values, std::uint32_t odd) {
  for (std::uint32_t i = 0; i < words; ++i) values[i] = mixed(values[i], odd, i);
  return values;
}

void write(Buffer& buffer, const std::vector<std::uint32_t>& values) {
  REQUIRE(buffer.write(0, std::as_bytes(std::span(values))).ok());
}

std::vector<std::uint32_t> read(Buffer& buffer) {
  std::vector<std::uint32_t> values(words);
  REQUIRE(buffer.read(0, std::as_writable_bytes(std::span(values))).ok());
  return values;
}

// The simulated card through another plugin. Real cards are left in peace.
std::shared_ptr<Device> same_card(support::PluginUnderTest& plugin) {
  for (const DeviceInfo& info : plugin.driver().enumerate()) {
    if (!info.usable || info.kind != DeviceKind::simulated) continue;
    CHECK(info.physical_id == Vulkan::instance().device()->info().physical_id);
    return plugin.open(info.id);
  }
  FAIL("the plugin has no simulated device");
  return nullptr;
}

bool on_simulated_card() {
  if (!Vulkan::instance().usable()) return false;
  return Vulkan::instance().device()->info().kind == DeviceKind::simulated;
}

constexpr std::uint32_t by_vulkan = 2654435761, by_other = 2246822519;

// Vulkan, the other, Vulkan, by two shared buffers that `owner` made; the host waits for the end alone.
void pass_on(const Side& vulkan, const Side& other, const Side& owner) {
  const Side& guest = &owner == &vulkan ? other : vulkan;
  const auto there = owner.buffer(BufferUsage::storage), back = owner.buffer(BufferUsage::storage);
  const auto there_fd = there->export_fd(), back_fd = back->export_fd();
  REQUIRE(there_fd.has_value());
  REQUIRE(back_fd.has_value());
  const auto there_too = guest.buffer(BufferUsage::storage, there_fd->get());
  const auto back_too = guest.buffer(BufferUsage::storage, back_fd->get());
  const bool ours = &owner == &vulkan;
  Buffer &v_there = ours ? *there : *there_too, &v_back = ours ? *back : *back_too;
  Buffer &o_there = ours ? *there_too : *there, &o_back = ours ? *back_too : *back;
  const auto in = vulkan.buffer(BufferUsage::upload), out = vulkan.buffer(BufferUsage::readback);
  // Several rounds, each on other words: caches and memory hold what the round before left.
  for (std::uint32_t round = 1; round <= 4; ++round) {
    INFO("round " << round);
    write(*in, first_words(round));
    order(vulkan, vulkan.submit(*in, v_there), other);
    order(other, other.submit(o_there, o_back), vulkan);
    vulkan.wait(vulkan.submit(v_back, *out));
    CHECK(read(*out) == mixed(mixed(mixed(first_words(round), by_vulkan), by_other), by_vulkan));
  }
}

}  // namespace

TEST_CASE("vulkan: buffers pass to PM4 and back by dma-buf, ordered by the card", "[vulkan][exchange]") {
  if (!on_simulated_card()) return;
  support::PluginUnderTest plugin("amdgpu_pm4");
  const Side vulkan(Vulkan::instance().device(), Dialect::glsl, by_vulkan);
  const Side pm4(same_card(plugin), Dialect::opencl_c, by_other);
  SECTION("Vulkan's memory") { pass_on(vulkan, pm4, vulkan); }
  SECTION("PM4's memory") { pass_on(vulkan, pm4, pm4); }
}

TEST_CASE("vulkan: buffers pass to OpenGL and back by dma-buf, ordered by the card", "[vulkan][exchange]") {
  if (!on_simulated_card()) return;
  support::PluginUnderTest plugin("opengl");
  const Side vulkan(Vulkan::instance().device(), Dialect::glsl, by_vulkan);
  const Side opengl(same_card(plugin), Dialect::glsl, by_other);
  pass_on(vulkan, opengl, vulkan);
}

TEST_CASE("vulkan: OpenGL's kernel comes first, then PM4's, then Vulkan's, on PM4's memory", "[vulkan][exchange]") {
  if (!on_simulated_card()) return;
  support::PluginUnderTest gl_plugin("opengl"), pm4_plugin("amdgpu_pm4");
  const Side vulkan(Vulkan::instance().device(), Dialect::glsl, by_vulkan);
  const Side opengl(same_card(gl_plugin), Dialect::glsl, by_other);
  const Side pm4(same_card(pm4_plugin), Dialect::opencl_c, by_vulkan);
  const auto first = pm4.buffer(BufferUsage::storage), second = pm4.buffer(BufferUsage::storage);
  const auto first_fd = first->export_fd(), second_fd = second->export_fd();
  REQUIRE(first_fd.has_value());
  REQUIRE(second_fd.has_value());
  const auto gl_first = opengl.buffer(BufferUsage::storage, first_fd->get());
  const auto vk_second = vulkan.buffer(BufferUsage::storage, second_fd->get());
  const auto in = opengl.buffer(BufferUsage::upload), out = vulkan.buffer(BufferUsage::readback);
  write(*in, first_words(9));
  order(opengl, opengl.submit(*in, *gl_first), pm4);
  order(pm4, pm4.submit(*first, *second), vulkan);
  vulkan.wait(vulkan.submit(*vk_second, *out));
  CHECK(read(*out) == mixed(mixed(mixed(first_words(9), by_other), by_vulkan), by_vulkan));
}

TEST_CASE("vulkan: an imported buffer outlives its exporter's, and the host writes and reads it",
          "[vulkan][exchange]") {
  if (!on_simulated_card()) return;
  support::PluginUnderTest plugin("amdgpu_pm4");
  const Side vulkan(Vulkan::instance().device(), Dialect::glsl, by_vulkan);
  const Side pm4(same_card(plugin), Dialect::opencl_c, by_other);
  auto shared = pm4.buffer(BufferUsage::storage);
  auto fd = shared->export_fd();
  REQUIRE(fd.has_value());
  const auto imported = vulkan.buffer(BufferUsage::storage, fd->get());
  write(*shared, first_words(3));
  CHECK(read(*imported) == first_words(3));
  write(*imported, first_words(4));
  CHECK(read(*shared) == first_words(4));
  shared = nullptr;
  *fd = UniqueFd();
  const auto out = vulkan.buffer(BufferUsage::readback);
  vulkan.wait(vulkan.submit(*imported, *out));
  CHECK(read(*out) == mixed(first_words(4), by_vulkan));
}

TEST_CASE("vulkan: a part of an imported buffer ends with the imported memory", "[vulkan][exchange]") {
  if (!on_simulated_card()) return;
  const Side vulkan(Vulkan::instance().device(), Dialect::glsl, by_vulkan);
  const auto own = vulkan.buffer(BufferUsage::storage);
  const auto fd = own->export_fd();
  REQUIRE(fd.has_value());
  BufferDesc desc;
  desc.usage = BufferUsage::storage;
  desc.bytes = static_cast<std::uint64_t>(lseek(fd->get(), 0, SEEK_END));  // whole pages
  REQUIRE(desc.bytes >= bytes);
  desc.import_fd = fd->get();
  const auto imported = vulkan.device->create_buffer(desc);
  REQUIRE(imported.has_value());
  desc.import_fd = -1;
  desc.part_of = imported->get();
  const auto part = vulkan.device->create_buffer(desc);
  INFO((part ? std::string() : part.error().text()));
  REQUIRE(part.has_value());
  const auto in = vulkan.buffer(BufferUsage::upload);
  write(*in, first_words(6));
  vulkan.wait(vulkan.submit(*in, **part));
  CHECK(read(*own) == mixed(first_words(6), by_vulkan));
}

TEST_CASE("vulkan: what is no shared memory or fence is refused by type", "[vulkan][exchange]") {
  if (!Vulkan::instance().usable()) return;
  const Side vulkan(Vulkan::instance().device(), Dialect::glsl, by_vulkan);
  Device& device = *vulkan.device;
  const UniqueFd other(dup(2));
  BufferDesc desc;
  desc.bytes = 1 << 20;
  desc.usage = BufferUsage::storage;
  const auto own = device.create_buffer(desc);
  REQUIRE(own.has_value());
  if (device.info().kind == DeviceKind::software) {
    CHECK_FALSE(device.info().shares_memory);
    CHECK((*own)->export_fd().error().code == StatusCode::unsupported);
    desc.import_fd = other.get();
    const auto imported = device.create_buffer(desc);
    REQUIRE_FALSE(imported.has_value());
    CHECK(imported.error().code == StatusCode::unsupported);
    CHECK_THAT(imported.error().message, Catch::Contains(device.info().id));
  }
  if (!on_simulated_card()) return;
  REQUIRE(device.info().shares_memory);
  desc.usage = BufferUsage::upload;
  const auto upload = device.create_buffer(desc);
  REQUIRE(upload.has_value());
  CHECK((*upload)->export_fd().error().code == StatusCode::unsupported);
  desc.usage = BufferUsage::storage;
  const auto fd = (*own)->export_fd();
  REQUIRE(fd.has_value());
  desc.import_fd = fd->get();
  desc.bytes = 2 << 20;
  const auto larger = device.create_buffer(desc);
  REQUIRE_FALSE(larger.has_value());
  CHECK(larger.error().code == StatusCode::invalid_argument);
  CHECK_THAT(larger.error().message, Catch::Contains("2097152"));
  desc.bytes = 4096;
  desc.import_fd = other.get();
  CHECK(device.create_buffer(desc).error().code == StatusCode::invalid_argument);
}

TEST_CASE("vulkan: fences are exported after one that could not be", "[vulkan][exchange]") {
  if (!on_simulated_card()) return;
  const Side vulkan(Vulkan::instance().device(), Dialect::glsl, by_vulkan);
  const auto in = vulkan.buffer(BufferUsage::upload), out = vulkan.buffer(BufferUsage::readback);
  write(*in, first_words(2));
  rlimit usual{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &usual) == 0);
  rlimit none_left = usual;
  none_left.rlim_cur = static_cast<rlim_t>(UniqueFd(dup(2)).get());
  const auto export_with = [&](const rlimit& limit) {
    const std::uint64_t value = vulkan.submit(*in, *out);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    const bool exported = vulkan.fences().export_fence(value).has_value();
    REQUIRE(setrlimit(RLIMIT_NOFILE, &usual) == 0);
    vulkan.wait(value);
    return exported;
  };
  CHECK(export_with(usual));
  CHECK_FALSE(export_with(none_left));
  for (int i = 0; i < 3; ++i) CHECK(export_with(usual));
}

TEST_CASE("vulkan: a fence of no submission, and a descriptor that is no fence", "[vulkan][exchange]") {
  if (!Vulkan::instance().usable()) return;
  auto* const fences = dynamic_cast<FenceExchange*>(Vulkan::instance().device().get());
  REQUIRE(fences != nullptr);
  const UniqueFd other(dup(2));
  const auto never = fences->export_fence(1'000'000);
  REQUIRE_FALSE(never.has_value());
  const Status refused = fences->wait_for_fence(other.get());
  if (never.error().code == StatusCode::unsupported) {
    CHECK(refused.code == StatusCode::unsupported);
    CHECK_FALSE(on_simulated_card());
    return;
  }
  CHECK(never.error().code == StatusCode::not_found);
  CHECK(refused.code == StatusCode::invalid_argument);
  CHECK_THAT(refused.message, Catch::Contains("descriptor " + std::to_string(other.get())));
}

}  // namespace kiln::vulkan
