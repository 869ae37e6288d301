#include "conformance/subject.hpp"

#include <catch2/catch.hpp>

#include "support/plugin_under_test.hpp"

namespace kiln::conformance {
namespace {

struct Amdgpu {
  support::PluginUnderTest plugin{"amdgpu_pm4"};
  Subject subject;

  Amdgpu() {
    subject.driver = &plugin.driver();
    subject.counters = &plugin.counters();
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

TEST_CASE("amdgpu_pm4: the plugin publishes its opt-in, off, and a driver that answers on any machine") {
  support::PluginUnderTest plugin("amdgpu_pm4");
  const auto keys = plugin.registry().config_keys().find("amdgpu_pm4");
  REQUIRE(keys != plugin.registry().config_keys().end());
  REQUIRE(keys->second.size() == 1);
  CHECK(keys->second.front().name == "hardware");
  CHECK(keys->second.front().type == ConfigType::boolean);
  CHECK(std::get<bool>(keys->second.front().fallback) == false);
  CHECK_FALSE(keys->second.front().help.empty());
  const auto devices = plugin.driver().enumerate();
  REQUIRE_FALSE(devices.empty());
  for (const DeviceInfo& info : devices) {
    CHECK_FALSE(info.usable);
    CHECK_FALSE(info.why_not.empty());
    const auto device = plugin.driver().open(info.id);
    REQUIRE_FALSE(device.has_value());
    CHECK((device.error().code == StatusCode::unsupported || device.error().code == StatusCode::unavailable));
    CHECK_THAT(device.error().message, Catch::Contains(info.why_not));
  }
}

}  // namespace kiln::conformance
