// Which driver a device id belongs to, what is asked of drivers, and which devices are set aside.
#include "core/runtime/runtime_fixture.hpp"

#include "runtime/device_table.hpp"

#include "core/cache/workplace.hpp"
#include "support/fixture_driver.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// What one driver of a TableScene does, and what it was asked.
struct ToldDriver {
  std::vector<DeviceInfo> devices;
  Status cannot_start, cannot_open;
  int made = 0, enumerated = 0, opened = 0;
  std::filesystem::path cache_directory;
  PluginSettings settings;
  bool has_notes = false;
};

class TellingDriver final : public Driver {
 public:
  explicit TellingDriver(ToldDriver& told) : told_(told) {}
  std::vector<DeviceInfo> enumerate() override {
    ++told_.enumerated;
    return told_.devices;
  }
  Result<std::unique_ptr<Device>> open(std::string_view id) noexcept override {
    ++told_.opened;
    if (!told_.cannot_open.ok()) return told_.cannot_open;
    support::FixtureOptions options;
    options.queue = support::FixtureQueue::inside_submit;
    const auto listed = std::ranges::find(told_.devices, id, &DeviceInfo::id);
    if (listed == told_.devices.end()) return not_found("no such device");
    options.info = *listed;
    return std::unique_ptr<Device>(std::make_unique<support::FixtureDevice>(options));
  }

 private:
  ToldDriver& told_;
};

// Driver "one" of the plugin "first" with two devices, and driver "two" of the plugin "second" with one.
struct TableScene {
  Config config;
  Registry registry;
  WorkCounters counters;
  CollectedLog log;
  std::map<std::string, ToldDriver> drivers;
  std::unique_ptr<DeviceTable> made;

  TableScene() {
    config.cache.directory = "/cache";
    drivers["one"].devices = {support::fixture_info("one:0"), support::fixture_info("one:1")};
    drivers["two"].devices = {support::fixture_info("two:0")};
    const std::pair<const char*, const char*> plugins[] = {{"first", "one"}, {"second", "two"}};
    for (const auto& [plugin, driver] : plugins) {
      ToldDriver& told = drivers[driver];
      const Status added =
          registry.add_driver(plugin, driver, [&told](const DriverContext& context) -> Result<std::unique_ptr<Driver>> {
            ++told.made;
            told.cache_directory = context.cache_directory;
            told.settings = context.settings;
            told.has_notes = context.notes != nullptr;
            if (!told.cannot_start.ok()) return told.cannot_start;
            return std::unique_ptr<Driver>(std::make_unique<TellingDriver>(told));
          });
      REQUIRE(added.ok());
    }
  }
  DeviceTable& table() {
    if (made == nullptr) made = std::make_unique<DeviceTable>(config, registry, Log{&log, LogLevel::info}, counters);
    return *made;
  }
  // Makes the next pause of the device 64 s long: it does not end during a test.
  void lengthen_pause(const std::string& id) {
    (void)table().enumerate_for(id);
    for (int pause = 0; pause < 6; ++pause) {
      REQUIRE(table().set_aside(id, timed_out("earlier"), nullptr) != "");
      REQUIRE(table().try_again(id));
    }
  }
  // Why the device cannot be used now; "usable".
  std::string state(const std::string& id) {
    for (const DeviceInfo& device : table().known()) {
      if (device.id == id) return device.usable ? "usable" : device.why_not;
    }
    return "unknown";
  }
};

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

TEST_CASE("devices: of a known device its driver alone is asked, once") {
  TableScene scene;
  DeviceTable& table = scene.table();
  ToldDriver &one = scene.drivers["one"], &two = scene.drivers["two"];
  CHECK(table.known().empty());
  CHECK(table.enumerate_for("one:1").size() == 2);
  CHECK(table.check_name("one:0").ok());
  const auto opened = table.open("one:1");
  REQUIRE(opened);
  CHECK((*opened)->info().id == "one:1");
  const auto again = table.open("one:1");
  REQUIRE(again);
  CHECK(*again == *opened);
  CHECK(table.is_open("one:1"));
  CHECK_FALSE(table.is_open("one:0"));
  CHECK_FALSE(table.is_open("absent:0"));
  CHECK(table.plugin_of("one:0") == "first");
  CHECK(table.plugin_of("two:0") == "");
  CHECK(table.known().size() == 2);
  CHECK(one.made == 1);
  CHECK(one.enumerated == 1);
  CHECK(one.opened == 1);
  CHECK(one.has_notes);
  CHECK(one.cache_directory == "/cache");
  CHECK(two.made == 0);

  CHECK(table.enumerate_for("absent").size() == 3);
  CHECK(table.plugin_of("two:0") == "second");
  CHECK(two.opened == 0);
  const std::vector<DeviceInfo> all = table.open_all();
  REQUIRE(all.size() == 3);
  for (const DeviceInfo& device : all) CHECK(device.usable);
  CHECK(table.is_open("one:0"));
  CHECK(table.is_open("two:0"));
  CHECK(one.opened == 2);
  CHECK(one.enumerated == 1);
}

TEST_CASE("devices: the name of a device starts its own driver alone, an unknown one starts all") {
  TableScene scene;
  DeviceTable& table = scene.table();
  ToldDriver &one = scene.drivers["one"], &two = scene.drivers["two"];
  CHECK(table.check_name("one:0").ok());
  CHECK(table.check_name("one:1").ok());
  CHECK(one.made == 1);
  CHECK(one.enumerated == 1);
  CHECK(two.made == 0);
  CHECK(table.check_name("one:7").code == StatusCode::not_found);
  CHECK(two.made == 1);
}

TEST_CASE("devices: the error for an unknown id has every device, and the nearest where one is near") {
  TableScene scene;
  const auto refused = [&](std::string_view id) {
    const Status status = scene.table().check_name(id);
    CHECK(status.code == StatusCode::not_found);
    const auto opened = scene.table().open(id);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().message == status.message);
    return status.message;
  };
  SECTION("all are usable") {
    CHECK(refused("amdgpu:0") == "device 'amdgpu:0': no such device (usable: one:0, one:1, two:0)");
    CHECK(refused("one:2") == "device 'one:2': no such device (usable: one:0, one:1, two:0); nearest: one:0");
  }
  SECTION("some are") {
    scene.drivers["one"].devices[0].usable = false;
    scene.drivers["one"].devices[0].why_not = "no card";
    scene.drivers["two"].devices[0].usable = false;
    scene.drivers["two"].devices[0].why_not = "no cable";
    CHECK(refused("amdgpu:0") ==
          "device 'amdgpu:0': no such device (usable: one:1; unusable: one:0: no card; two:0: no cable)");
  }
  SECTION("none is there") {
    for (auto& [name, driver] : scene.drivers) driver.devices.clear();
    CHECK(refused("amdgpu:0") == "device 'amdgpu:0': no such device (usable: none)");
  }
}

TEST_CASE("devices: a driver that cannot start stands for all of its devices, and is started once") {
  TableScene scene;
  scene.drivers["two"].cannot_start = unavailable("no library");
  DeviceTable& table = scene.table();
  CHECK(table.check_name("two:7").ok());
  for (const char* id : {"two:7", "two:0", "two"}) {
    const auto opened = table.open(id);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().text() == "unavailable: device " + std::string(id) + ": no library");
  }
  CHECK(scene.state("two") == "no library");
  CHECK(table.open("one:0"));
  CHECK(scene.drivers["two"].made == 1);
  CHECK(table.check_name("three:0").message ==
        "device 'three:0': no such device (usable: one:0, one:1; unusable: two: no library)");
}

TEST_CASE("devices: a device that cannot be opened is unusable, or set aside if it was lost or late") {
  TableScene scene;
  ToldDriver& one = scene.drivers["one"];
  bool for_a_while = true;
  SECTION("lost") { one.cannot_open = device_lost("it hangs"); }
  SECTION("late") { one.cannot_open = timed_out("it hangs"); }
  SECTION("in use") {
    one.cannot_open = unavailable("it hangs");
    for_a_while = false;
  }
  scene.lengthen_pause("one:0");
  DeviceTable& table = scene.table();
  const auto first = table.open("one:0");
  REQUIRE_FALSE(first);
  CHECK(first.error().text() == one.cannot_open.within("device one:0").text());
  CHECK(table.is_set_aside("one:0") == for_a_while);
  if (for_a_while) {
    CHECK_THAT(scene.state("one:0"), Contains("set aside for another ") && Contains(" s: it hangs"));
  } else {
    CHECK(scene.state("one:0") == "it hangs");
  }
  CHECK(scene.state("one:1") == "usable");
  const auto second = table.open("one:0");
  REQUIRE_FALSE(second);
  CHECK(second.error().code == StatusCode::unavailable);
  CHECK_THAT(second.error().message, Catch::StartsWith("device one:0: ") && Contains("it hangs"));
  CHECK(one.opened == 1);
  one.cannot_open = {};
  CHECK(table.try_again("one:0") == for_a_while);
  CHECK(table.open("one:0").has_value() == for_a_while);
}

TEST_CASE("devices: a lost device is opened anew, and each pause is logged once") {
  TableScene scene;
  DeviceTable& table = scene.table();
  CHECK(table.set_aside("one:0", device_lost("gone"), nullptr) == "");  // nobody has met it
  const auto first = table.open("one:0").value();
  CHECK(table.set_aside("one:0", device_lost("gone"), first.get()) == "1.0 s");
  CHECK(table.set_aside("one:0", device_lost("gone"), first.get()) == "");
  CHECK_FALSE(table.is_open("one:0"));
  CHECK_FALSE(table.try_again("absent"));
  REQUIRE(table.try_again("one:0"));
  const auto second = table.open("one:0").value();
  CHECK(second != first);

  CHECK(table.set_aside("one:0", unavailable("no memory"), second.get()) == "2.0 s");
  CHECK(table.is_open("one:0"));  // it is not lost
  REQUIRE(table.try_again("one:0"));
  CHECK(table.open("one:0").value() == second);
  CHECK(table.set_aside("one:0", device_lost("gone"), nullptr) == "4.0 s");
  CHECK(table.is_open("one:0"));  // nobody has used it
  CHECK(scene.log.warnings() == std::vector<std::string>{"device one:0 is set aside for 1.0 s: gone",
                                                         "device one:0 is set aside for 2.0 s: no memory",
                                                         "device one:0 is set aside for 4.0 s: gone"});
}

TEST_CASE("devices: hardware that is lost under one id is closed under its other ids, until the pause of each ends") {
  TableScene scene;
  scene.drivers["one"].devices[0].physical_id = "pci:1";
  scene.drivers["one"].devices[1].physical_id = "pci:2";
  scene.drivers["two"].devices[0].physical_id = "pci:1";
  DeviceTable& table = scene.table();
  for (const DeviceInfo& device : table.open_all()) REQUIRE(table.is_open(device.id));
  scene.lengthen_pause("two:0");
  const auto lost = table.open("one:0").value();
  CHECK(table.set_aside("one:0", device_lost("gone"), lost.get()) == "1.0 s");
  CHECK_THAT(scene.state("two:0"), Contains("it is the hardware of one:0, which was lost: gone"));
  CHECK_FALSE(table.is_open("two:0"));
  CHECK_FALSE(table.try_again("two:0"));
  CHECK(scene.state("one:1") == "usable");
  CHECK(table.is_open("one:1"));
  CHECK(table.try_again("one:0"));
  CHECK_FALSE(table.try_again("two:0"));
  CHECK(table.set_aside("two:0", timed_out("late"), nullptr) != "");  // for a reason of its own
  CHECK(table.try_again("two:0"));
}

TEST_CASE("devices: the third failed job in a row sets a device aside, with the reason of the last") {
  TableScene scene;
  scene.lengthen_pause("one:0");
  DeviceTable& table = scene.table();
  const auto used = table.open("one:0").value();
  const auto fail = [&](const char* why) { table.failed("one:0", internal_error(why), used.get()); };
  fail("first");
  fail("second");
  table.served("one:0");
  fail("third");
  fail("fourth");
  CHECK_FALSE(table.is_set_aside("one:0"));
  fail("fifth");
  CHECK(table.is_set_aside("one:0"));
  CHECK_FALSE(table.is_set_aside("one:1"));
  CHECK(table.is_open("one:0"));
  CHECK(scene.log.warnings().back() == "device one:0 is set aside for 64.0 s: 3 jobs failed in a row, the last: fifth");
}

TEST_CASE("devices: another process is told the plugin's file, the driver and its settings") {
  TableScene scene;
  const ConfigKey depth{"depth", ConfigType::integer, std::int64_t{3}, "how deep", 0, 10, {}};
  const ConfigKey name{"name", ConfigType::text, std::string("none"), "which", {}, {}, {}};
  REQUIRE(scene.registry.add_config_keys("first", {depth, name}).ok());
  scene.registry.set_file("first", "/plugins/first.so");
  scene.config.plugin["first"]["depth"].value = std::int64_t{7};
  const auto setup = scene.table().build_setup("one:1");
  REQUIRE(setup);
  CHECK(setup->plugin == "/plugins/first.so");
  CHECK(setup->driver == "one");
  CHECK(setup->device == "one:1");
  CHECK(setup->cache_directory == "/cache");
  PluginSettings expected;
  expected["depth"] = std::int64_t{7};
  expected["name"] = std::string("none");
  CHECK((setup->settings == expected));
  CHECK_FALSE(scene.table().build_setup("two:0"));  // its plugin has no file
  CHECK_FALSE(scene.table().build_setup("three:0"));
  CHECK(scene.drivers["one"].made == 0);
  (void)scene.table().enumerate_all();
  CHECK((scene.drivers["one"].settings == expected));
  CHECK(scene.drivers["two"].settings.empty());
}

TEST_CASE("devices: good work of a device that never failed changes nothing") {
  // On the heap: there the address sanitizer notices a write behind it.
  const auto aside = std::make_unique<SetAside>();
  const Clock::time_point now = Clock::now();
  aside->served("a", now);
  aside->try_again("a", now);
  CHECK_FALSE(aside->why_not("a", now));
  CHECK(aside->put("a", "lost", now) == std::chrono::seconds(1));
  aside->served("b", now + std::chrono::hours(1));
  aside->try_again("b", now);
  CHECK(aside->why_not("a", now));
}

TEST_CASE("devices: a pause is told in seconds with one decimal") {
  CHECK(pause_text(std::chrono::milliseconds(1000)) == "1.0 s");
  CHECK(pause_text(std::chrono::milliseconds(300)) == "0.3 s");
  CHECK(pause_text(std::chrono::minutes(5)) == "300.0 s");
}
