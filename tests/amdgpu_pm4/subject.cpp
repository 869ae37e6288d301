// The conformance library's subject: the first AMD device that is usable without an opt-in, which is a simulated one,
// with the generator of dynamic_shaders.
#include "conformance/subject.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "support/plugin_under_test.hpp"

namespace kiln::conformance {
namespace {

struct Amdgpu {
  support::PluginUnderTest plugin{"amdgpu_pm4"};
  support::PluginUnderTest shaders{"dynamic_shaders"};
  Subject subject;

  Amdgpu() {
    subject.driver = &plugin.driver();
    subject.counters = &plugin.counters();
    subject.dialect = Dialect::opencl_c;
    auto generators = shaders.registry().generators("dynamic_shaders");
    if (!generators) throw std::runtime_error(generators.error().text());
    auto made = generators->front()->make({});
    if (!made) throw std::runtime_error(made.error().text());
    subject.generator = std::move(made).value();
    for (const DeviceInfo& info : plugin.driver().enumerate()) {
      if (info.usable) subject.device = plugin.open(info.id);
      if (info.usable) return;
      subject.absent += (subject.absent.empty() ? "" : "; ") + info.id + ": " + info.why_not;
    }
  }
};

}  // namespace

Subject& subject() {
  static Amdgpu amdgpu;
  return amdgpu.subject;
}

TEST_CASE("amdgpu_pm4: the plugin publishes its opt-in, off") {
  support::PluginUnderTest plugin("amdgpu_pm4");
  const auto keys = plugin.registry().config_keys().find("amdgpu_pm4");
  REQUIRE(keys != plugin.registry().config_keys().end());
  REQUIRE_FALSE(keys->second.empty());
  CHECK(keys->second.front().name == "hardware");
  CHECK(keys->second.front().type == ConfigType::boolean);
  CHECK(std::get<bool>(keys->second.front().fallback) == false);
  for (const ConfigKey& key : keys->second) CHECK_FALSE(key.help.empty());
}

TEST_CASE("amdgpu_pm4: its driver answers on any machine, and opens what it calls usable") {
  support::PluginUnderTest plugin("amdgpu_pm4");
  const auto devices = plugin.driver().enumerate();
  REQUIRE_FALSE(devices.empty());
  for (const DeviceInfo& info : devices) {
    INFO(info.id << ": " << info.why_not);
    const auto device = plugin.driver().open(info.id);
    CHECK(device.has_value() == info.usable);
    if (info.usable) {
      CHECK(info.kind == DeviceKind::simulated);  // nothing else without the opt-in
      continue;
    }
    CHECK((device.error().code == StatusCode::unsupported || device.error().code == StatusCode::unavailable));
    CHECK_THAT(device.error().message, Catch::Contains(info.why_not));
  }
}

}  // namespace kiln::conformance
