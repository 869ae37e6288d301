#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "conformance/checks.hpp"

namespace kiln::conformance {
namespace {

void check_identity(const std::vector<std::pair<std::string, std::string>>& identity) {
  REQUIRE_FALSE(identity.empty());
  std::set<std::string> names;
  for (const auto& [name, value] : identity) {
    INFO("identity field '" << name << "' = '" << value << "'");
    CHECK_FALSE(name.empty());
    CHECK_FALSE(value.empty());
    CHECK(names.insert(name).second);
  }
}

}  // namespace

TEST_CASE("conformance: an opened device tells all about itself", "[conformance][device]") {
  if (!present()) return;
  const DeviceInfo& info = subject().device->info();
  CHECK_FALSE(info.id.empty());
  CHECK(info.kind != DeviceKind::invalid);
  CHECK_FALSE(info.name.empty());
  CHECK_FALSE(info.driver.empty());
  CHECK(info.usable);
  CHECK(info.why_not.empty());
  check_identity(info.device_identity);
  check_identity(info.driver_identity);
  CHECK(std::count(info.dialects.begin(), info.dialects.end(), subject().dialect) == 1);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    CHECK(info.max_grid[axis] >= 1);
    CHECK(info.max_workgroup[axis] >= 1);
    CHECK(info.max_workgroup[axis] <= info.max_workgroup_lanes);
  }
  CHECK(info.max_bindings >= 4);  // conv2d with a bias
  CHECK(info.roof_gflops >= 0);
  CHECK((info.driver_cache == "adopted" || info.driver_cache == "not adopted" || info.driver_cache == "none"));
}

TEST_CASE("conformance: what a device tells stays as it is", "[conformance][device]") {
  if (!present()) return;
  const DeviceInfo before = subject().device->info();
  const KernelPlan plan = plan_for(small_conv());
  REQUIRE(subject().device->build(plan.passes.front().source).has_value());
  const DeviceInfo& after = subject().device->info();
  CHECK(after.id == before.id);
  CHECK(after.device_identity == before.device_identity);
  CHECK(after.driver_identity == before.driver_identity);
  CHECK(after.dialects == before.dialects);
}

TEST_CASE("conformance: enumerating answers the same ids each time", "[conformance][device]") {
  Driver* driver = subject().driver;
  if (driver == nullptr) {
    WARN("skipped: the binary gives no driver");
    return;
  }
  const std::vector<DeviceInfo> first = driver->enumerate(), second = driver->enumerate();
  REQUIRE(first.size() == second.size());
  std::set<std::string> ids;
  for (std::size_t i = 0; i < first.size(); ++i) {
    INFO("device " << first[i].id);
    CHECK(first[i].id == second[i].id);
    CHECK(ids.insert(first[i].id).second);
    CHECK(first[i].kind != DeviceKind::invalid);
    CHECK(first[i].usable == first[i].why_not.empty());
  }
  if (subject().device != nullptr) CHECK(ids.contains(subject().device->info().id));
}

TEST_CASE("conformance: an id that does not exist is not found", "[conformance][device]") {
  Driver* driver = subject().driver;
  if (driver == nullptr) {
    WARN("skipped: the binary gives no driver");
    return;
  }
  const auto device = driver->open("no such device");
  REQUIRE_FALSE(device.has_value());
  CHECK(device.error().code == StatusCode::not_found);
  CHECK_THAT(device.error().message, Catch::Contains("no such device"));
}

}  // namespace kiln::conformance
