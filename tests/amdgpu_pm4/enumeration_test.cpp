#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "amdgpu_pm4/driver.hpp"
#include "amdgpu_pm4/libdrm_nodes.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr const char* runs_nothing = "this version of the plugin enumerates AMD devices but does not run kernels yet";

// Nodes that tests invent, and what was asked of each.
struct FakeNodes {
  std::vector<RenderNode> nodes;
  std::map<std::string, NodeVersion> versions;  // a node without one refuses to be opened
  std::map<std::string, GpuFacts> facts;        // a node without them cannot be initialized
  Status listing;
  std::vector<std::string> opened, initialized;

  void add(const std::string& path, const std::string& driver = "amdgpu", const std::string& description = "AMD GPU") {
    nodes.push_back({path, 0x1002, 0x744c, "0000:03:00.0"});
    versions[path] = {driver, "3.49.0", description};
    facts[path] = {"AMD Radeon RX 7900 XTX", 145, 1, 96};
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
            [this](const RenderNode& node) -> Result<GpuFacts> {
              initialized.push_back(node.path);
              const auto at = facts.find(node.path);
              if (at == facts.end()) return unavailable(node.path + ": amdgpu_device_initialize: No such device");
              return at->second;
            }};
  }
};

struct Lines final : LogSink {
  void write(LogLevel level, std::string_view component, std::string_view message) noexcept override {
    all.push_back(std::string(to_string(level)) + " " + std::string(component) + ": " + std::string(message));
  }
  std::vector<std::string> all;
};

std::vector<DeviceInfo> enumerate(FakeNodes& fake, Hardware hardware = Hardware::untouched) {
  return AmdgpuDriver(fake.source(), hardware, {}).enumerate();
}

}  // namespace

TEST_CASE("amdgpu_pm4: without an AMD node there is one entry that says so") {
  FakeNodes fake;
  fake.nodes.push_back({"/dev/dri/renderD128", 0x10de, 0x2335, "0000:01:00.0"});
  Lines lines;
  AmdgpuDriver driver(fake.source(), Hardware::opted_in, {&lines, LogLevel::info});
  const auto devices = driver.enumerate();
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].id == "amdgpu:0");
  CHECK(devices[0].kind == DeviceKind::gpu);
  CHECK(devices[0].name == "none");
  CHECK_FALSE(devices[0].usable);
  CHECK(devices[0].why_not == "no AMD render node: /dev/dri has no device with vendor 0x1002");
  CHECK(lines.all == std::vector<std::string>{"info amdgpu_pm4: no AMD render node"});
  CHECK(fake.opened.empty());  // another vendor's node is left alone
  CHECK(fake.initialized.empty());
  const auto device = driver.open("amdgpu:0");
  REQUIRE_FALSE(device.has_value());
  CHECK(device.error().code == StatusCode::unavailable);
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
  CHECK(devices[0].why_not == runs_nothing);
  CHECK(fake.initialized.empty());
}

TEST_CASE("amdgpu_pm4: with the opt-in a real node tells its name") {
  FakeNodes fake;
  fake.add("/dev/dri/renderD128");
  const auto devices = enumerate(fake, Hardware::opted_in);
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].name == "AMD Radeon RX 7900 XTX (family 145, revision 1, 96 compute units)");
  CHECK(devices[0].why_not == runs_nothing);
  CHECK(fake.initialized == std::vector<std::string>{"/dev/dri/renderD128"});

  fake.facts.clear();
  CHECK(enumerate(fake, Hardware::opted_in)[0].why_not ==
        "/dev/dri/renderD128: amdgpu_device_initialize: No such device");
  fake.facts["/dev/dri/renderD128"] = {};
  CHECK_THAT(enumerate(fake, Hardware::opted_in)[0].name, Catch::StartsWith("AMD device 1002:744c at 0000:03:00.0"));
}

TEST_CASE("amdgpu_pm4: the opt-in is read from the plugin's section") {
  CHECK(hardware_of({}) == Hardware::untouched);
  CHECK(hardware_of({{"hardware", false}}) == Hardware::untouched);
  CHECK(hardware_of({{"hardware", true}}) == Hardware::opted_in);
}

TEST_CASE("amdgpu_pm4: a simulated node needs no opt-in and is told apart") {
  FakeNodes fake;
  fake.add("/dev/dri/renderD128", "amdgpu", "AMD GPU (kiln-simulated)");
  fake.add("/dev/dri/renderD129");
  const auto devices = enumerate(fake);
  REQUIRE(devices.size() == 2);
  CHECK(devices[0].kind == DeviceKind::simulated);
  CHECK_THAT(devices[0].name, Catch::StartsWith("AMD Radeon RX 7900 XTX"));
  CHECK(devices[1].kind == DeviceKind::gpu);
  CHECK(fake.initialized == std::vector<std::string>{"/dev/dri/renderD128"});
  for (const DeviceInfo& info : devices) CHECK(info.why_not == runs_nothing);
}

TEST_CASE("amdgpu_pm4: a node that may not be opened is listed with the system's reason") {
  FakeNodes fake;
  fake.add("/dev/dri/renderD128");
  fake.versions.clear();
  const auto devices = enumerate(fake, Hardware::opted_in);
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].why_not == "/dev/dri/renderD128: cannot be opened: Permission denied");
  CHECK(fake.initialized.empty());
  const auto device = AmdgpuDriver(fake.source(), Hardware::opted_in, {}).open("amdgpu:0");
  REQUIRE_FALSE(device.has_value());
  CHECK(device.error().code == StatusCode::unavailable);
  CHECK_THAT(device.error().message, Catch::Contains("Permission denied"));
}

TEST_CASE("amdgpu_pm4: a node of the older radeon driver is not initialized") {
  FakeNodes fake;
  fake.add("/dev/dri/renderD128", "radeon", "ATI Radeon");
  const auto devices = enumerate(fake, Hardware::opted_in);
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].why_not == "/dev/dri/renderD128: its kernel driver is radeon, expected amdgpu");
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

TEST_CASE("amdgpu_pm4: opening answers a typed error") {
  FakeNodes fake;
  fake.add("/dev/dri/renderD128");
  AmdgpuDriver driver(fake.source(), Hardware::untouched, {});
  const auto device = driver.open("amdgpu:0");
  REQUIRE_FALSE(device.has_value());
  CHECK(device.error().code == StatusCode::unsupported);
  CHECK(device.error().message == std::string("amdgpu:0: ") + runs_nothing);
  const auto missing = driver.open("amdgpu:7");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == StatusCode::not_found);
  CHECK(missing.error().message == "device 'amdgpu:7': there is amdgpu:0");
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
  CHECK_FALSE(system.query({"/dev/null", 0x1002, 0, ""}).has_value());
}

}  // namespace kiln::amdgpu_pm4
