// Runs beside the comparing of outputs are told to the selector as contended: it uses the cores that they run on.
#include "core/cache/workplace.hpp"
#include "core/runtime/told_selector.hpp"

#include "runtime/resource_use.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <thread>

using namespace kiln;
using namespace kiln::test;

namespace {

RunRequest conv2d_on(const std::string& device, bool verify) {
  RunRequest request = small_conv2d();
  request.device = device;
  request.verify = verify;
  return request;
}

}  // namespace

TEST_CASE("contention: a run during which another job's output was compared is not learned from") {
  const bool verify = GENERATE(true, false);
  CAPTURE(verify);
  Told told;
  RuntimeFixture fixture;
  fixture.options("beta").info.shared_resource = "host-cores";  // as a cpu; alpha has cores of its own
  ToldSelector::serve(fixture, told);
  (void)fixture.runtime();
  support::FixtureGate& gate = fixture.controls("beta").run;
  gate.close();
  auto beside =
      std::async(std::launch::async, [&] { return fixture.runtime().run(conv2d_on("beta", false)).status.text(); });
  REQUIRE(gate.await_waiting(1, Deadline::after(std::chrono::seconds(30))));
  CHECK(fixture.runtime().run(conv2d_on("alpha", verify)).status.text() == "ok");
  gate.open();
  CHECK(beside.get() == "ok");
  CHECK(fixture.runtime().run(conv2d_on("beta", true)).status.text() == "ok");  // its own comparison comes after it

  std::map<std::string, std::vector<bool>> contended;
  for (const ToldRun& run : told.runs) contended[run.device].push_back(run.conditions.contended);
  CHECK(contended["alpha"] == std::vector<bool>{false});
  CHECK(contended["beta"] == std::vector<bool>{verify, false});
}

TEST_CASE("contention: the wait behind other jobs on one device is no part of a run") {
  Told told;
  RuntimeFixture fixture;
  ToldSelector::serve(fixture, told);
  fixture.options("alpha").run_time = std::chrono::milliseconds(40);
  Runtime& runtime = fixture.runtime();
  const Clock::time_point begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int run = 0; run < 6; ++run) runtime.run(conv2d_on("alpha", false));
      });
    }
  }
  const double elapsed_ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  REQUIRE(told.runs.size() == 18);
  double sum_ns = 0;
  for (const ToldRun& run : told.runs) {
    CHECK(run.measurement.wall_ns - run.measurement.queue_ns >= run.measurement.device_ns);
    sum_ns += static_cast<double>(run.measurement.wall_ns - run.measurement.queue_ns);
  }
  CHECK(sum_ns < 2 * elapsed_ns);  // about three times as long with the wait: that of three threads
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

TEST_CASE("contention: work that nobody waits for any more holds what its device shares until it ends") {
  const bool stopped = GENERATE(false, true);
  const bool replayed = GENERATE(false, true);
  CAPTURE(stopped, replayed);
  Told told;
  RuntimeFixture fixture;
  ToldSelector::serve(fixture, told);
  for (const char* name : {"alpha", "beta"}) fixture.options(name).info.shared_resource = "cores";
  Runtime& runtime = fixture.runtime();
  auto recorded = runtime.record({small_gemm()}, "alpha").value();
  REQUIRE(runtime.run(conv2d_on("beta", false)).status.text() == "ok");
  support::FixtureGate& gate = fixture.controls("alpha").run;
  gate.close();
  std::atomic<bool> stop{false};
  std::jthread stopper([&] { stop = gate.await_waiting(1, Deadline::after(std::chrono::seconds(30))) && stopped; });
  RunRequest left = conv2d_on("alpha", false);
  left.stop = &stop;
  left.timeout = std::chrono::seconds(stopped ? 60 : 2);  // within which it is on the device
  const Status end = replayed ? runtime.replay(*recorded, {left.timeout, &stop}).status : runtime.run(left).status;
  CHECK(end.code == (stopped ? StatusCode::cancelled : StatusCode::timeout));
  stopper.join();
  CHECK(runtime.run(conv2d_on("beta", false)).status.text() == "ok");  // it has its turn
  CHECK(told.runs.back().conditions.contended);
  gate.open();
  bool alone = false;
  for (int i = 0; i < 3000 && !alone; ++i) {
    REQUIRE(runtime.run(conv2d_on("beta", false)).status.text() == "ok");
    alone = !told.runs.back().conditions.contended;
    if (!alone) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(alone);
}

TEST_CASE("contention: the part of their time that threads waited counts by how long they ran") {
  const CacheTestFolder folder;
  const auto write = [&](const std::string& thread, const std::string& text) {
    std::filesystem::create_directories(folder.path() / thread);
    std::ofstream(folder.path() / thread / "schedstat") << text;
  };
  const auto now = [&] { return ThreadTimes::now(folder.path()); };
  CHECK(now().contention_since(now()) == 0);
  write("1", "1000 500 7\n");
  write("2", "2000 0 7\n");
  write("3", "5000 9000 7\n");
  const ThreadTimes before = now();
  CHECK(now().contention_since(before) == 0);
  write("3", "5000 90000 7\n");  // slept: its wait slows nothing
  CHECK(now().contention_since(before) == 0);
  write("1", "4000 1500 8\n");  // a quarter of 4,000
  CHECK(now().contention_since(before) == Approx(0.25));
  write("2", "5000 0 8\n");  // as long, and never waited
  CHECK(now().contention_since(before) == Approx(0.125));
  write("4", "2000 6000 1\n");  // a new one, three quarters of 8,000
  CHECK(now().contention_since(before) == Approx((0.25 * 3000 + 0.75 * 2000) / 8000));
  write("5", "none");
  std::filesystem::remove_all(folder.path() / "2");  // what has ended is not known
  CHECK(now().contention_since(before) == Approx((0.25 * 3000 + 0.75 * 2000) / 5000));
  CHECK(ThreadTimes::now(folder.path() / "none").contention_since(before) == 0);

  const ThreadTimes own = ThreadTimes::now();
  const double own_contention = ThreadTimes::now().contention_since(own);
  CHECK(own_contention >= 0);
  CHECK(own_contention <= 1);
}
