// Devices that share something, devices that are set aside, and programs that are built beside running jobs.
#include "core/runtime/runtime_fixture.hpp"

#include "runtime/device_table.hpp"
#include "runtime/resource_use.hpp"
#include "runtime/warmup.hpp"

#include <catch2/catch.hpp>

#include <future>
#include <thread>

using namespace kiln;
using namespace kiln::test;
using Catch::Matchers::Contains;

namespace {

DeviceInfo sharing(const std::string& id, const std::string& resource, const std::string& physical = "") {
  DeviceInfo info;
  info.id = id;
  info.shared_resource = resource;
  info.physical_id = physical;
  return info;
}

template <class Done>
bool eventually(Done done) {
  for (int i = 0; i < 3000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// A job that leaves its device to the selector, of a kernel of its own size.
RunRequest free_job() {
  RunRequest request = small_conv2d();
  request.verify = false;
  return request;
}

}  // namespace

TEST_CASE("runtime: a run is contended by other users of what its device shares, and by nobody else") {
  ResourceUse resources;
  const DeviceInfo cpu = sharing("cpu", "cores"), soft = sharing("gl", "cores"), card = sharing("card", "");
  auto first = resources.begin(cpu, "cpu");
  CHECK_FALSE(first.contended());
  {
    const auto same = resources.begin(cpu, "cpu");
    const auto other = resources.begin(card, "card");
    CHECK_FALSE(same.contended());
    CHECK_FALSE(other.contended());
  }
  CHECK_FALSE(first.contended());
  {
    const auto second = resources.begin(soft, "gl");
    CHECK(second.contended());
    CHECK(first.contended());
  }
  CHECK(first.contended());  // it was, for a time
  const auto later = resources.begin(cpu, "cpu");
  CHECK_FALSE(later.contended());
}

TEST_CASE("runtime: one piece of hardware through two drivers is one resource") {
  ResourceUse resources;
  const DeviceInfo gl = sharing("gl", "", "pci:0000:03:00.0"), pm4 = sharing("amdgpu", "", "pci:0000:03:00.0");
  CHECK(share_a_resource(gl, pm4));
  CHECK_FALSE(share_a_resource(gl, sharing("other", "", "pci:0000:04:00.0")));
  CHECK_FALSE(share_a_resource(sharing("a", ""), sharing("b", "")));
  const auto one = resources.begin(gl, "gl");
  CHECK(resources.begin(pm4, "amdgpu").contended());
}

TEST_CASE("runtime: devices that share a resource take turns in the order of their coming, runs of one go together") {
  ResourceUse resources;
  const DeviceInfo cpu = sharing("cpu", "cores"), soft = sharing("gl", "cores"), card = sharing("card", "");
  const auto soon = [] { return Deadline::after(std::chrono::milliseconds(20)); };
  auto first = resources.begin_turn(cpu, Deadline::never(), nullptr);
  REQUIRE(first);
  CHECK(resources.begin_turn(cpu, soon(), nullptr));
  CHECK(resources.begin_turn(card, soon(), nullptr));
  const auto late = resources.begin_turn(soft, soon(), nullptr);
  REQUIRE_FALSE(late);
  CHECK(late.error().code == StatusCode::timeout);
  CHECK_THAT(late.error().message, Contains("device gl timed out while it waited for cores, which device cpu uses"));
  CHECK_FALSE(first->contended());

  std::atomic<bool> stop{true};
  const auto stopped = resources.begin_turn(soft, Deadline::never(), &stop);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == StatusCode::cancelled);

  auto waited_ns = std::async(std::launch::async, [&] {
    const auto turn = resources.begin_turn(soft, Deadline::after(std::chrono::seconds(60)), nullptr);
    return turn ? turn->waited_ns() : 0;
  });
  // Whoever comes after it waits for it, of whichever device: else a busy device would keep the others out for ever.
  CHECK(eventually([&] { return !resources.begin_turn(cpu, soon(), nullptr); }));
  CHECK(waited_ns.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  first->end();
  CHECK(waited_ns.get() > 0);
  CHECK(resources.begin_turn(cpu, Deadline::after(std::chrono::seconds(60)), nullptr));
}

TEST_CASE("runtime: two devices never have one resource at a time, however many threads ask") {
  ResourceUse resources;
  const DeviceInfo devices[] = {sharing("cpu", "cores"), sharing("gl", "cores"), sharing("soft", "cores")};
  std::atomic<int> inside[3]{};
  std::atomic<int> together{0}, turns{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, mine = t % 3] {
        for (int i = 0; i < 200; ++i) {
          const auto turn = resources.begin_turn(devices[mine], Deadline::after(std::chrono::seconds(60)), nullptr);
          if (!turn) continue;
          ++inside[mine];
          std::this_thread::sleep_for(std::chrono::microseconds(20));  // long enough for others to come in
          for (int other = 0; other < 3; ++other) together += other != mine && inside[other] > 0;
          if (turn->contended()) ++together;
          ++turns;
          --inside[mine];
        }
      });
    }
  }
  CHECK(together == 0);
  CHECK(turns == 1200);
}

TEST_CASE("runtime: a job waits for its turn on the cores until its deadline, which is not its device's failure") {
  RuntimeFixture fixture;
  for (const char* name : {"alpha", "beta"}) fixture.options(name).info.shared_resource = "cores";
  RunRequest request = small_conv2d();
  request.device = "beta";
  REQUIRE(fixture.runtime().run(request).status.text() == "ok");  // so that its deadline is spent on nothing else
  const std::uint64_t before = fixture.controls("beta").submits;
  fixture.controls("alpha").run.close();
  RunRequest held = small_conv2d();
  held.device = "alpha";
  auto holder = std::async(std::launch::async, [&] { return fixture.runtime().run(held).status.text(); });
  CHECK(eventually([&] { return fixture.controls("alpha").run.waiting() == 1; }));
  request.timeout = std::chrono::milliseconds(200);
  for (int i = 0; i < 4; ++i) {  // three failures in a row would set it aside
    const RunReport late = fixture.runtime().run(request);
    CHECK(late.status.code == StatusCode::timeout);
    CHECK_THAT(late.status.message, Contains("beta timed out while it waited for cores, which device alpha uses"));
    CHECK(late.device.id == "beta");
    CHECK(late.runs == 0);
  }
  CHECK(fixture.controls("beta").submits == before);
  std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    fixture.controls("alpha").run.open();
  });
  request.timeout = std::chrono::seconds(60);
  const RunReport served = fixture.runtime().run(request);
  CHECK(served.status.text() == "ok");
  CHECK(served.median.queue_ns >= 10'000'000);  // the wait is told
  CHECK(served.median.wall_ns >= served.median.queue_ns);
  CHECK(holder.get() == "ok");
}

TEST_CASE("runtime: a job that waits behind its device's other jobs until its deadline is not its device's failure") {
  const std::uint32_t slots = GENERATE(1u, 2u);  // it gets no slot, or is taken back from it
  const bool replayed = GENERATE(false, true);
  CAPTURE(slots, replayed);
  RuntimeFixture fixture;
  fixture.config.executor.in_flight = slots;
  fixture.options("alpha").queue = support::FixtureQueue::inside_submit;
  Runtime& runtime = fixture.runtime();
  auto recorded = runtime.record({small_gemm()}, "alpha").value();
  support::FixtureGate& gate = fixture.controls("alpha").run;
  gate.close();
  RunRequest request = small_conv2d();
  request.device = "alpha";
  RunRequest held = small_conv2d();
  held.device = "alpha";
  held.timeout = std::chrono::minutes(3);
  auto holder = std::async(std::launch::async, [&] { return runtime.run(held).status.text(); });
  REQUIRE(gate.await_waiting(1, Deadline::after(std::chrono::seconds(60))));
  request.timeout = std::chrono::milliseconds(20);
  for (int i = 0; i < 4; ++i) {  // three failures in a row would set it aside
    const RunReport late = replayed ? runtime.replay(*recorded, {request.timeout, nullptr}) : runtime.run(request);
    CHECK(late.status.code == StatusCode::timeout);
    CHECK(late.device.id == "alpha");
  }
  gate.open();
  CHECK(holder.get() == "ok");
  request.timeout.reset();
  CHECK(runtime.run(request).device.id == "alpha");
}

TEST_CASE("runtime: a job that waits for a slot is stopped by its flag") {
  const bool replayed = GENERATE(false, true);
  CAPTURE(replayed);
  RuntimeFixture fixture;
  fixture.config.executor.in_flight = 1;
  Runtime& runtime = fixture.runtime();
  auto recorded = runtime.record({small_gemm()}, "alpha").value();
  support::FixtureGate& gate = fixture.controls("alpha").run;
  gate.close();
  std::atomic<bool> stop{false};
  RunRequest request = small_conv2d();
  request.device = "alpha";
  request.timeout = std::chrono::minutes(3);
  auto holder = std::async(std::launch::async, [&, held = request] { return runtime.run(held).status.text(); });
  REQUIRE(gate.await_waiting(1, Deadline::after(std::chrono::seconds(60))));
  request.stop = &stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it waits for its slot by then
    stop = true;
  });
  const RunReport report = replayed ? runtime.replay(*recorded, {std::nullopt, &stop}) : runtime.run(request);
  CHECK(report.status.code == StatusCode::cancelled);
  CHECK(gate.waiting() == 1);
  gate.open();
  CHECK(holder.get() == "ok");
}

TEST_CASE("runtime: a device whose jobs hang is set aside, also if later jobs do not reach it") {
  RuntimeFixture fixture;
  fixture.config.executor.in_flight = 1;
  RunRequest request = small_conv2d();
  request.device = "alpha";
  REQUIRE(fixture.runtime().run(request).device.id == "alpha");
  fixture.controls("alpha").run.close();
  request.timeout = std::chrono::seconds(2);  // within which it is on the device
  CHECK(fixture.runtime().run(request).status.code == StatusCode::timeout);
  request.timeout = std::chrono::milliseconds(200);
  for (int i = 0; i < 2; ++i) {
    const RunReport late = fixture.runtime().run(request);
    CHECK_THAT(late.status.message, Contains("no slot became free"));
  }
  request.timeout.reset();
  const RunReport after = fixture.runtime().run(request);
  CHECK(after.device.id == "beta");
  CHECK_THAT(after.notes.at(0), Contains("3 jobs failed in a row"));
  fixture.controls("alpha").run.open();
}

TEST_CASE("runtime: a device is set aside for twice as long each time, at most for five minutes") {
  SetAside aside;
  Clock::time_point now{};
  std::chrono::nanoseconds last{0};
  for (int i = 0; i < 12; ++i) {
    const auto pause = aside.put("d", "lost", now);
    if (i == 0) CHECK(pause == std::chrono::seconds(1));
    if (i == 3) CHECK(pause == std::chrono::seconds(8));
    CHECK(pause >= last);
    CHECK(pause <= std::chrono::minutes(5));
    CHECK_THAT(aside.why_not("d", now).value(), Contains("set aside for another") && Contains("lost"));
    CHECK(aside.put("d", "told again", now) == pause);
    last = pause;
    now += pause;
    CHECK_FALSE(aside.why_not("d", now));
  }
  CHECK(last == std::chrono::minutes(5));
  aside.served("d", now + std::chrono::hours(1));
  CHECK(aside.put("d", "lost", now + std::chrono::hours(1)) == std::chrono::seconds(1));
  CHECK_FALSE(aside.failed("e"));
  CHECK_FALSE(aside.failed("e"));
  aside.served("e", now);
  CHECK_FALSE(aside.failed("e"));
  CHECK_FALSE(aside.failed("e"));
  CHECK(aside.failed("e"));
}

TEST_CASE("runtime: a device that was lost serves again when its time is over, and the report says both") {
  RuntimeFixture fixture;
  fixture.controls("alpha").lose_at = 1;
  RunRequest request = small_conv2d();
  request.device = "alpha";
  const RunReport lost = fixture.runtime().run(request);
  REQUIRE(lost.status.text() == "ok");
  CHECK(lost.device.id == "beta");
  REQUIRE(lost.notes.size() == 1);
  CHECK_THAT(lost.notes[0], Contains("alpha cannot serve") && Contains("set aside for 1.0 s"));
  const RunReport meanwhile = fixture.runtime().run(request);
  if (meanwhile.device.id == "beta") CHECK_THAT(meanwhile.notes.at(0), Contains("set aside for another"));
  fixture.controls("alpha").lose_at = 0;
  fixture.controls("alpha").lost = false;
  CHECK(eventually([&] { return fixture.runtime().run(request).device.id == "alpha"; }));
}

TEST_CASE("runtime: of jobs that lose their device at the same time, each is run again") {
  for (const Fallback fallback : {Fallback::report, Fallback::never}) {
    for (int round = 0; round < 10; ++round) {
      RuntimeFixture fixture;
      fixture.config.device.fallback = fallback;
      fixture.options("beta").info.usable = false;
      fixture.options("beta").info.why_not = "there is no beta";
      fixture.controls("alpha").comes_back = true;
      fixture.controls("alpha").lose_at = 1;
      Runtime& runtime = fixture.runtime();
      std::vector<RunReport> reports(8);
      {
        std::vector<std::jthread> jobs;
        for (RunReport& report : reports) {
          jobs.emplace_back([&runtime, &report] {
            RunRequest request = small_conv2d();
            request.device = "alpha";
            report = runtime.run(request);
          });
        }
      }
      for (const RunReport& report : reports) {
        INFO("round " << round);
        CHECK(report.status.text() == "ok");
      }
    }
  }
}

TEST_CASE("runtime: the same hardware under another name is lost with it") {
  RuntimeFixture fixture;
  fixture.options("alpha").info.physical_id = fixture.options("beta").info.physical_id = "pci:0000:03:00.0";
  fixture.controls("alpha").lose_at = 1;
  (void)fixture.runtime().devices();
  RunRequest request = small_conv2d();
  request.device = "alpha";
  const RunReport report = fixture.runtime().run(request);
  CHECK(report.status.code == StatusCode::unavailable);
  CHECK_THAT(report.status.message, Contains("it is the hardware of alpha"));
}

TEST_CASE("runtime: a driver enumerated after the loss of its hardware does not open it") {
  for (const bool same_hardware : {true, false}) {
    CAPTURE(same_hardware);
    RuntimeFixture fixture;
    fixture.options("alpha").info.physical_id = "pci:0000:03:00.0";
    fixture.options("beta").info.physical_id = same_hardware ? "pci:0000:03:00.0" : "pci:0000:04:00.0";
    fixture.controls("alpha").lose_at = 1;
    fixture.config.device.fallback = Fallback::never;
    RunRequest request = small_conv2d();
    request.device = "alpha";  // the other driver is not asked for its devices
    CHECK(fixture.runtime().run(request).status.code == StatusCode::device_lost);
    request.device = "beta";
    const RunReport report = fixture.runtime().run(request);
    if (!same_hardware) {
      CHECK(report.status.text() == "ok");
      continue;
    }
    CHECK(report.status.code == StatusCode::unavailable);
    CHECK_THAT(report.status.message, Contains("it is the hardware of alpha"));
    CHECK(fixture.controls("beta").builds == 0);
  }
}

TEST_CASE("runtime: a device that fails again and again is set aside") {
  RuntimeFixture fixture;
  RunRequest request = small_conv2d();
  request.device = "alpha";
  for (std::uint64_t value = 1; value <= 3; ++value) {
    fixture.controls("alpha").fail_at = value;
    CHECK(fixture.runtime().run(request).status.code == StatusCode::internal);
  }
  const RunReport after = fixture.runtime().run(request);
  CHECK(after.device.id == "beta");
  CHECK_THAT(after.notes.at(0), Contains("3 jobs failed in a row"));
}

TEST_CASE("runtime: pieces of work are done once each, and what has begun is waited for") {
  std::atomic<int> done{0};
  {
    BackgroundBuilder builder;
    CHECK(builder.ask("one", [&] { ++done; }));
    CHECK_FALSE(builder.ask("one", [&] { done += 100; }));
    CHECK(builder.was_asked("one"));
    CHECK(eventually([&] { return builder.idle(); }));
    CHECK_FALSE(builder.ask("one", [&] { done += 100; }));
  }
  CHECK(done == 1);
}

TEST_CASE("runtime: who does a piece of work is not idle, also where nothing else waits") {
  std::promise<void> begun, end;
  BackgroundBuilder builder;
  CHECK(builder.idle());
  REQUIRE(builder.ask("one", [&] {
    begun.set_value();
    end.get_future().wait();
  }));
  begun.get_future().wait();
  CHECK_FALSE(builder.idle());
  end.set_value();
  CHECK(eventually([&] { return builder.idle(); }));
}

TEST_CASE("runtime: another device serves while the program is built, and the built one is looked at then") {
  RuntimeFixture fixture;
  fixture.options("alpha").info.serializes = false;  // nothing to compile
  fixture.controls("beta").build.close();            // the compiler stands still
  RunReport report;
  for (int i = 0; i < 4; ++i) {
    report = fixture.runtime().run(free_job());
    REQUIRE(report.status.text() == "ok");
    CHECK(report.device.id == "alpha");
  }
  CHECK_THAT(report.selected_because, Contains("serves until the program of beta is built"));
  REQUIRE(fixture.controls("beta").build.await_waiting(1, Deadline::after(std::chrono::seconds(60))));
  fixture.controls("beta").build.open();
  CHECK(eventually([&] { return fixture.runtime().run(free_job()).device.id == "beta"; }));
  CHECK(fixture.controls("beta").builds == 1);
}

TEST_CASE("runtime: serve_while_building = false waits for the compiler; a named device does so always") {
  RuntimeFixture fixture;
  fixture.options("alpha").info.serializes = false;
  fixture.config.selector.serve_while_building = false;
  CHECK(eventually([&] {
    const RunReport report = fixture.runtime().run(free_job());
    CHECK(report.selected_because.find("serves until") == std::string::npos);
    return report.device.id == "beta" && report.tier == Tier::built;
  }));
  RunRequest named = free_job();
  std::get<Conv2dSpec>(named.spec).activation = Activation::relu;
  named.device = "beta";
  CHECK(fixture.runtime().run(named).device.id == "beta");
}

TEST_CASE("runtime: a generic program runs while a shape's own is built, and teaches nobody") {
  RuntimeFixture fixture;
  fixture.config.generator.serve_while_building = true;
  fixture.config.device.prefer = "beta";
  const RunReport first = fixture.runtime().run(free_job());  // there is nothing else yet: it waits for its own
  CHECK(first.variant == "forwarded");
  CHECK(first.tier == Tier::built);
  // Behind it, the generic one. It can be used once it is in memory, later than its build is counted.
  REQUIRE(eventually([&] { return fixture.runtime().cache_stats().programs_in_memory == 2; }));
  CHECK(fixture.controls("beta").builds == 2);
  const int learned = fixture.learned;

  fixture.controls("beta").build.close();  // the compiler stands still
  RunRequest other = free_job();
  std::get<Conv2dSpec>(other.spec).activation = Activation::relu;
  for (int i = 0; i < 3; ++i) {
    const RunReport report = fixture.runtime().run(other);
    REQUIRE(report.status.text() == "ok");
    CHECK(report.variant == "stands in");
    CHECK(report.tier == Tier::memory);
    CHECK_THAT(report.notes.at(0), Contains("beta: runs generic programs"));
  }
  CHECK(fixture.learned == learned);
  REQUIRE(fixture.controls("beta").build.await_waiting(1, Deadline::after(std::chrono::seconds(60))));
  fixture.controls("beta").build.open();
  CHECK(eventually([&] { return fixture.runtime().run(other).variant == "forwarded"; }));
  CHECK(fixture.controls("beta").builds == 3);

  fixture.restart();  // both kept: what is its own serves at once
  const RunReport later = fixture.runtime().run(other);
  CHECK(later.variant == "forwarded");
  CHECK(later.tier == Tier::disk);
  CHECK(later.notes.empty());
}

TEST_CASE("runtime: where its own program cannot be built the error is told, though another one could stand in") {
  RuntimeFixture fixture;
  fixture.config.generator.serve_while_building = true;
  fixture.config.device.prefer = "beta";
  fixture.config.device.fallback = Fallback::never;
  (void)fixture.runtime().run(free_job());
  REQUIRE(eventually([&] { return fixture.runtime().cache_stats().programs_in_memory == 2; }));
  fixture.controls("beta").fail_build = true;
  RunRequest other = free_job();
  std::get<Conv2dSpec>(other.spec).activation = Activation::relu;
  CHECK(eventually([&] { return fixture.runtime().run(other).status.code == StatusCode::invalid_argument; }));
}

TEST_CASE("runtime: explain tells the candidates' figures and runs nothing") {
  RuntimeFixture fixture;
  for (const char* device : {"alpha", "beta", "alpha", "beta"}) {
    RunRequest on_device = free_job();  // so that nothing is left to build ahead, which would end with a dispatch
    on_device.device = device;
    (void)fixture.runtime().run(on_device);
  }
  const auto runs = fixture.controls("alpha").runs + fixture.controls("beta").runs;
  REQUIRE(runs == 4);
  const auto explanation = fixture.runtime().explain(free_job());
  REQUIRE(explanation);
  CHECK(explanation->candidates.size() == 2);
  CHECK_THAT(explanation->bucket, Contains("conv2d 3x3 dense"));
  CHECK_THAT(explanation->words.at(0), Contains("would choose"));
  CHECK(fixture.controls("alpha").runs + fixture.controls("beta").runs == runs);
  RunRequest wrong = free_job();
  std::get<Conv2dSpec>(wrong.spec).k = 0;
  CHECK_FALSE(fixture.runtime().explain(wrong));
}
