// Runs beside the comparing of outputs are told to the selector as contended: it uses the cores that they run on.
#include "core/runtime/runtime_fixture.hpp"

#include "runtime/resource_use.hpp"

#include <catch2/catch.hpp>

#include <future>
#include <mutex>

using namespace kiln;
using namespace kiln::test;

namespace {

// Takes the first candidate, and remembers how the runs of each device went.
class Listener final : public DeviceSelector {
 public:
  struct Told {
    std::mutex mutex;
    std::map<std::string, std::vector<bool>> contended;
  };
  explicit Listener(Told& told) : told_(told) {}

  Result<Choice> select(const ShapeBucket&, std::span<const Candidate>, const JobTerms&) noexcept override {
    return Choice{0, "the first", std::nullopt};
  }
  Result<Explanation> explain(const ShapeBucket&, std::span<const Candidate>, const JobTerms&) noexcept override {
    return unsupported("nothing to explain");
  }
  void record(const ShapeBucket&, const DeviceInfo& device, const Measurement&,
              const RunConditions& conditions) noexcept override {
    const std::lock_guard lock(told_.mutex);
    told_.contended[device.id].push_back(conditions.contended);
  }

 private:
  Told& told_;
};

RunRequest on(const std::string& device, bool verify) {
  RunRequest request = small_conv2d();
  request.device = device;
  request.verify = verify;
  return request;
}

}  // namespace

TEST_CASE("contention: a run during which another job's output was compared is not learned from") {
  const bool verify = GENERATE(true, false);
  CAPTURE(verify);
  Listener::Told told;
  RuntimeFixture fixture;
  fixture.options("beta").info.shared_resource = "host-cores";  // as a cpu; alpha has cores of its own
  REQUIRE(fixture.registry
              .add_selector("test", "listener",
                            [&](const SelectorContext&) {
                              return Result<std::unique_ptr<DeviceSelector>>(std::make_unique<Listener>(told));
                            })
              .ok());
  fixture.config.selector.name = "listener";
  (void)fixture.runtime();
  support::FixtureGate& gate = fixture.controls("beta").run;
  gate.close();
  auto beside = std::async(std::launch::async, [&] { return fixture.runtime().run(on("beta", false)).status.text(); });
  REQUIRE(gate.await_waiting(1, Deadline::after(std::chrono::seconds(30))));
  CHECK(fixture.runtime().run(on("alpha", verify)).status.text() == "ok");
  gate.open();
  CHECK(beside.get() == "ok");
  CHECK(fixture.runtime().run(on("beta", true)).status.text() == "ok");  // its own comparison comes after it

  const std::lock_guard lock(told.mutex);
  CHECK(told.contended["alpha"] == std::vector<bool>{false});
  CHECK(told.contended["beta"] == std::vector<bool>{verify, false});
}

TEST_CASE("contention: comparing is no run of any device on the host's cores, and none of a card") {
  ResourceUse resources;
  DeviceInfo cpu, card;
  cpu.id = "cpu", cpu.shared_resource = std::string(cores_of_host);
  card.id = "card", card.physical_id = "pci:0000:03:00.0";
  const auto run = resources.begin(cpu, cpu.id);
  const auto other = resources.begin(card, card.id);
  {
    const auto comparing = resources.begin(cores_of_host, "comparing");
    const auto a_second = resources.begin(cores_of_host, "comparing");
    CHECK(comparing.contended());
  }
  CHECK(run.contended());
  CHECK_FALSE(other.contended());
}
