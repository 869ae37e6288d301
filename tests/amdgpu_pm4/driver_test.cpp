#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "amdgpu_pm4/driver.hpp"
#include "amdgpu_pm4/winsys/drm_winsys.hpp"
#include "device/fake_winsys.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// Nodes that tests invent, and what was asked of each.
struct FakeNodes {
  std::vector<RenderNode> nodes;
  std::map<std::string, NodeVersion> versions;  // a node without one refuses to be opened
  std::map<std::string, NodeFacts> facts;       // a node without them cannot be initialized
  Status listing;
  std::vector<std::string> opened, initialized;

  void add(const std::string& path, const std::string& driver = "amdgpu", const std::string& description = "AMD GPU") {
    nodes.push_back({path, 0x1002, 0x744c, "0000:03:00.0"});
    versions[path] = {driver, "3.49.0", description};
    facts[path] = fake::navi31_facts();
    facts[path].path = path;
  }

  NodeSource source() {
    return {[this]() -> Result<std::vector<RenderNode>> {
              if (!listing.ok()) return listing;
              return nodes;
            },
            [this](const RenderNode& node) -> Result<NodeVersion> {
              opened.push_back(node.path);
              const auto at = versions.find(node.path);
              if (at == versions.end()) return unavailable(node.path + ": cannot be opened: Permission denied");
              return at->second;
            },
            [this](const RenderNode& node) -> Result<std::unique_ptr<Winsys>> {
              initialized.push_back(node.path);
              const auto at = facts.find(node.path);
              if (at == facts.end()) return unavailable(node.path + ": amdgpu_device_initialize: No such device");
              return fake::make_winsys(std::make_shared<fake::Gpu>(), at->second);
            }};
  }
};

struct Lines final : LogSink {
  void write(LogLevel level, std::string_view component, std::string_view message) noexcept override {
    all.push_back(std::string(to_string(level)) + " " + std::string(component) + ": " + std::string(message));
  }
  std::vector<std::string> all;
};

Compiler no_compiler() {
  return {"none", [](const KernelSource&, Target) -> Result<std::vector<std::byte>> { return unavailable("none"); }};
}

constexpr Hardware untouched = Hardware::untouched, opted_in = Hardware::opted_in;

struct Subject {
  WorkCounters counters;
  AmdgpuDriver driver;

  explicit Subject(FakeNodes& fake, Hardware hardware = untouched, Log log = {})
      : driver(fake.source(), &no_compiler,
               DriverContext{log, &counters, {}, nullptr, {{"hardware", hardware == opted_in}}}) {}
};

std::vector<DeviceInfo> enumerate(FakeNodes& fake, Hardware hardware = untouched) {
  return Subject(fake, hardware).driver.enumerate();
}

constexpr const char* left_alone =
    "/dev/dri/renderD128: the plugin does not use real hardware, because it is tested only in simulation. To allow it, "
    "set [plugin.amdgpu_pm4] hardware = true";

}  // namespace

TEST_CASE("amdgpu_pm4: without an AMD node there is one entry that says so") {
  FakeNodes fake;
  fake.nodes.push_back({"/dev/dri/renderD128", 0x10de, 0x2335, "0000:01:00.0"});
  Lines lines;
  Subject subject(fake, opted_in, {&lines, LogLevel::info});
  const auto devices = subject.driver.enumerate();
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].id == "amdgpu:0");
  CHECK(devices[0].kind == DeviceKind::gpu);
  CHECK(devices[0].name == "none");
  CHECK_FALSE(devices[0].usable);
  CHECK(devices[0].why_not == "no AMD render node: /dev/dri has no device with vendor 0x1002");
  CHECK(lines.all == std::vector<std::string>{"info amdgpu_pm4: no AMD render node"});
  CHECK(fake.opened.empty());  // another vendor's node is left alone
  CHECK(fake.initialized.empty());
  const auto device = subject.driver.open("amdgpu:0");
  REQUIRE_FALSE(device.has_value());
  CHECK(device.error().code == StatusCode::unavailable);
  CHECK(subject.driver.open("amdgpu:1").error().code == StatusCode::not_found);
}

TEST_CASE("amdgpu_pm4: a real node is listed and not initialized without the opt-in") {
  FakeNodes fake;
  fake.add("/dev/dri/renderD128");
  const auto devices = enumerate(fake);
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].id == "amdgpu:0");
  CHECK(devices[0].kind == DeviceKind::gpu);
  CHECK(devices[0].physical_id == "pci:0000:03:00.0");  // what the OpenGL plugin calls the same card
  CHECK(devices[0].name == "AMD device 1002:744c at 0000:03:00.0");
  CHECK(devices[0].driver == "amdgpu 3.49.0 (AMD GPU)");
  CHECK_FALSE(devices[0].usable);
  CHECK(devices[0].why_not == left_alone);
  CHECK(fake.initialized.empty());
}

TEST_CASE("amdgpu_pm4: with the opt-in a real node tells its name") {
  FakeNodes fake;
  fake.add("/dev/dri/renderD128");
  const auto devices = enumerate(fake, opted_in);
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].name == "AMD Radeon RX 7900 XTX (gfx1100, 96 compute units)");
  CHECK(devices[0].usable);
  CHECK(devices[0].why_not == "");
  CHECK(devices[0].physical_id == "pci:0000:03:00.0");
  CHECK(devices[0].roof_gflops == Approx(2 * 96 * 128 * 2.371));
  CHECK(fake.initialized == std::vector<std::string>{"/dev/dri/renderD128"});

  fake.facts.clear();
  CHECK(enumerate(fake, opted_in)[0].why_not == "/dev/dri/renderD128: amdgpu_device_initialize: No such device");
  fake.facts["/dev/dri/renderD128"] = {};
  const auto unknown = enumerate(fake, opted_in);
  CHECK(unknown[0].name == "AMD device 1002:744c at 0000:03:00.0");
  CHECK_FALSE(unknown[0].usable);
  CHECK(unknown[0].why_not == "/dev/dri/renderD128: unknown chip: family 0, revision 0, expected gfx10.3 or gfx11");
}

TEST_CASE("amdgpu_pm4: the opt-in is read from the plugin's section") {
  CHECK(hardware_of({}) == Hardware::untouched);
  CHECK(hardware_of({{"hardware", false}}) == untouched);
  CHECK(hardware_of({{"hardware", true}}) == opted_in);
}

TEST_CASE("amdgpu_pm4: a simulated node needs no opt-in and is told apart") {
  FakeNodes fake;
  fake.add("/dev/dri/renderD128", "amdgpu", "AMD GPU (kiln-simulated)");
  fake.add("/dev/dri/renderD129");
  const auto devices = enumerate(fake);
  REQUIRE(devices.size() == 2);
  CHECK(devices[0].kind == DeviceKind::simulated);
  CHECK(devices[0].usable);
  CHECK(devices[0].shared_resource == "host-cores");
  CHECK(devices[0].roof_gflops == 0);  // the host's cores are no GPU
  CHECK_THAT(devices[0].name, Catch::StartsWith("AMD Radeon RX 7900 XTX"));
  CHECK(devices[1].kind == DeviceKind::gpu);
  CHECK_FALSE(devices[1].usable);
  CHECK(fake.initialized == std::vector<std::string>{"/dev/dri/renderD128"});
}

TEST_CASE("amdgpu_pm4: a node that may not be opened is listed with the system's reason") {
  FakeNodes fake;
  fake.add("/dev/dri/renderD128");
  fake.versions.clear();
  const auto devices = enumerate(fake, opted_in);
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].why_not == "/dev/dri/renderD128: cannot be opened: Permission denied");
  CHECK(devices[0].kind == DeviceKind::gpu);
  CHECK(devices[0].driver == "unknown");
  CHECK(fake.initialized.empty());
  const auto device = Subject(fake, opted_in).driver.open("amdgpu:0");
  REQUIRE_FALSE(device.has_value());
  CHECK(device.error().code == StatusCode::unavailable);
  CHECK_THAT(device.error().message, Catch::Contains("Permission denied"));
}

TEST_CASE("amdgpu_pm4: a node of the older radeon driver is not initialized") {
  FakeNodes fake;
  fake.add("/dev/dri/renderD128", "radeon", "ATI Radeon");
  const auto devices = enumerate(fake, opted_in);
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].why_not == "/dev/dri/renderD128: kernel driver is radeon, expected amdgpu");
  CHECK(fake.initialized.empty());
}

TEST_CASE("amdgpu_pm4: ids follow the nodes' order, whatever order the system lists them in") {
  FakeNodes fake;
  fake.add("/dev/dri/renderD130");
  fake.add("/dev/dri/renderD99");
  fake.add("/dev/dri/renderD128");
  enumerate(fake);
  CHECK(fake.opened == std::vector<std::string>{"/dev/dri/renderD99", "/dev/dri/renderD128", "/dev/dri/renderD130"});
  const auto devices = enumerate(fake);
  REQUIRE(devices.size() == 3);
  CHECK(devices[2].id == "amdgpu:2");
}

TEST_CASE("amdgpu_pm4: a real node is not opened without the opt-in, and another id is not found") {
  FakeNodes fake;
  fake.add("/dev/dri/renderD128");
  Subject subject(fake);
  const auto device = subject.driver.open("amdgpu:0");
  REQUIRE_FALSE(device.has_value());
  CHECK(device.error().code == StatusCode::unsupported);
  CHECK(device.error().message == std::string("amdgpu:0: ") + left_alone);
  CHECK(fake.initialized.empty());
  const auto missing = subject.driver.open("amdgpu:7");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == StatusCode::not_found);
  CHECK(missing.error().message == "device 'amdgpu:7': expected one of amdgpu:0");
}

TEST_CASE("amdgpu_pm4: an opened device tells its identity, and what compiles for it") {
  FakeNodes fake;
  fake.add("/dev/dri/renderD128", "amdgpu", "AMD GPU (kiln-simulated)");
  Subject subject(fake);
  const auto device = subject.driver.open("amdgpu:0");
  REQUIRE(device.has_value());
  const DeviceInfo& info = (*device)->info();
  CHECK(info.id == "amdgpu:0");
  CHECK(info.usable);
  const auto value = [](const auto& identity, const std::string& name) {
    for (const auto& [key, text] : identity) {
      if (key == name) return text;
    }
    return std::string("(absent)");
  };
  CHECK(value(info.device_identity, "target") == "gfx1100");
  CHECK(value(info.speed_identity, "compute_units") == "96");
  CHECK(value(info.speed_identity, "kernel") == "amdgpu 3.49.0");
  CHECK(value(info.speed_identity, "libdrm") == "fake");
  CHECK(value(info.driver_identity, "toolchain") == "none");
  CHECK(info.dialects == std::vector<Dialect>{Dialect::opencl_c, Dialect::code_object});
  CHECK(info.serializes);
  CHECK(info.shares_memory);
  CHECK(info.shares_buffers);
  CHECK_FALSE(info.wraps_host_memory);
  CHECK_FALSE(info.runs_chains);
  CHECK_FALSE(info.indirect_grids);
  CHECK_FALSE(info.builds_apart);
  CHECK(info.max_grid == std::array<std::uint32_t, 3>{2147483647, 65535, 65535});
  CHECK(info.max_workgroup == std::array<std::uint32_t, 3>{1024, 1024, 1024});
  CHECK(info.max_workgroup_lanes == 1024);
  CHECK(info.max_bindings == 64);
  CHECK(info.max_buffer_bytes == 12ull << 30);  // what system memory holds: results lie there
  CHECK(info.max_shared_bytes == 65536);
  CHECK(info.simd_lanes == 32);
  CHECK(info.driver_cache == "none");
}

TEST_CASE("amdgpu_pm4: a system that cannot list its nodes says why") {
  FakeNodes fake;
  fake.listing = io_error("drmGetDevices2: Input/output error");
  const auto devices = enumerate(fake);
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].why_not == "the render nodes cannot be listed: drmGetDevices2: Input/output error");
}

TEST_CASE("amdgpu_pm4: libdrm refuses a node that is none with the system's words") {
  const NodeSource system = libdrm_nodes();
  REQUIRE(system.list().has_value());
  const auto missing = system.version({"/dev/dri/no such node", 0x1002, 0, ""});
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == StatusCode::unavailable);
  CHECK_THAT(missing.error().message, Catch::Contains("/dev/dri/no such node") && Catch::Contains("No such file"));
  const auto foreign = system.version({"/dev/null", 0x1002, 0, ""});
  REQUIRE_FALSE(foreign.has_value());
  CHECK(foreign.error().code == StatusCode::unavailable);
}

}  // namespace kiln::amdgpu_pm4
