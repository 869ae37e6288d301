#include "core/selector/candidates.hpp"
#include "support/told_trace.hpp"

#include <catch2/catch.hpp>

#include <kiln/selector_admin.hpp>

#include <atomic>
#include <cmath>
#include <map>
#include <thread>

using namespace kiln;
using namespace kiln::test;

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
    const auto choice = selector->select(conv(64, 56), all, {});
    CHECK(choice->candidate == 0);
  }
}

TEST_CASE("selector learning: the reason gives the numbers", "[selector]") {
  const Fleet fleet({device_of("cpu"), device_of("opengl:0")});
  const auto selector = learning("ema");
  const KernelSpec spec = conv(64, 56);
  for (int i = 0; i < 12; ++i) selector->record(spec, fleet[0], run_of(0.48), {});
  selector->record(spec, fleet[1], run_of(31), {});
  const auto all = fleet.candidates();
  CHECK(selector->select(spec, all, {})->because ==
        "cpu: 0.48 ms expected (12 runs), opengl:0: 31 ms expected (1 run)");
}

TEST_CASE("selector learning: a queue and a cold program are part of the cost", "[selector]") {
  const Fleet fleet({device_of("fast"), device_of("slow")});
  const auto selector = learning("ema");
  const KernelSpec spec = conv(64, 56);
  Measurement cold = run_of(2);
  cold.build_ns = 40'000'000;
  cold.tier = Tier::built;
  cold.first_run = true;
  RunConditions compiled;
  compiled.build_ns = 40'000'000;
  selector->record(spec, fleet[0], cold, compiled);
  for (int i = 0; i < 4; ++i) {
    selector->record(spec, fleet[0], run_of(2), {});
    selector->record(spec, fleet[1], run_of(5), {});
  }
  auto all = fleet.candidates();
  CHECK(selector->select(spec, all, {})->candidate == 0);
  all[0].queue_wait_ns = 10'000'000;
  const auto queued = selector->select(spec, all, {});
  CHECK(queued->candidate == 1);
  CHECK_THAT(queued->because, Catch::Contains("10 ms queue"));
  all[0].queue_wait_ns = 0;
  all[0].cold = true;
  const auto built = selector->select(spec, all, {});
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
    selector->record(spec, fleet[0], waited, {});
    selector->record(spec, fleet[1], run_of(5), {});
  }
  const auto all = fleet.candidates();
  CHECK(selector->select(spec, all, {})->candidate == 0);
}

TEST_CASE("selector learning: what is not a fair run is not learned from", "[selector]") {
  Lines lines;
  const Fleet fleet({device_of("one", 1000), device_of("two", 1000)});
  const auto selector = learning("ema", 0.02, {&lines, LogLevel::warning});
  const KernelSpec spec = conv(64, 56);  // 0.23 GFLOP: 0.23 ms at the roof
  for (int i = 0; i < 5; ++i) {
    selector->record(spec, fleet[0], run_of(2), {});
    selector->record(spec, fleet[1], run_of(4), {});
  }
  Measurement unfair = run_of(0.5);
  SECTION("a first run") { unfair.first_run = true; }
  SECTION("a run that packed a Constant") { unfair.prepared = true; }
  SECTION("a wrong result") { unfair.verified = false; }
  SECTION("nothing measured") { unfair.wall_ns = 0; }
  SECTION("above the roof, by wall time") { unfair.wall_ns = 20'000; }
  SECTION("above the roof, by the device's own time") { unfair.device_ns = 20'000; }
  const bool above = unfair.wall_ns == 20'000 || unfair.device_ns != 0;
  for (int i = 0; i < 50; ++i) selector->record(spec, fleet[1], unfair, {});
  const auto all = fleet.candidates();
  CHECK(selector->select(spec, all, {})->candidate == 0);
  CHECK_THAT(selector->select(spec, all, {})->because, Catch::Contains("two: 4 ms expected (5 runs)"));
  CHECK(lines.mention("the roof of the device") == above);
}

TEST_CASE("selector learning: Winograd's effective rate may pass the roof of plain sums", "[selector]") {
  const Fleet fleet({device_of("one", 1000), device_of("two", 1000)});
  const auto selector = learning("ema");
  Conv2dSpec spec = conv(64, 56);
  spec.accuracy = Accuracy::winograd;
  for (int i = 0; i < 3; ++i) selector->record(spec, fleet[0], run_of(0.15), {});  // 1.5 times the roof
  for (int i = 0; i < 3; ++i) selector->record(spec, fleet[1], run_of(0.9), {});
  const auto all = fleet.candidates();
  CHECK_THAT(selector->select(spec, all, {})->because, Catch::Contains("one: 0.15 ms expected (3 runs)"));
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

TEST_CASE("selector learning: every reason for which a run is not learned from is counted", "[selector]") {
  const TemporaryFolder folder;
  const Fleet fleet({device_of("one", 1000), device_of("two")});
  SelectorContext context;
  context.cache_directory = folder.path();
  {
    const auto selector = selector_of("learning", context);
    const auto record = [&](const Measurement& run, const RunConditions& conditions) {
      selector->record(conv(64, 56), fleet[0], run, conditions);
    };
    RunConditions timeout, fault, beside;
    timeout.status = timed_out("late");
    fault.status = device_lost("gone");
    beside.contended = true;
    record({}, timeout);
    record({}, fault);
    record({}, fault);
    record(run_of(2), beside);
    Measurement first = run_of(2), wrong = run_of(2), packed = run_of(2);
    first.first_run = true, wrong.verified = false, packed.prepared = true;
    record(first, {});
    record(wrong, {});
    record(packed, {});
    record(run_of(0.01), {});    // above the roof
    record(run_of(0.0001), {});  // 100 ns: less than the clock tells apart
    record(run_of(2), {});
  }
  const auto model = read_selector_model(folder.path());
  REQUIRE(model);
  const std::map<std::string, std::uint64_t> expected{{"above_roof", 1}, {"contended", 1},   {"faulted", 2},
                                                      {"first_run", 1},  {"prepared", 1},    {"timed_out", 1},
                                                      {"too_short", 1},  {"wrong_result", 1}};
  CHECK(model->not_learned == expected);
  REQUIRE(model->arms.size() == 1);
  CHECK(model->arms[0].runs == 1);
  CHECK(model->arms[0].first_runs == 1);
}

TEST_CASE("selector learning: a process that runs each job once still learns", "[selector]") {
  const TemporaryFolder folder;
  const Fleet fleet({device_of("slow"), device_of("fast")});
  SelectorContext context;
  context.cache_directory = folder.path();
  context.config.policy = "ema";
  std::size_t last = 0;
  for (int process = 0; process < 6; ++process) {
    const auto selector = selector_of("learning", context);
    auto all = fleet.candidates();
    for (Candidate& candidate : all) candidate.cold = true;
    const auto choice = selector->select(conv(64, 56), all, {});
    last = choice->candidate;
    Measurement first = run_of(last == 0 ? 20 : 5);
    first.first_run = true;
    selector->record(conv(64, 56), fleet[last], first, {});
    if (process == 5) CHECK_THAT(choice->because, Catch::Contains("first run"));
  }
  CHECK(last == 1);
}

TEST_CASE("selector learning: a job with a deadline pays for no exploring", "[selector]") {
  const Fleet fleet({device_of("known"), device_of("unknown")});
  const auto selector = learning();
  for (int i = 0; i < 4; ++i) selector->record(conv(64, 56), fleet[0], run_of(3), {});
  const auto all = fleet.candidates();
  JobTerms urgent;
  urgent.has_deadline = true;
  for (int i = 0; i < 50; ++i) {
    const auto choice = selector->select(conv(64, 56), all, urgent);
    CHECK(choice->candidate == 0);
    CHECK_THAT(choice->because, Catch::Contains("deadline"));
  }
  CHECK(selector->select(conv(64, 56), all, {})->candidate == 1);  // without one it is looked at
}

TEST_CASE("selector learning: a build is shared by the runs that it is expected to serve", "[selector]") {
  const Fleet fleet({device_of("steady"), device_of("built")});
  const auto selector = learning("ema");
  for (int i = 0; i < 4; ++i) {
    selector->record(conv(64, 56), fleet[0], run_of(5), {});
    selector->record(conv(64, 56), fleet[1], run_of(2), {});
  }
  Measurement run = run_of(2);
  run.tier = Tier::built;
  RunConditions built;
  built.build_ns = 90'000'000;
  selector->record(conv(64, 56), fleet[1], run, built);
  auto all = fleet.candidates();
  all[1].cold = true;
  JobTerms many;
  many.repeat = 100;
  CHECK(selector->explain(conv(64, 56), all, {})->choice.candidate == 0);
  CHECK(selector->explain(conv(64, 56), all, many)->choice.candidate == 1);
  int before = 0;
  while (selector->select(conv(64, 56), all, {})->candidate == 0 && before < 200) ++before;
  CHECK(before >= 20);  // 90 ms ÷ 3 ms: as a skier who buys after having rented for the price
  CHECK(before <= 40);
}

TEST_CASE("selector learning: another serves while the best one's program is built", "[selector]") {
  DeviceInfo compiled = device_of("compiled");
  compiled.serializes = true;
  const Fleet fleet({device_of("at hand"), compiled});
  const auto selector = learning("ema");
  JobTerms terms;
  terms.can_build_ahead = true;
  auto all = fleet.candidates();
  all[0].cold = all[1].cold = true;
  SECTION("one that was never looked at") {
    const auto first = selector->select(conv(64, 56), all, terms);  // what needs no compiler comes first
    CHECK(first->candidate == 0);
    CHECK_FALSE(first->build_ahead);
    selector->record(conv(64, 56), fleet[0], run_of(5), {});
    all[0].cold = false;
    const auto second = selector->select(conv(64, 56), all, terms);
    CHECK(second->candidate == 0);
    CHECK(second->build_ahead == 1u);
    CHECK_THAT(second->because, Catch::Contains("serves until the program of compiled is built"));
    all[1].cold = false;
    CHECK(selector->select(conv(64, 56), all, terms)->candidate == 1);
  }
  const auto record_known_best = [&](const Fleet& known, std::size_t best) {
    for (int i = 0; i < 4; ++i) {
      selector->record(conv(64, 56), known[1 - best], run_of(5), {});
      selector->record(conv(64, 56), known[best], run_of(2), {});
    }
    Measurement run = run_of(2);
    run.tier = Tier::built;
    RunConditions built;
    built.build_ns = 90'000'000;
    selector->record(conv(64, 56), known[best], run, built);
  };
  SECTION("one that is known to be the best") {
    record_known_best(fleet, 1);
    all[0].cold = false;
    const auto choice = selector->select(conv(64, 56), all, terms);
    CHECK(choice->candidate == 0);
    CHECK(choice->build_ahead == 1u);
    all[1].cold = false;
    CHECK(selector->select(conv(64, 56), all, terms)->candidate == 1);
    all[1].cold = true;
    terms.can_build_ahead = false;
    CHECK_FALSE(selector->select(conv(64, 56), all, terms)->build_ahead);
  }
  SECTION("one that is known to be the best, and is offered first") {
    const Fleet other({compiled, device_of("at hand")});
    auto offered = other.candidates();
    record_known_best(other, 0);
    offered[0].cold = true;
    const auto choice = selector->select(conv(64, 56), offered, terms);
    CHECK(choice->candidate == 1);
    CHECK(choice->build_ahead == 0u);
  }
  SECTION("shapes that do not come back: the look is taken after all") {
    selector->record(conv(64, 56), fleet[0], run_of(5), {});
    int jobs = 0;
    all[0].cold = false;
    while (selector->select(conv(64, 56), all, terms)->candidate == 0 && jobs < 50) ++jobs;
    CHECK(jobs == 8);
  }
}

TEST_CASE("selector learning: explain gives the numbers and changes nothing", "[selector]") {
  const Fleet fleet({device_of("cpu"), device_of("opengl:0")});
  const auto selector = learning();
  Measurement moved = run_of(0.5);
  moved.upload_ns = 30'000, moved.readback_ns = 20'000;
  for (int i = 0; i < 12; ++i) selector->record(conv(64, 56), fleet[0], moved, {});
  const auto all = fleet.candidates();
  const auto before = selector->explain(conv(64, 56), all, {});
  REQUIRE(before);
  for (int i = 0; i < 20; ++i) (void)selector->explain(conv(64, 56), all, {});
  const auto after = selector->explain(conv(64, 56), all, {});
  CHECK(after->words == before->words);
  CHECK(before->choice.candidate == 1);
  CHECK_THAT(before->choice.because, Catch::StartsWith("exploration run 1 of at most 3"));
  REQUIRE(before->candidates.size() == 2);
  CHECK(before->candidates[0].transfer_ns == Approx(50'000));
  CHECK(before->candidates[0].run_ns == Approx(450'000));
  CHECK(before->candidates[0].cost_ns == Approx(500'000));
  CHECK(before->candidates[0].evidence == "12 runs");
  CHECK(before->candidates[1].evidence == "not measured yet");
  CHECK(std::isinf(before->candidates[1].cost_ns));
  CHECK_THAT(before->words.at(1), Catch::Contains("0.45 ms run + 0.05 ms transfer"));
}

TEST_CASE("selector learning: an explanation has every part of the cost in words", "[selector]") {
  const Fleet fleet({device_of("a"), device_of("b")});
  SelectorContext context;
  context.config.policy = "ema";
  context.config.exploration = 0.025;
  const auto selector = selector_of("learning", context);
  for (int i = 0; i < 4; ++i) selector->record(conv(64, 56), fleet[0], run_of(5), {});
  Measurement run = run_of(2);
  run.tier = Tier::built;
  run.upload_ns = 500'000;
  RunConditions built;
  built.build_ns = 90'000'000;
  for (int i = 0; i < 3; ++i) selector->record(conv(64, 56), fleet[1], run, built);
  auto all = fleet.candidates();
  all[1].cold = true;
  all[1].queue_wait_ns = 6'000'000;
  JobTerms terms;
  terms.repeat = 3;
  const auto explained = selector->explain(conv(64, 56), all, terms);
  REQUIRE(explained);
  CHECK(explained->bucket == "conv2d 3x3 dense direct f32 @28.0/21");
  CHECK(explained->choice.candidate == 0);
  REQUIRE(explained->words.size() == 4);
  CHECK(explained->words[0] ==
        "would choose a: a: 5 ms expected (4 runs), b: 2 ms expected (3 runs) + 6 ms queue + 90 ms build shared by 3 "
        "runs");
  CHECK(explained->words[1] == "a: 5 ms = 5 ms run (4 runs, within x1.0)");
  CHECK(explained->words[2] ==
        "b: 34 ms = 1.5 ms run + 0.5 ms transfer + 6 ms queue + 90 ms build ÷ 3 runs (3 runs, within x1.0); x6.8 of "
        "the chosen");
  CHECK(explained->words[3] == "exploration may take 2.5 % of the time; in this process it took 0 ms of 26 ms");
  // A build is for as many runs as there were before, with those that are asked for.
  terms.repeat = 4;
  REQUIRE(selector->select(conv(64, 56), all, terms));
  terms.repeat = 3;
  const auto later = selector->explain(conv(64, 56), all, terms);
  REQUIRE(later);
  REQUIRE(later->words.size() == 4);
  CHECK_THAT(later->words[2], Catch::Contains(" + 90 ms build ÷ 7 runs ("));
}

TEST_CASE("selector learning: an explanation of what is not known yet, and of looks", "[selector]") {
  const Fleet fleet({device_of("a"), device_of("b")});
  const auto selector = learning("ema");
  CHECK(selector->select(conv(64, 56), fleet.candidates(), {})->candidate == 0);
  selector->record(conv(64, 56), fleet[0], run_of(5), {});
  CHECK(selector->select(conv(64, 56), fleet.candidates(), {})->candidate == 1);
  const auto explained = selector->explain(conv(64, 56), fleet.candidates(), {});
  REQUIRE(explained);
  REQUIRE(explained->words.size() == 4);
  CHECK_THAT(explained->words[1],
             Catch::StartsWith("a: 5 ms = 5 ms run (1 run, within x") && Catch::EndsWith(", looks 1)"));
  CHECK(explained->words[2] == "b: not measured yet, and no estimate is possible");
  CHECK(explained->candidates[1].looks == 1);
}

TEST_CASE("selector learning: each decision is told to a trace, with its figures", "[selector]") {
  const Fleet fleet({device_of("a"), device_of("b")});
  ToldTrace trace;
  SelectorContext context;
  context.config.policy = "ema";
  context.trace = &trace;
  const auto selector = selector_of("learning", context);
  Measurement run = run_of(2);
  run.tier = Tier::built;
  run.upload_ns = 500'000;
  RunConditions built;
  built.build_ns = 90'000'000;
  for (int i = 0; i < 4; ++i) {
    selector->record(conv(64, 56), fleet[0], run_of(5), {});
    selector->record(conv(64, 56), fleet[1], run, built);
  }
  auto all = fleet.candidates();
  all[1].cold = true;
  all[1].queue_wait_ns = 6'000'000;
  CHECK(trace.events().empty());
  REQUIRE(selector->select(conv(64, 56), all, {}));
  const auto events = trace.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].area == TraceArea::selector);
  CHECK(events[0].name == "decision");
  CHECK_FALSE(events[0].end_ns);
  CHECK(events[0].words == std::map<std::string, std::string>{{"bucket", "conv2d 3x3 dense direct f32 @28.0/21"},
                                                              {"chosen", "a"},
                                                              {"ground", "policy"},
                                                              {"a evidence", "4 runs"},
                                                              {"b evidence", "4 runs"}});
  const std::map<std::string, double> expected{
      {"a cost_ms", 5},  {"a run_ms", 5},   {"a transfer_ms", 0},   {"a queue_ms", 0}, {"a build_ms", 0},
      {"b cost_ms", 98}, {"b run_ms", 1.5}, {"b transfer_ms", 0.5}, {"b queue_ms", 6}, {"b build_ms", 90}};
  REQUIRE(events[0].numbers.size() == expected.size());
  for (const auto& [name, number] : expected) {
    CAPTURE(name);
    REQUIRE(events[0].numbers.contains(name));
    CHECK(events[0].numbers.at(name) == Approx(number).margin(1e-9));
  }
}

TEST_CASE("selector learning: a device that changed is told once", "[selector]") {
  const auto [before, after, words] = GENERATE(table<double, double, std::string>(
      {{2, 20, "device one: conv2d 3x3 dense direct f32 @28.0/21 has become slower: now "},
       {20, 2, "device one: conv2d 3x3 dense direct f32 @28.0/21 has become faster: now "}}));
  Lines lines;
  const Fleet fleet({device_of("one")});
  const auto selector = learning("ema", 0.02, {&lines, LogLevel::info});
  for (int i = 0; i < 30; ++i) selector->record(conv(64, 56), fleet[0], run_of(before), {});
  CHECK(lines.all.empty());
  for (int i = 0; i < 10; ++i) selector->record(conv(64, 56), fleet[0], run_of(after), {});
  REQUIRE(lines.all.size() == 1);
  CHECK(lines.all[0] == words + (after > before ? "20 ms" : "2 ms"));
}

TEST_CASE("selector learning: a build is learned where it was alone and ended well", "[selector]") {
  const Fleet fleet({device_of("a"), device_of("b")});
  RunConditions conditions;
  conditions.build_ns = 90'000'000;
  double build_ms = 0;
  Measurement run = run_of(2);
  run.tier = Tier::built;
  SECTION("alone") { build_ms = 90; }
  SECTION("beside others") { conditions.contended = true; }
  SECTION("of a run that failed") { conditions.status = internal_error("broken"); }
  SECTION("of a program that came from elsewhere") { run.tier = Tier::disk, build_ms = 90; }
  const auto selector = learning("ema");
  for (int i = 0; i < 4; ++i) selector->record(conv(64, 56), fleet[0], run_of(2), {});
  selector->record(conv(64, 56), fleet[0], run, conditions);
  auto all = fleet.candidates();
  all[0].cold = true;
  const auto explained = selector->explain(conv(64, 56), all, {});
  REQUIRE(explained);
  CHECK(explained->candidates[0].build_ns == Approx(build_ms * 1e6));
}

TEST_CASE("selector learning: any thread may select and record", "[selector]") {
  const Fleet fleet({device_of("one"), device_of("two")});
  const auto selector = learning();
  std::atomic<int> chosen{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        // In proportion to the operations, or a shape deceives about another one.
        chosen += static_cast<int>(fleet.serve(*selector, conv(8 << t, 16),
                                               [t](std::size_t d) { return (d == 0 ? 1.0 : 8.0) * (1 << (2 * t)); }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(chosen >= 1);
  CHECK(chosen <= 4 * 3);  // three looks at "two" for each shape
}

TEST_CASE("selector learning: a wrong configuration is refused with the expected values", "[selector]") {
  SelectorContext context;
  std::string expected;
  SECTION("policy") { context.config.policy = "luck", expected = "ema, epsilon, ucb or thompson"; }
  SECTION("ema_alpha") { context.config.ema_alpha = 0, expected = "more than 0 and at most 1"; }
  SECTION("ema_alpha above 1") { context.config.ema_alpha = 1.01, expected = "ema_alpha = 1.010000"; }
  SECTION("ema_alpha, no number") { context.config.ema_alpha = std::nan(""), expected = "more than 0 and at most 1"; }
  SECTION("exploration") { context.config.exploration = 1.5, expected = "0 to 1"; }
  SECTION("exploration below 0") { context.config.exploration = -0.01, expected = "exploration = -0.010000"; }
  CHECK_THROWS_WITH(selector_of("learning", context), Catch::Contains("invalid_argument") && Catch::Contains(expected));
}

TEST_CASE("selector learning: the ends of what a configuration may say", "[selector]") {
  SelectorContext context;
  for (const double exploration : {0.0, 1.0}) {
    for (const double ema_alpha : {0.001, 1.0}) {
      context.config.exploration = exploration;
      context.config.ema_alpha = ema_alpha;
      CHECK_NOTHROW(selector_of("learning", context));
    }
  }
}
