#include "core/selector/candidates.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <random>
#include <thread>

using namespace kiln;
using namespace kiln::test;

namespace {

std::unique_ptr<DeviceSelector> learning(const std::string& policy = "thompson", Log log = {}) {
  SelectorContext context;
  context.log = log;
  context.config.policy = policy;
  return selector_of("learning", context);
}

}  // namespace

TEST_CASE("selector learning: the faster device is found, whatever the policy", "[selector]") {
  const auto policy = GENERATE("ema", "epsilon", "ucb", "thompson");
  CAPTURE(policy);
  const Fleet fleet({device_of("slow"), device_of("fast"), device_of("middling")});
  const auto selector = learning(policy);
  const double truth[] = {9, 3, 6};
  int right = 0;
  for (int i = 0; i < 200; ++i)
    right += fleet.serve(*selector, conv(64, 56), [&](std::size_t d) { return truth[d]; }) == 1;
  CHECK(right >= 180);
}

TEST_CASE("selector learning: names and kinds decide nothing, times do", "[selector]") {
  // The same two devices twice; the second time what they are called and what they are is swapped, their times are not.
  for (const bool swapped : {false, true}) {
    DeviceInfo cpu = device_of("a"), gpu = device_of("b");
    cpu.kind = DeviceKind::cpu, cpu.name = "eight cores", cpu.driver = "oneDNN";
    gpu.kind = DeviceKind::gpu, gpu.name = "a big card", gpu.driver = "Mesa";
    if (swapped) std::swap(cpu.kind, gpu.kind), std::swap(cpu.name, gpu.name), std::swap(cpu.driver, gpu.driver);
    const Fleet fleet({cpu, gpu});
    const auto selector = learning();
    const double truth[] = {1, 50};
    for (int i = 0; i < 8; ++i) fleet.serve(*selector, conv(64, 56), [&](std::size_t d) { return truth[d]; });
    const auto all = fleet.candidates();
    const auto choice = selector->select(conv(64, 56), all);
    CHECK(choice->candidate == 0);
  }
}

TEST_CASE("selector learning: the reason gives the numbers", "[selector]") {
  const Fleet fleet({device_of("cpu"), device_of("opengl:0")});
  const auto selector = learning("ema");
  const KernelSpec spec = conv(64, 56);
  for (int i = 0; i < 12; ++i) selector->record(spec, fleet[0], run_of(0.48));
  selector->record(spec, fleet[1], run_of(31));
  const auto all = fleet.candidates();
  CHECK(selector->select(spec, all)->because == "cpu: 0.48 ms expected (12 runs), opengl:0: 31 ms expected (1 run)");
}

TEST_CASE("selector learning: a queue and a cold program are part of the cost", "[selector]") {
  const Fleet fleet({device_of("fast"), device_of("slow")});
  const auto selector = learning("ema");
  const KernelSpec spec = conv(64, 56);
  Measurement cold = run_of(2);
  cold.build_ns = 40'000'000;
  cold.tier = Tier::built;
  cold.first_run = true;
  selector->record(spec, fleet[0], cold);
  for (int i = 0; i < 4; ++i) {
    selector->record(spec, fleet[0], run_of(2));
    selector->record(spec, fleet[1], run_of(5));
  }
  auto all = fleet.candidates();
  CHECK(selector->select(spec, all)->candidate == 0);
  all[0].queue_wait_ns = 10'000'000;
  const auto queued = selector->select(spec, all);
  CHECK(queued->candidate == 1);
  CHECK_THAT(queued->because, Catch::Contains("10 ms queue"));
  all[0].queue_wait_ns = 0;
  all[0].cold = true;
  const auto built = selector->select(spec, all);
  CHECK(built->candidate == 1);
  CHECK_THAT(built->because, Catch::Contains("40 ms build"));
}

TEST_CASE("selector learning: the wait in the queue is not taken for the device's speed", "[selector]") {
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto selector = learning("ema");
  const KernelSpec spec = conv(64, 56);
  Measurement waited = run_of(102);
  waited.queue_ns = 100'000'000;
  for (int i = 0; i < 4; ++i) {
    selector->record(spec, fleet[0], waited);
    selector->record(spec, fleet[1], run_of(5));
  }
  const auto all = fleet.candidates();
  CHECK(selector->select(spec, all)->candidate == 0);
}

TEST_CASE("selector learning: what is not a fair run is not learned from", "[selector]") {
  Lines lines;
  const Fleet fleet({device_of("one", 1000), device_of("two", 1000)});
  const auto selector = learning("ema", {&lines, LogLevel::warning});
  const KernelSpec spec = conv(64, 56);  // 0.23 GFLOP: 0.23 ms at the roof
  for (int i = 0; i < 5; ++i) {
    selector->record(spec, fleet[0], run_of(2));
    selector->record(spec, fleet[1], run_of(4));
  }
  Measurement unfair = run_of(0.5);
  SECTION("a first run") { unfair.first_run = true; }
  SECTION("a run that packed a Constant") { unfair.prepared = true; }
  SECTION("a wrong result") { unfair.verified = false; }
  SECTION("nothing measured") { unfair.wall_ns = 0; }
  SECTION("above the roof, by wall time") { unfair.wall_ns = 20'000; }
  SECTION("above the roof, by the device's own time") { unfair.device_ns = 20'000; }
  const bool above = unfair.wall_ns == 20'000 || unfair.device_ns != 0;
  for (int i = 0; i < 50; ++i) selector->record(spec, fleet[1], unfair);
  const auto all = fleet.candidates();
  CHECK(selector->select(spec, all)->candidate == 0);
  CHECK_THAT(selector->select(spec, all)->because, Catch::Contains("two: 4 ms expected (5 runs)"));
  CHECK(lines.mention("its roof") == above);
}

TEST_CASE("selector learning: Winograd's effective rate may pass the roof of plain sums", "[selector]") {
  const Fleet fleet({device_of("one", 1000), device_of("two", 1000)});
  const auto selector = learning("ema");
  Conv2dSpec spec = conv(64, 56);
  spec.accuracy = Accuracy::winograd;
  for (int i = 0; i < 3; ++i) selector->record(spec, fleet[0], run_of(0.15));  // 1.5 times the roof
  for (int i = 0; i < 3; ++i) selector->record(spec, fleet[1], run_of(0.9));
  const auto all = fleet.candidates();
  CHECK_THAT(selector->select(spec, all)->because, Catch::Contains("one: 0.15 ms expected (3 runs)"));
}

TEST_CASE("selector learning: a device that has become slow is left", "[selector]") {
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto selector = learning("ema");
  double truth[] = {2, 3};
  const auto run = [&](std::size_t d) { return truth[d]; };
  for (int i = 0; i < 30; ++i) fleet.serve(*selector, conv(64, 56), run);
  truth[0] = 20;
  int jobs = 0;
  while (fleet.serve(*selector, conv(64, 56), run) == 0 && jobs < 100) ++jobs;
  CHECK(jobs < 20);
}

TEST_CASE("selector learning: right after few visits, with noise, for most seeds", "[selector]") {
  int right = 0, asked = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    std::lognormal_distribution<double> noise(0, 0.1);
    // Each device has a speed of its own, and each shape suits each device differently.
    std::lognormal_distribution<double> speed(0, 0.7), suits(0, 0.5);
    const double slowness[] = {speed(random), speed(random), speed(random)};
    const Fleet fleet({device_of("a"), device_of("b"), device_of("c")});
    const auto selector = learning();
    for (std::int64_t bucket = 0; bucket < 8; ++bucket) {
      const KernelSpec spec = conv(16, std::int64_t{8} << bucket);
      double truth[3];
      for (std::size_t d = 0; d < 3; ++d) truth[d] = flops(spec) / 1e8 * slowness[d] * suits(random);
      const std::size_t best = static_cast<std::size_t>(std::min_element(truth, truth + 3) - truth);
      for (int visit = 0; visit < 24; ++visit) {
        const std::size_t chosen =
            fleet.serve(*selector, spec, [&](std::size_t d) { return truth[d] * noise(random); });
        if (visit < 9) continue;  // three looks at each at most
        ++asked;
        right += truth[chosen] <= 1.15 * truth[best];  // as good as noise can tell
      }
    }
  }
  CHECK(right >= 0.95 * asked);
}

TEST_CASE("selector learning: any thread may select and record", "[selector]") {
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto selector = learning();
  std::atomic<int> chosen{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        chosen += static_cast<int>(
            fleet.serve(*selector, conv(8 << t, 16), [](std::size_t d) { return d == 0 ? 1.0 : 8.0; }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(chosen < 60);  // "two" is seldom chosen
}

TEST_CASE("selector learning: a wrong configuration is refused with the expected values", "[selector]") {
  SelectorContext context;
  std::string expected;
  SECTION("policy") { context.config.policy = "luck", expected = "ema, epsilon, ucb or thompson"; }
  SECTION("ema_alpha") { context.config.ema_alpha = 0, expected = "above 0, up to 1"; }
  SECTION("exploration") { context.config.exploration = 1.5, expected = "0 to 1"; }
  CHECK_THROWS_WITH(selector_of("learning", context), Catch::Contains("invalid_argument") && Catch::Contains(expected));
}
