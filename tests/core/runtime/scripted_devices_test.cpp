// Two simulated devices, of which the first is told what shall go wrong when, behind one Runtime.
#include "core/runtime/runtime_fixture.hpp"

#include "support/simulated/sim_driver.hpp"

#include <catch2/catch.hpp>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

constexpr double ms = 1e6;

// simulated:0 takes 2 ms for a job and simulated:1 8 ms, by the host's clock; nothing else is usable.
class Scripted {
 public:
  explicit Scripted(const support::SimScript& script) {
    for (const char* other : {"alpha", "beta"}) {
      fixture_.options(other).info.usable = false;
      fixture_.options(other).info.why_not = "not part of this test";
    }
    std::vector<support::SimOptions> devices(2);
    for (std::size_t i = 0; i < devices.size(); ++i) {
      devices[i].info = support::sim_info("simulated:" + std::to_string(i));
      devices[i].model.device.fixed_ns = i == 0 ? 2 * ms : 8 * ms;
    }
    devices[0].model.script = script;
    const Status status = fixture_.registry.add_driver("test", "simulated", [devices](const DriverContext&) {
      return Result<std::unique_ptr<Driver>>(std::make_unique<support::SimDriver>(devices, support::Pace::real));
    });
    if (!status.ok()) throw std::runtime_error(status.text());
    config().device.prefer = "simulated:0";
  }

  Config& config() { return fixture_.config; }
  RunReport run(const RunRequest& request) { return fixture_.runtime().run(request); }

 private:
  RuntimeFixture fixture_;
};

// An odd number of outputs: the bit that is wrong lies where it matters in a number.
RunRequest conv_5x5() {
  RunRequest request = small_conv2d();
  auto& spec = std::get<Conv2dSpec>(request.spec);
  spec.h = spec.w = 5;
  const auto tensor = [](Shape shape) { return HostTensor::create(DType::f32, std::move(shape)).value(); };
  request.tensors[0].host = tensor({1, 4, 5, 5});
  for (float& value : request.tensors[0].host->as<float>()) value = 1;
  request.tensors[2].host = tensor({1, 3, 5, 5});
  return request;
}

RunRequest conv_5x5_on(std::string device) {
  RunRequest request = conv_5x5();
  request.device = std::move(device);
  return request;
}

}  // namespace

TEST_CASE("scripted devices: a hang is a timeout, its slot stays busy, and the other device serves") {
  Scripted scripted({.hang_at = 2});
  scripted.config().executor.in_flight = 1;
  scripted.config().executor.timeout = std::chrono::milliseconds(200);  // what the executor waits at its end, too
  const auto with_time = [](std::string device) {
    RunRequest request = conv_5x5_on(std::move(device));
    request.timeout = std::chrono::seconds(60);
    return request;
  };
  REQUIRE(scripted.run(with_time("simulated:0")).status.text() == "ok");

  RunRequest patient = conv_5x5_on("simulated:0");
  patient.timeout = std::chrono::seconds(1);  // within which it is in its slot
  const RunReport hung = scripted.run(patient);
  CHECK(hung.status.code == StatusCode::timeout);
  CHECK_THAT(hung.status.message, Contains("simulated:0"));

  patient.timeout = std::chrono::milliseconds(200);
  const RunReport behind = scripted.run(patient);
  CHECK(behind.status.code == StatusCode::timeout);
  CHECK_THAT(behind.status.message, Contains("no slot became free") && Contains("1 of 1 in flight"));

  const RunReport other = scripted.run(with_time("simulated:1"));
  REQUIRE(other.status.text() == "ok");
  CHECK(other.device.id == "simulated:1");
  CHECK(other.verified == true);
}

TEST_CASE("scripted devices: a loss is device_lost, or another device serves") {
  Scripted scripted({.lose_at = 1});
  SECTION("another serves, and the report says why") {
    const RunReport report = scripted.run(conv_5x5());
    REQUIRE(report.status.text() == "ok");
    CHECK(report.device.id == "simulated:1");
    CHECK(report.verified == true);
    REQUIRE(report.notes.size() == 1);
    CHECK_THAT(report.notes[0], Contains("simulated:0 cannot serve") && Contains("lost, as the script says"));
  }
  SECTION("no other may") {
    scripted.config().device.fallback = Fallback::never;
    const RunReport report = scripted.run(conv_5x5());
    CHECK(report.status.code == StatusCode::device_lost);
    CHECK_THAT(report.status.message, Contains("simulated:0") && Contains("never"));
  }
}

TEST_CASE("scripted devices: a wrong bit is seen, and only in the run that has it") {
  Scripted scripted({.wrong_at = 2});
  CHECK(scripted.run(conv_5x5()).verified == true);
  const RunReport wrong = scripted.run(conv_5x5());
  CHECK(wrong.verified == false);
  CHECK(wrong.status.code == StatusCode::wrong_result);
  CHECK_THAT(wrong.status.message, Contains("simulated:0") && Contains("1 of 75 elements is wrong"));
  CHECK(wrong.max_rel_error > wrong.error_bound);
  CHECK(scripted.run(conv_5x5()).verified == true);
}

TEST_CASE("scripted devices: the selector leaves a device that has become slow") {
  constexpr std::uint64_t slow_from = 15;
  Scripted scripted({.slow_from = slow_from, .slow_factor = 20});
  scripted.config().device.prefer = "auto";
  scripted.config().selector.policy = "ema";
  RunRequest request = conv_5x5();
  request.verify = false;
  int on_first = 0;
  for (std::uint64_t job = 1; job < slow_from; ++job) on_first += scripted.run(request).device.id == "simulated:0";
  CHECK(on_first >= 8);  // the faster of the two; a few looks at the other
  // Moved, not only looking at the other: five jobs in a row.
  int in_a_row = 0;
  for (int job = 0; in_a_row < 5 && job < 80; ++job) {
    in_a_row = scripted.run(request).device.id == "simulated:1" ? in_a_row + 1 : 0;
  }
  CHECK(in_a_row == 5);
}
