#include <catch2/catch.hpp>
#include <map>

#include "simulator/kernel/settings.hpp"

namespace kiln::simulator::kernel {
namespace {

struct Environment {
  std::map<std::string, std::string> variables;
  Settings settings;
  std::string reason;

  bool read() {
    return read_settings(
        [this](const char* name) {
          const auto at = variables.find(name);
          return at == variables.end() ? nullptr : at->second.c_str();
        },
        settings, reason);
  }
};

}  // namespace

TEST_CASE("simulated kernel: a plan says which submission goes wrong") {
  FaultPlan plan;
  std::string reason;
  REQUIRE(FaultPlan::parse("hang@3,enomem@5+,enomem_buffer@2", plan, reason));
  CHECK(plan.at_submission(1) == PlannedFault::invalid);
  CHECK(plan.at_submission(2) == PlannedFault::invalid);
  CHECK(plan.at_submission(3) == PlannedFault::hang);
  CHECK(plan.at_submission(4) == PlannedFault::invalid);
  CHECK(plan.at_submission(5) == PlannedFault::enomem);
  CHECK(plan.at_submission(500) == PlannedFault::enomem);
  CHECK(plan.fails_buffer(2));
  CHECK_FALSE(plan.fails_buffer(3));
}

TEST_CASE("simulated kernel: every fault has its name") {
  for (const char* name : {"hang", "vram_lost", "page_fault", "cancelled", "enomem", "einval", "unplugged"}) {
    FaultPlan plan;
    std::string reason;
    REQUIRE(FaultPlan::parse(std::string(name) + "@1", plan, reason));
    CHECK(to_string(plan.at_submission(1)) == name);
  }
}

TEST_CASE("simulated kernel: what is no plan is refused with the word") {
  for (const char* text :
       {"hang", "hang@", "hang@0", "hang@x", "hang@1x", "fire@1", "hang@1,,einval@2", "@1", "hang@-1"}) {
    FaultPlan plan;
    std::string reason;
    CAPTURE(text);
    CHECK_FALSE(FaultPlan::parse(text, plan, reason));
    CHECK_THAT(reason, Catch::Contains("is no fault") && Catch::Contains("unplugged"));
    CHECK(plan.at_submission(1) == PlannedFault::invalid);
  }
}

TEST_CASE("simulated kernel: the environment chooses the device") {
  Environment environment;
  REQUIRE(environment.read());
  CHECK(environment.settings.target->name == "gfx1100");
  CHECK(environment.settings.log_path.empty());
  CHECK_FALSE(environment.settings.trace);
  CHECK(environment.settings.watchdog == std::chrono::seconds(60));
  CHECK_FALSE(environment.settings.schedule_seed);
  CHECK_FALSE(environment.settings.check);
  environment.variables = {{"KILN_SIM_TARGET", "gfx1030"},   {"KILN_SIM_LOG", "/tmp/some.log"},
                           {"KILN_SIM_TRACE", "1"},          {"KILN_SIM_LOCKUP_MS", "7"},
                           {"KILN_SIM_WATCHDOG_MS", "1500"}, {"KILN_SIM_SCHEDULE", "0"},
                           {"KILN_SIM_FAULT", "hang@1"},     {"KILN_SIM_CHECK", "1"}};
  REQUIRE(environment.read());
  CHECK(environment.settings.target->generation == Generation::gfx10_3);
  CHECK(environment.settings.log_path == "/tmp/some.log");
  CHECK(environment.settings.trace);
  CHECK(environment.settings.lockup == std::chrono::milliseconds(7));
  CHECK(environment.settings.watchdog == std::chrono::milliseconds(1500));
  CHECK(environment.settings.schedule_seed == 0U);
  CHECK(environment.settings.check);
  CHECK(environment.settings.faults.at_submission(1) == PlannedFault::hang);
}

TEST_CASE("simulated kernel: a variable that makes no sense is named") {
  const std::map<std::string, std::string> wrong = {
      {"KILN_SIM_TARGET", "gfx906"},  {"KILN_SIM_TRACE", "yes"},     {"KILN_SIM_CAPTURE", "/no/such/folder"},
      {"KILN_SIM_LOCKUP_MS", "soon"}, {"KILN_SIM_WATCHDOG_MS", "0"}, {"KILN_SIM_SCHEDULE", "-1"},
      {"KILN_SIM_FAULT", "hang"},     {"KILN_SIM_CHECK", "on"}};
  for (const auto& [name, value] : wrong) {
    Environment environment;
    environment.variables[name] = value;
    CHECK_FALSE(environment.read());
    CHECK_THAT(environment.reason, Catch::StartsWith(name + ": ") && Catch::Contains("'" + value + "'"));
  }
}

TEST_CASE("simulated kernel: the figures of a target agree with themselves") {
  for (const Target& target : targets()) {
    CAPTURE(target.name);
    const auto& device = target.figures.base;
    std::uint32_t units = 0;
    for (const auto& row : device.cu_bitmap) {
      for (const std::uint32_t mask : row) units += static_cast<std::uint32_t>(__builtin_popcount(mask));
    }
    CHECK(units == device.cu_active_number);
    CHECK(find_target(target.name) == &target);
    CHECK(device.virtual_address_max > device.virtual_address_offset);
    for (const HardwareBlock& block : target.blocks) CHECK(block.rings > 0);
  }
  CHECK(find_target("gfx1200") == nullptr);
}

}  // namespace kiln::simulator::kernel
