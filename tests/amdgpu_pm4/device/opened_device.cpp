#include "device/opened_device.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "amdgpu_pm4/device/program.hpp"
#include "amdgpu_pm4/toolchain/toolchain.hpp"
#include "amdgpu_pm4/winsys/drm_winsys.hpp"
#include "winsys/simulated_node.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

Result<std::unique_ptr<Toolchain>> toolchain() {
  ToolchainSettings settings;
  settings.place = CompilerPlace::child;  // the module stands beside the plugin, not beside a test
  return open_toolchain(settings, nullptr, {});
}

}  // namespace

std::optional<std::vector<std::byte>> MapNotes::find(std::string_view name) noexcept {
  const auto at = kept.find(std::string(name));
  if (at == kept.end()) return std::nullopt;
  return at->second;
}

void MapNotes::keep(std::string_view name, std::span<const std::byte> bytes) noexcept {
  kept[std::string(name)] = {bytes.begin(), bytes.end()};
}

bool OpenedDevice::possible() {
  if (simulated_node().empty()) return false;
  const auto compiler = toolchain();
  if (!compiler) WARN("skipped: " << compiler.error().text());
  return compiler.has_value();
}

void OpenedDevice::reopen() {
  device = nullptr;
  DeviceParts parts;
  parts.id = "amdgpu:0";
  const RenderNode node{simulated_node(), 0x1002, 0, ""};
  auto version = libdrm_nodes().version(node);
  REQUIRE(version.has_value());
  parts.version = std::move(version).value();
  auto winsys = DrmWinsys::open(node.path);
  REQUIRE(winsys.has_value());
  parts.winsys = std::move(winsys).value();
  auto compiler = toolchain();
  REQUIRE(compiler.has_value());
  parts.compiler = compiler_of(std::shared_ptr<Toolchain>(std::move(compiler).value()), std::chrono::seconds(120));
  parts.counters = &counters;
  parts.notes = &notes;
  auto opened = Pm4Device::open(std::move(parts));
  INFO((opened ? std::string() : opened.error().text()));
  REQUIRE(opened.has_value());
  device = std::move(opened).value();
}

std::unique_ptr<Program> OpenedDevice::build(const KernelSource& source) {
  auto program = device->build(source);
  INFO((program ? std::string() : program.error().text()));
  REQUIRE(program.has_value());
  return std::move(program).value();
}

std::unique_ptr<Buffer> OpenedDevice::buffer(BufferUsage usage, std::span<const float> values) {
  BufferDesc desc;
  desc.bytes = values.size_bytes();
  desc.usage = usage;
  auto made = device->create_buffer(desc);
  INFO((made ? std::string() : made.error().text()));
  REQUIRE(made.has_value());
  REQUIRE((*made)->write(0, std::as_bytes(values)).ok());
  return std::move(made).value();
}

std::unique_ptr<Buffer> OpenedDevice::import(int fd, std::uint64_t bytes) {
  BufferDesc desc;
  desc.bytes = bytes;
  desc.usage = BufferUsage::storage;
  desc.import_fd = fd;
  auto made = device->create_buffer(desc);
  INFO((made ? std::string() : made.error().text()));
  REQUIRE(made.has_value());
  return std::move(made).value();
}

Status OpenedDevice::run(const Program& program, const std::vector<Buffer*>& bindings, std::uint32_t groups) {
  const PassLaunch launch{&program, bindings, {groups, 1, 1}};
  const auto value = device->submit({{&launch, 1}});
  if (!value) return value.error();
  const auto result = device->wait(*value, Deadline::after(std::chrono::seconds(60)));
  return result ? ok_status() : result.error();
}

std::vector<float> OpenedDevice::read(Buffer& buffer) {
  std::vector<float> values(buffer.bytes() / sizeof(float));
  REQUIRE(buffer.read(0, std::as_writable_bytes(std::span(values))).ok());
  return values;
}

KernelSource kernel_of(std::string text, std::vector<Access> bindings) {
  KernelSource source;
  source.dialect = Dialect::opencl_c;
  source.text = std::move(text);
  source.entry = "work";
  source.bindings = std::move(bindings);
  source.workgroup = {64, 1, 1};
  return source;
}

KernelSource saxpy(const std::string& a) {
  KernelSource source = kernel_of(R"(
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void work(global const float* x, global float* y) {
  const uint i = get_global_id(0);
  y[i] = A * x[i] + y[i];
}
)",
                                  {Access::read, Access::read_write});
  source.constants = {{"A", a}};
  return source;
}

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

std::unique_ptr<Device> open_on(const std::shared_ptr<fake::Gpu>& gpu, WorkCounters& counters, const std::string& id,
                                const std::string& compiler, decltype(DeviceParts{}.compiler.compile) compile) {
  DeviceParts parts;
  parts.id = id;
  parts.version = {"amdgpu", "3.49.0", "AMD GPU"};
  parts.winsys = fake::make_winsys(gpu);
  parts.compiler.identity = compiler;
  parts.compiler.compile = std::move(compile);
  parts.counters = &counters;
  auto opened = Pm4Device::open(std::move(parts));
  INFO((opened ? std::string() : opened.error().text()));
  REQUIRE(opened.has_value());
  return std::move(opened).value();
}

}  // namespace kiln::amdgpu_pm4
