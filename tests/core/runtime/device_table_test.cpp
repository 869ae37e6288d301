// Which driver a device id belongs to.
#include "core/runtime/runtime_fixture.hpp"

#include "support/fixture_driver.hpp"

#include <catch2/catch.hpp>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

// Driver "gamma" of the plugin "second": its one device says that it is "alpha".
support::FixtureOptions add_second_alpha(RuntimeFixture& fixture) {
  support::FixtureOptions options;
  options.info = support::fixture_info("alpha");
  options.info.dialects = {Dialect::library};
  const Status added = fixture.registry.add_driver("second", "gamma", [options](const DriverContext&) {
    return Result<std::unique_ptr<Driver>>(
        std::make_unique<support::FixtureDriver>(std::vector<support::FixtureOptions>{options}));
  });
  REQUIRE(added.ok());
  return options;
}

void check_second_is_refused(const std::vector<DeviceInfo>& devices) {
  REQUIRE(devices.size() == 3);
  std::size_t usable = 0;
  for (const DeviceInfo& device : devices) {
    if (device.usable) {
      ++usable;
      continue;
    }
    CHECK(device.id == "alpha");
    CHECK_THAT(device.why_not, Contains("'second'") && Contains("'test'") && Contains("alpha"));
  }
  CHECK(usable == 2);
}

}  // namespace

TEST_CASE("devices: an id belongs to the driver that lists it first; the error for the second names both plugins") {
  RuntimeFixture fixture;
  const support::FixtureOptions second = add_second_alpha(fixture);
  check_second_is_refused(fixture.runtime().devices());
  check_second_is_refused(fixture.runtime().devices());
  check_second_is_refused(fixture.runtime().known_devices());
  RunRequest request = small_conv2d();
  request.device = "alpha";
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.text() == "ok");
  CHECK(report.device.id == "alpha");
  CHECK(report.notes.empty());
  CHECK(fixture.controls("alpha").runs == 1);
  CHECK(second.controls->runs == 0);
}
