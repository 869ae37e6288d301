// One memory between two APIs in one process: the PM4 device exports, radeonsi on the same simulated card imports, and
// what a kernel of either stored is what a kernel of the other loads, bit for bit. A fence of the one that wrote,
// waited for by the host, orders the two; nobody else flushes a cache. Words, not floats: every bit pattern occurs,
// NaNs too.
#include <unistd.h>
#include <catch2/catch.hpp>

#include <cstdlib>

#include "support/plugin_under_test.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint32_t groups = 65, lanes = 64,
                        words = groups * lanes;  // of several pages, and no whole one at the end

// y[i] = x[i] * odd + i: undone by none of the others, so a pass that did nothing or came twice is seen.
constexpr std::uint32_t by_pm4 = 2654435761, by_gl = 2246822519;

std::uint32_t mixed(std::uint32_t x, std::uint32_t odd, std::uint32_t i) { return (x ^ x >> 15) * odd + i; }

KernelSource source_of(Dialect dialect, std::uint32_t odd) {
  KernelSource source;
  source.dialect = dialect;
  source.text = dialect == Dialect::opencl_c ? R"(
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void work(global const uint* x, global uint* y) {
  const uint i = get_global_id(0);
  y[i] = (x[i] ^ x[i] >> 15) * ODD + i;
}
)"
                                             : R"(
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) writeonly buffer Y { uint y[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  y[i] = (x[i] ^ x[i] >> 15) * ODD + i;
}
)";
  if (dialect == Dialect::opencl_c) source.entry = "work";
  source.constants = {{"ODD", std::to_string(odd) + "u"}};
  source.bindings = {Access::read, Access::write};
  source.workgroup = {lanes, 1, 1};
  return source;
}

// A device with the kernel that mixes by its own factor.
struct Side {
  std::shared_ptr<Device> device;
  std::uint32_t odd = 0;
  std::unique_ptr<Program> program;

  Side(std::shared_ptr<Device> on, Dialect dialect, std::uint32_t factor) : device(std::move(on)), odd(factor) {
    auto built = device->build(source_of(dialect, odd));
    INFO((built ? std::string() : built.error().text()));
    REQUIRE(built.has_value());
    program = std::move(built).value();
  }

  std::unique_ptr<Buffer> buffer(BufferUsage usage, int import_fd = -1) const {
    BufferDesc desc;
    desc.bytes = words * sizeof(std::uint32_t);
    desc.usage = usage;
    desc.import_fd = import_fd;
    auto made = device->create_buffer(desc);
    INFO((made ? std::string() : made.error().text()));
    REQUIRE(made.has_value());
    return std::move(made).value();
  }
  // Ended when it returns: the fence has passed.
  void run(Buffer& from, Buffer& to) const {
    Buffer* const bindings[] = {&from, &to};
    const PassLaunch launch{program.get(), bindings, {groups, 1, 1}};
    const auto value = device->submit({{&launch, 1}});
    INFO((value ? std::string() : value.error().text()));
    REQUIRE(value.has_value());
    const auto fence = device->wait(*value, Deadline::after(std::chrono::seconds(60)));
    INFO((fence ? std::string() : fence.error().text()));
    REQUIRE(fence.has_value());
  }
};

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

// The first usable device of that kind; null with a warning where there is none. Simulated devices are of this test
// alone: real cards are left in peace.
std::shared_ptr<Device> open(support::PluginUnderTest& plugin, DeviceKind kind, const char* what) {
  std::string there;
  for (const DeviceInfo& info : plugin.driver().enumerate()) {
    if (info.usable && info.kind == kind) return plugin.open(info.id);
    there += "; " + info.id + " is " + (info.usable ? std::string(to_string(info.kind)) : info.why_not);
  }
  // `kiln simulate` sets it, and promises a device to both plugins.
  if (kind == DeviceKind::simulated && std::getenv("KILN_SIM_TARGET") != nullptr) FAIL("no " << what << there);
  WARN("skipped: no " << what << there);
  return nullptr;
}

}  // namespace

TEST_CASE("interop: what a PM4 kernel writes OpenGL's kernel reads, and the other way, in one memory") {
  support::PluginUnderTest plugin("amdgpu_pm4"), opengl("opengl");
  const auto card = open(plugin, DeviceKind::simulated, "simulated AMD device");
  if (card == nullptr) return;
  const auto same_card = open(opengl, DeviceKind::simulated, "OpenGL on the simulated device");
  REQUIRE(card->info().shares_memory);
  REQUIRE(same_card->info().shares_memory);
  CHECK(card->info().physical_id == same_card->info().physical_id);
  const Side pm4(card, Dialect::opencl_c, by_pm4), gl(same_card, Dialect::glsl, by_gl);

  const auto shared = pm4.buffer(BufferUsage::storage);
  auto fd = shared->export_fd();
  REQUIRE(fd.has_value());
  const auto imported = gl.buffer(BufferUsage::storage, fd->get());
  *fd = UniqueFd();  // the importer has a descriptor of its own
  const auto pm4_in = pm4.buffer(BufferUsage::upload), pm4_out = pm4.buffer(BufferUsage::readback);
  const auto gl_in = gl.buffer(BufferUsage::upload), gl_out = gl.buffer(BufferUsage::readback);

  // Three times with other words: the second and third find the caches full of what was there before.
  for (std::uint32_t round = 1; round <= 3; ++round) {
    INFO("round " << round);
    const auto first = first_words(round), second = first_words(round + 100);
    write(*pm4_in, first);
    pm4.run(*pm4_in, *shared);
    gl.run(*imported, *gl_out);
    CHECK(read(*gl_out) == mixed(mixed(first, by_pm4), by_gl));

    write(*gl_in, second);
    gl.run(*gl_in, *imported);
    pm4.run(*shared, *pm4_out);
    CHECK(read(*pm4_out) == mixed(mixed(second, by_gl), by_pm4));
    CHECK(read(*shared) == mixed(second, by_gl));    // by the exporter's mapping
    CHECK(read(*imported) == mixed(second, by_gl));  // by the importer's copies
  }
}

TEST_CASE("interop: the importer keeps the memory when the exporter's buffer is gone") {
  support::PluginUnderTest plugin("amdgpu_pm4"), opengl("opengl");
  const auto card = open(plugin, DeviceKind::simulated, "simulated AMD device");
  if (card == nullptr) return;
  const auto same_card = open(opengl, DeviceKind::simulated, "OpenGL on the simulated device");
  const Side pm4(card, Dialect::opencl_c, by_pm4), gl(same_card, Dialect::glsl, by_gl);
  const auto in = pm4.buffer(BufferUsage::upload);
  write(*in, first_words(7));
  auto shared = pm4.buffer(BufferUsage::storage);
  pm4.run(*in, *shared);
  auto fd = shared->export_fd();
  REQUIRE(fd.has_value());
  const auto imported = gl.buffer(BufferUsage::storage, fd->get());
  shared = nullptr;
  *fd = UniqueFd();
  const auto out = gl.buffer(BufferUsage::readback);
  gl.run(*imported, *out);
  CHECK(read(*out) == mixed(mixed(first_words(7), by_pm4), by_gl));
}

TEST_CASE("interop: importing more than the memory holds is refused with both sizes") {
  support::PluginUnderTest plugin("amdgpu_pm4"), opengl("opengl");
  const auto card = open(plugin, DeviceKind::simulated, "simulated AMD device");
  if (card == nullptr) return;
  const auto same_card = open(opengl, DeviceKind::simulated, "OpenGL on the simulated device");
  BufferDesc desc;
  desc.bytes = 1 << 16;
  desc.usage = BufferUsage::storage;
  const auto shared = card->create_buffer(desc);
  REQUIRE(shared.has_value());
  const auto fd = (*shared)->export_fd();
  REQUIRE(fd.has_value());
  desc.import_fd = fd->get();
  desc.bytes = 1 << 20;
  for (Device* device : {card.get(), same_card.get()}) {
    const auto imported = device->create_buffer(desc);
    REQUIRE_FALSE(imported.has_value());
    INFO(imported.error().text());
    CHECK(imported.error().code == StatusCode::invalid_argument);
    CHECK_THAT(imported.error().message, Catch::Contains("65536") && Catch::Contains("1048576"));
  }
}

TEST_CASE("interop: a software renderer imports nothing, and says so by type") {
  support::PluginUnderTest plugin("amdgpu_pm4"), opengl("opengl");
  const auto software = open(opengl, DeviceKind::software, "software renderer");
  if (software == nullptr) return;
  CHECK_FALSE(software->info().shares_memory);
  // A dma-buf where there is a card to make one; else any descriptor.
  BufferDesc desc;
  desc.bytes = 4096;
  desc.usage = BufferUsage::storage;
  UniqueFd fd(dup(2));
  std::shared_ptr<Device> card;
  std::unique_ptr<Buffer> shared;
  for (const DeviceInfo& info : plugin.driver().enumerate()) {
    if (!info.usable || info.kind != DeviceKind::simulated) continue;
    card = plugin.open(info.id);
    shared = card->create_buffer(desc).value();
    fd = shared->export_fd().value();
    break;
  }
  desc.import_fd = fd.get();
  const auto imported = software->create_buffer(desc);
  REQUIRE_FALSE(imported.has_value());
  INFO(imported.error().text());
  CHECK(imported.error().code == StatusCode::unsupported);
  CHECK_THAT(imported.error().message, Catch::Contains(software->info().id) && Catch::Contains("cannot be imported"));
}

}  // namespace kiln::amdgpu_pm4
