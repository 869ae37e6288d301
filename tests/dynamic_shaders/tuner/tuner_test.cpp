#include "dynamic_shaders/tuner/tuner.hpp"

#include <catch2/catch.hpp>
#include <kiln/clock.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "dynamic_shaders/tuner/rounds.hpp"
#include "dynamic_shaders/tuner/synthetic_bench.hpp"
#include "dynamic_shaders/variants.hpp"
#include "support/told_trace.hpp"

namespace kiln::dynamic_shaders {

TEST_CASE("tuner: within 10 % of the best with a quarter of the runs") {
  SyntheticBench all, some;
  TuneTask task = task_on(all);
  task_on(some);
  TuneOptions options;
  options.exhaustive = true;
  const auto whole = tune(task, all, options);
  REQUIRE(whole.has_value());
  CHECK(whole->candidates == 201);
  options.exhaustive = false;
  const auto outcome = tune(task, some, options);
  REQUIRE(outcome.has_value());
  CHECK(some.times[outcome->variant] <= 1.1 * best_time(some));
  CHECK(outcome->candidates <= 201 / 4 + 2);
  const std::uint32_t rounds = 3 * (3 * 17 + 13 * 5);  // of the finalists, at most: a constant
  CHECK(some.total_runs * 4 <= all.total_runs + 4 * rounds);
  CHECK(outcome->baseline == "plain");
  CHECK(static_cast<double>(outcome->baseline_wall_ns) >= 3e7);
  CHECK(outcome->device_ns < outcome->wall_ns);
}

TEST_CASE("tuner: the search ends at a candidate that the model puts above twice the best so far") {
  using Measured = std::set<std::string>;
  const auto measured_with = [](double a_ns, double b_ns, bool ranked, bool exhaustive) {
    SyntheticBench bench(1, 0);
    bench.times = {{"now", 1e6}, {"a", a_ns}, {"b", b_ns}, {"c", 4e6}, {"d", 4e6}, {"e", 4e6}, {"f", 4e6}};
    TuneTask task;
    task.candidates = {{"a", 100, 0}, {"b", 150, 0}, {"c", 200, 0},  {"d", 201, 0},
                       {"e", 300, 0}, {"f", 301, 0}, {"now", 900, 0}};
    task.ranked = ranked;
    task.incumbent = "now";
    Measured measured;
    bench.on_measure = [&](const std::string& variant) { measured.insert(variant); };
    TuneOptions options;
    options.exhaustive = exhaustive;
    const auto outcome = tune(task, bench, options);
    REQUIRE(outcome.has_value());
    CHECK(outcome->candidates == measured.size());
    return measured;
  };
  const Measured of_a = {"now", "a", "b", "c"}, of_b = {"now", "a", "b", "c", "d", "e"};
  const Measured all = {"now", "a", "b", "c", "d", "e", "f"};
  CHECK(measured_with(3e6, 3e6, true, false) == of_a);  // none is faster than what serves: the model's first counts
  CHECK(measured_with(5e5, 3e6, true, false) == of_a);
  CHECK(measured_with(5e5, 4e5, true, false) == of_b);
  CHECK(measured_with(3e6, 5e5, true, false) == of_b);
  CHECK(measured_with(5e5, 3e6, false, false) == all);
  CHECK(measured_with(5e5, 3e6, true, true) == all);
}

TEST_CASE("tuner: the same winner, or one that cannot be told from it, in 19 of 20 runs") {
  std::vector<TuningRecord> winners;
  std::map<std::string, std::size_t> times_won;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SyntheticBench bench(seed, 0.05);
    TuneTask task = task_on(bench);
    task.keep = [&](const std::vector<TuningRecord>& records) {
      std::ranges::copy_if(records, std::back_inserter(winners),
                           [](const TuningRecord& record) { return record.verdict == Verdict::winner; });
    };
    const auto outcome = tune(task, bench, {});
    REQUIRE(outcome.has_value());
    CHECK(bench.times[outcome->variant] <= 1.1 * best_time(bench));
    REQUIRE(winners.size() == seed);
    ++times_won[outcome->variant];
  }
  const auto usual = std::max_element(times_won.begin(), times_won.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto reference = std::find_if(winners.begin(), winners.end(),
                                      [&](const TuningRecord& record) { return record.variant == usual->first; });
  const Interval interval = interval_of(reference->wall_ns);
  const auto alike = std::count_if(winners.begin(), winners.end(), [&](const TuningRecord& record) {
    return record.variant == usual->first || interval_of(record.wall_ns).overlaps(interval);
  });
  CHECK(alike >= 19);
}

TEST_CASE("tuner: a machine that is slower at times gets a variant within a twentieth of the best") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SyntheticBench bench(seed, 0.03);
    TuneTask task = task_on(bench);
    std::size_t measured = 3 * seed;
    bench.on_measure = [&](const std::string&) { bench.slowdown = measured++ / 17 % 2 == 0 ? 1 : 1.25; };
    const auto outcome = tune(task, bench, {});
    REQUIRE(outcome.has_value());
    INFO("seed " << seed << ", " << outcome->variant);
    CHECK(bench.times[outcome->variant] <= 1.05 * best_time(bench));
  }
}

TEST_CASE("tuner: an incumbent goes where it is slower by less than the changes of the machine and the noise, round by round") {
  std::size_t went = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SyntheticBench bench(seed, 0.03);
    TuneTask task;
    for (const char* name : {"a", "b"}) task.candidates.push_back({name, 1e6, 0});
    bench.times = {{"a", 1e6}, {"b", 1.07e6}};
    task.incumbent = "b";
    std::size_t measured = seed;
    bench.on_measure = [&](const std::string&) { bench.slowdown = measured++ / 20 % 2 == 0 ? 1 : 1.4; };
    const auto outcome = tune(task, bench, {});
    REQUIRE(outcome.has_value());
    went += outcome->variant == "a";
  }
  CHECK(went >= 16);  // with intervals of the times themselves it is 2
}

TEST_CASE("tuner: a tie keeps the incumbent, a clear gain does not") {
  SyntheticBench bench(7, 0.05);
  TuneTask task;
  for (const char* name : {"a", "b", "c"}) {
    task.candidates.push_back({name, 1e6, 0});
    bench.times[name] = 1e6;
  }
  task.incumbent = "c";
  bench.times["a"] = 0.999e6;
  auto outcome = tune(task, bench, {});
  REQUIRE(outcome.has_value());
  CHECK(outcome->variant == "c");
  bench.times["b"] = 0.7e6;
  outcome = tune(task, bench, {});
  REQUIRE(outcome.has_value());
  CHECK(outcome->variant == "b");
}

TEST_CASE("tuner: a run that was ended goes on where it was") {
  SyntheticBench bench;
  TuneTask task = task_on(bench);
  std::vector<TuningRecord> kept;
  std::atomic<bool> stop{false};
  task.keep = [&](const std::vector<TuningRecord>& records) {
    std::ranges::copy(records, std::back_inserter(kept));
    if (kept.size() == 10) stop = true;
  };
  TuneOptions options;
  options.stop = &stop;
  const auto ended = tune(task, bench, options);
  REQUIRE_FALSE(ended.has_value());
  CHECK(ended.error().code == StatusCode::unavailable);
  REQUIRE(kept.size() == 10);
  task.known = kept;
  stop = false;
  const auto outcome = tune(task, bench, options);
  REQUIRE(outcome.has_value());
  CHECK(outcome->known == 10);
  CHECK(bench.times[outcome->variant] <= 1.1 * best_time(bench));

  options.again = true;
  const auto again = tune(task, bench, options);
  REQUIRE(again.has_value());
  CHECK(again->known == 0);
}

TEST_CASE("tuner: a winner is published before it is kept, and is none where that fails") {
  SyntheticBench bench;
  TuneTask task = task_on(bench);
  std::vector<std::string> order;
  task.keep = [&](const std::vector<TuningRecord>& records) {
    for (const TuningRecord& record : records)
      if (record.verdict == Verdict::winner) order.push_back("kept " + record.variant);
  };
  TuneOptions options;
  options.publish = [&](const std::string& variant) {
    order.push_back("published " + variant);
    return ok_status();
  };
  const auto outcome = tune(task, bench, options);
  REQUIRE(outcome.has_value());
  CHECK(order == std::vector<std::string>{"published " + outcome->variant, "kept " + outcome->variant});

  order.clear();
  options.publish = [&](const std::string&) { return io_error("the disk is full"); };
  const auto failed = tune(task, bench, options);
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().code == StatusCode::io);
  CHECK_THAT(failed.error().message, Catch::Contains("the disk is full") && Catch::Contains(outcome->variant));
  CHECK(order.empty());
}

TEST_CASE("tuner: what the bench waits for others is no part of the time given") {
  const auto candidates_where = [](bool waits) {
    SyntheticBench bench;
    TuneTask task = task_on(bench);
    bench.on_measure = [&](const std::string&) {
      const std::uint64_t begun = now_ns();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (waits) bench.waited += now_ns() - begun;
    };
    TuneOptions options;
    options.budget = std::chrono::milliseconds(500);
    return tune(task, bench, options)->candidates;
  };
  CHECK(candidates_where(false) <= 8);
  CHECK(candidates_where(true) >= 16);
}

TEST_CASE("tuner: progress goes on through the rounds, and the time left falls to nothing") {
  SyntheticBench bench;
  TuneTask task = task_on(bench);
  bench.on_measure = [&](const std::string&) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  std::vector<TuneProgress> told;
  TuneOptions options;
  options.progress = [&](const TuneProgress& at) { told.push_back(at); };
  const auto outcome = tune(task, bench, options);
  REQUIRE(outcome.has_value());
  const auto rounds = std::ranges::count_if(told, [](const TuneProgress& at) { return at.measured == at.planned; });
  CHECK(rounds >= 16);
  CHECK(told.front().left_ns > 0);
  CHECK(told.back().left_ns == 0);
  for (const TuneProgress& at : told) {
    CHECK(at.left_ns <= static_cast<std::uint64_t>(options.budget.count()));
    CHECK(bench.times.contains(at.best));
  }
}

TEST_CASE("tuner: a stop in the midst of a round ends it there") {
  SyntheticBench bench;
  TuneTask task = task_on(bench);
  std::atomic<bool> stop{false};
  std::map<std::string, int> asked;
  std::size_t after = 0;
  bench.on_measure = [&](const std::string& variant) {
    after += stop;
    if (++asked[variant] == 3) stop = true;  // two looks, then the first round
  };
  TuneOptions options;
  options.stop = &stop;
  REQUIRE_FALSE(tune(task, bench, options).has_value());
  CHECK(stop);
  CHECK(after == 0);
}

TEST_CASE("tuner: a stop in the last rounds chooses nothing") {
  SyntheticBench bench;
  TuneTask task = task_on(bench);
  std::atomic<bool> stop{false};
  std::map<std::string, int> asked;
  bench.on_measure = [&](const std::string& variant) {
    if (++asked[variant] == 4) stop = true;  // two looks, then the second round
  };
  bool won = false;
  task.keep = [&](const std::vector<TuningRecord>& records) {
    for (const TuningRecord& record : records) won = won || record.verdict == Verdict::winner;
  };
  TuneOptions options;
  options.stop = &stop;
  const auto outcome = tune(task, bench, options);
  REQUIRE(stop);
  REQUIRE_FALSE(outcome.has_value());
  CHECK_FALSE(won);
}

TEST_CASE("tuner: a busy machine keeps the stored winner and its record, and reports it") {
  FewVariants f({{"a", 1e6}, {"b", 2e6}, {"c", 3e6}});
  f.task.incumbent = "c";
  f.task.won = true;
  f.bench.contention = 0.5;
  const auto outcome = f.run();
  REQUIRE(outcome.has_value());
  CHECK(outcome->variant == "c");
  CHECK(outcome->decision == TuneDecision::busy);
  CHECK_THAT(outcome->note, Catch::Contains("too busy") && Catch::Contains("c is kept") && Catch::Contains("50 %"));
  CHECK_FALSE(f.kept.contains("c"));
  CHECK(f.count(Verdict::winner) == 0);

  f.task.won = false;  // never tuned: a difference far beyond the noise counts all the same
  const auto untuned = f.run();
  REQUIRE(untuned.has_value());
  CHECK(untuned->variant == "a");
  CHECK(untuned->decision == TuneDecision::faster);
  CHECK_FALSE(untuned->note.empty());
  f.bench.times["c"] = 1.2e6;
  CHECK(f.run()->variant == "c");

  f.bench.contention = 0.05;
  const auto quiet = f.run();
  REQUIRE(quiet.has_value());
  CHECK(quiet->variant == "a");
  CHECK(quiet->note.empty());
}

TEST_CASE("tuner: times that jump from round to round keep the stored winner though nothing reports contention") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    FewVariants f({{"a", 1e6}, {"b", 1e6}});
    f.task.incumbent = "b";
    f.task.won = true;
    std::uint64_t state = seed;
    f.bench.on_measure = [&](const std::string&) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      f.bench.slowdown = 1 + static_cast<double>(state >> 62);
    };
    const auto outcome = f.run();
    REQUIRE(outcome.has_value());
    CHECK(outcome->variant == "b");
    CHECK(outcome->decision != TuneDecision::faster);
  }
}

TEST_CASE("tuner: a stored winner that the bench cannot measure is kept, and so is its record in an interrupted run") {
  FewVariants f({{"a", 1e6}, {"b", 2e6}, {"c", 3e6}});
  f.task.incumbent = "c";
  f.task.won = true;
  int asked = 0;
  f.bench.on_measure = [&](const std::string& variant) {
    if (variant == "c" && ++asked == 4) f.bench.failures["c"] = unavailable("no memory");
  };
  const auto failed = f.run();
  REQUIRE_FALSE(failed.has_value());
  CHECK_THAT(failed.error().message, Catch::Contains("stored winner c is kept") && Catch::Contains("no memory"));
  CHECK_FALSE(f.kept.contains("c"));
  CHECK(f.count(Verdict::winner) == 0);

  f.bench.failures.clear();
  f.options.again = true;
  std::atomic<bool> stop{false};
  f.bench.on_measure = [&](const std::string& variant) { stop = variant == "b"; };
  f.options.stop = &stop;
  REQUIRE_FALSE(f.run().has_value());
  CHECK_FALSE(f.kept.contains("c"));
}

TEST_CASE("tuner: the last progress and the stored winner are the variant of the outcome") {
  for (const bool busy : {false, true}) {
    FewVariants f({{"a", 1e6}, {"b", 1.01e6}, {"c", 1.02e6}});
    f.task.incumbent = "c";
    if (busy) f.bench.contention = 0.5;
    TuneProgress last;
    f.options.progress = [&](const TuneProgress& at) { last = at; };
    const auto outcome = f.run();
    REQUIRE(outcome.has_value());
    CHECK(last.best == outcome->variant);
    CHECK(last.best_ns == outcome->wall_ns);
    CHECK(f.kept.at(outcome->variant).verdict == Verdict::winner);
    CHECK(f.kept.at(outcome->variant).max_rel_error == 0.25);
    CHECK(f.kept.at(outcome->variant).error_bound == 0.5);
    CHECK(f.count(Verdict::winner) == 1);
  }
}

TEST_CASE("nearest: a convolution is read back from its text; distance needs like kernels") {
  Conv2dSpec a;
  a.c = 64, a.h = a.w = 56, a.k = 64, a.r = a.s = 3, a.pad_y = a.pad_x = 1;
  a.bias = Bias::per_channel, a.activation = Activation::relu, a.accuracy = Accuracy::winograd;
  REQUIRE(conv_of(canonical_text(a)).has_value());
  CHECK(*conv_of(canonical_text(a)) == a);
  CHECK_FALSE(conv_of("conv2d n=1").has_value());
  CHECK_FALSE(conv_of(canonical_text(GemmSpec{1, 2, 3})).has_value());
  Conv2dSpec b = a;
  CHECK(distance(a, b) == 0.0);
  b.c = 128;
  CHECK(distance(a, b) == 1.0);
  CHECK(distance(b, a) == 1.0);
  b.stride_y = 2;
  CHECK_FALSE(distance(a, b).has_value());
}

TEST_CASE("tuner: a trace is told every measurement, each new best, and the winner with its rivals' times") {
  SyntheticBench bench;
  TuneTask task = task_on(bench);
  bench.failures["v3"] = corrupt("wrong");
  test::ToldTrace trace;
  task.trace = &trace;
  const auto outcome = tune(task, bench, {});
  REQUIRE(outcome);
  std::size_t measured = 0, rejected = 0;
  double runs = 0, best = 1e300;
  for (const test::ToldEvent& event : trace.events()) {
    CHECK(event.area == TraceArea::tuner);
    if (event.name == "measure") {
      ++measured;
      runs += event.numbers.at("runs");
      rejected += event.words.contains("rejected");
      CHECK(event.words.contains("rejected") == (event.words.at("variant") == "v3"));
    }
    if (event.name == "best so far") {
      CHECK(event.numbers.at("median_wall_ms") < best);
      best = event.numbers.at("median_wall_ms");
    }
  }
  CHECK(measured > outcome->candidates);  // the rounds of the last come on top
  CHECK(runs == bench.total_runs);
  CHECK(rejected == outcome->rejected.size());
  const test::ToldEvent winner = trace.events().back();
  CHECK(winner.name == "winner");
  CHECK(winner.words.at("variant") == outcome->variant);
  CHECK(winner.numbers.at("measured") == static_cast<double>(outcome->candidates));
  CHECK(winner.numbers.at(outcome->variant + " median_wall_ms") == static_cast<double>(outcome->wall_ns) / 1e6);
}

}  // namespace kiln::dynamic_shaders
