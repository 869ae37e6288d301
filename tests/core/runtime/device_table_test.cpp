// Which driver a device id belongs to.
#include "core/runtime/runtime_fixture.hpp"

#include "runtime/device_table.hpp"

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

TEST_CASE("devices: three failures in a row set a device aside, and a success between them does not count as one") {
  SetAside aside;
  const Clock::time_point now = Clock::now();
  CHECK_FALSE(aside.failed("a"));
  CHECK_FALSE(aside.failed("a"));
  aside.served("a", now);
  CHECK_FALSE(aside.failed("a"));
  CHECK_FALSE(aside.failed("a"));
  aside.served("b", now);  // another device's
  CHECK(aside.failed("a"));
  CHECK_FALSE(aside.failed("b"));
  CHECK_FALSE(aside.why_not("a", now));  // whoever counts puts it aside
  CHECK(aside.put("a", "three failures", now) == std::chrono::seconds(1));
  CHECK_FALSE(aside.failed("a"));  // counted anew
  CHECK_FALSE(aside.failed("a"));
  CHECK(aside.failed("a"));
}

TEST_CASE("devices: each pause is twice the one before, up to five minutes, and the first again after good work") {
  using std::chrono::seconds;
  SetAside aside;
  Clock::time_point now = Clock::now();
  for (const int expected : {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}) {
    CHECK(aside.put("a", "lost", now) == seconds(expected));
    CHECK(aside.put("a", "lost", now + seconds(expected) / 2) == seconds(expected) - seconds(expected) / 2);
    REQUIRE(aside.why_not("a", now));
    CHECK_THAT(*aside.why_not("a", now), Contains("set aside for another " + std::to_string(expected) + ".0 s: lost"));
    CHECK(aside.why_not("a", now + seconds(expected) - std::chrono::nanoseconds(1)));
    CHECK_FALSE(aside.why_not("a", now + seconds(expected)));
    CHECK_FALSE(aside.why_not("b", now));
    now += seconds(expected);
    aside.served("a", now + seconds(expected));  // not for longer than the pause was
  }
  aside.served("a", now + seconds(301));
  CHECK(aside.put("a", "lost", now + seconds(301)) == seconds(1));
  aside.try_again("a", now + seconds(301));
  CHECK_FALSE(aside.why_not("a", now + seconds(301)));
  CHECK(aside.put("a", "lost", now + seconds(302)) == seconds(2));
}
