// Variants that fail, crash, hang or are wrong: none of them wins, and each is told.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

#include "dynamic_shaders/tuner/synthetic_bench.hpp"

namespace kiln::dynamic_shaders {

TEST_CASE("tuner: what hangs, crashes or computes wrongly is recorded and never chosen") {
  SyntheticBench bench;
  TuneTask task = task_on(bench);
  bench.failures["v0"] = timed_out("hung");
  bench.failures["v1"] = device_lost("ended by SIGSEGV");
  bench.failures["v2"] = corrupt("wrong");
  for (const char* name : {"v0", "v1", "v2"}) bench.times[name] = 1;  // faster than anything
  std::vector<TuningRecord> kept;
  task.keep = [&](const std::vector<TuningRecord>& records) { std::ranges::copy(records, std::back_inserter(kept)); };
  const auto outcome = tune(task, bench, {});
  REQUIRE(outcome.has_value());
  CHECK(bench.failures.count(outcome->variant) == 0);
  REQUIRE(outcome->rejected.size() == 3);
  CHECK_THAT(outcome->rejected[0], Catch::Contains("v0") && Catch::Contains("hung"));
  std::size_t rejected = 0, winners = 0;
  for (const TuningRecord& record : kept) {
    rejected += record.verdict == Verdict::rejected;
    winners += record.verdict == Verdict::winner;
    if (record.verdict == Verdict::winner) CHECK(record.variant == outcome->variant);
  }
  CHECK(rejected == 3);
  CHECK(winners == 1);
}

TEST_CASE("tuner: a bench that fails by itself in the last rounds costs no variant its record, and chooses nothing") {
  SyntheticBench bench;
  TuneTask task = task_on(bench);
  std::map<std::string, Verdict> kept;
  task.keep = [&](const std::vector<TuningRecord>& records) {
    for (const TuningRecord& record : records) kept[record.variant] = record.verdict;
  };
  const auto first = tune(task, bench, {});
  REQUIRE(first.has_value());
  for (const auto& [variant, verdict] : kept) task.known.push_back(task.form), task.known.back().variant = variant;
  for (TuningRecord& record : task.known) {
    record.verdict = Verdict::measured;
    record.wall_ns = {static_cast<std::uint64_t>(bench.times[record.variant])};
    record.device_ns = record.wall_ns;
  }
  kept.clear();
  for (const auto& [variant, time] : bench.times) bench.failures[variant] = unavailable("no device any more");
  const auto outcome = tune(task, bench, {});
  REQUIRE_FALSE(outcome.has_value());
  CHECK(outcome.error().code == StatusCode::unavailable);
  CHECK(kept.empty());
}

TEST_CASE("tuner: where all fail in the last rounds, why is kept, and nothing is chosen") {
  SyntheticBench bench;
  TuneTask task = task_on(bench);
  std::map<std::string, int> asked;
  bench.on_measure = [&](const std::string& variant) {
    if (++asked[variant] > 2) bench.failures[variant] = corrupt("wrong when it runs again");
  };
  std::size_t rejected = 0, winners = 0;
  task.keep = [&](const std::vector<TuningRecord>& records) {
    for (const TuningRecord& record : records) {
      rejected += record.verdict == Verdict::rejected;
      winners += record.verdict == Verdict::winner;
    }
  };
  TuneOptions options;
  std::string best = "not told";
  options.progress = [&](const TuneProgress& at) { best = at.best; };
  const auto outcome = tune(task, bench, options);
  REQUIRE_FALSE(outcome.has_value());
  CHECK(best.empty());
  CHECK(rejected >= 4);
  CHECK(winners == 0);
}

TEST_CASE("tuner: where nothing can be measured it says why") {
  SyntheticBench bench;
  TuneTask task;
  task.candidates = {{"a", 1, 0}};
  task.incumbent = "a";
  bench.failures["a"] = unavailable("no device");
  const auto outcome = tune(task, bench, {});
  REQUIRE_FALSE(outcome.has_value());
  CHECK_THAT(outcome.error().message, Catch::Contains("no device"));
}

TEST_CASE("tuner: a variant that turns wrong in any round is thrown out and never wins") {
  for (const bool is_first : {false, true}) {
    for (int wrong_at = 1; wrong_at <= 18; ++wrong_at) {  // two measurements of the search, sixteen rounds
      INFO("wrong at measurement " << wrong_at << ", first variant: " << is_first);
      FewVariants f({{"a", 1.5e6}, {"b", 1.4e6}, {"c", 1.6e6}});
      const std::string wrong = is_first ? "a" : "b";
      f.bench.times[wrong] = 1e6;  // faster than the others
      int asked = 0;
      f.bench.on_measure = [&](const std::string& variant) {
        if (variant == wrong && ++asked == wrong_at) f.bench.failures[wrong] = corrupt("wrong");
      };
      const auto outcome = f.run();
      REQUIRE(asked >= wrong_at);
      REQUIRE(outcome.has_value());
      CHECK(outcome->variant != wrong);
      CHECK(f.kept.at(wrong).verdict == Verdict::rejected);
      CHECK(f.kept.at(outcome->variant).verdict == Verdict::winner);
      REQUIRE(outcome->rejected.size() == 1);
      CHECK_THAT(outcome->rejected[0], Catch::Contains(wrong + ": corrupt: wrong"));
    }
  }
}

TEST_CASE("tuner: a variant whose output leaves its group in a later run is thrown out") {
  for (int changes_at = 2; changes_at <= 18; ++changes_at) {
    INFO("changes at measurement " << changes_at);
    FewVariants f({{"a", 1.5e6}, {"b", 1e6}, {"c", 1.6e6}});
    f.options.by_agreement = true;
    f.bench.groups = {{"a", 1}, {"b", 1}, {"c", 1}};
    int asked = 0;
    f.bench.on_measure = [&](const std::string& variant) {
      if (variant == "b" && ++asked == changes_at) f.bench.groups["b"] = 2;
    };
    const auto outcome = f.run();
    REQUIRE(asked >= changes_at);
    REQUIRE(outcome.has_value());
    CHECK(outcome->variant == "a");
    CHECK(f.kept.at("b").verdict == Verdict::rejected);
    CHECK_THAT(outcome->rejected.at(0), Catch::Contains("later run differs from the first run"));
  }
}

TEST_CASE("tuner: without a reference the largest group of variants that agree is right") {
  FewVariants f({{"a", 1e6}, {"b", 2e6}, {"c", 3e6}, {"d", 4e6}});
  f.options.by_agreement = true;
  f.bench.groups = {{"a", 1}, {"b", 2}, {"c", 2}, {"d", 2}};
  const auto outcome = f.run();
  REQUIRE(outcome.has_value());
  CHECK(outcome->variant == "b");
  CHECK(outcome->rejected ==
        std::vector<std::string>{"a: 3 of 4 variants agree with one another and differ from a; set expect to decide"});
  CHECK(f.kept.at("a").verdict == Verdict::outvoted);
  CHECK(f.count(Verdict::measured) == 2);
}

TEST_CASE("tuner: without a largest group that agrees there is no winner, and nothing counts as measured") {
  const std::vector<std::map<std::string, std::uint32_t>> ties = {
      {{"a", 1}, {"b", 2}, {"c", 2}, {"d", 1}},
      {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}},
      {{"a", 1}, {"b", 1}, {"c", agrees_with_none}, {"d", agrees_with_none}},
      {{"a", 1}, {"b", agrees_with_none}, {"c", agrees_with_none}, {"d", agrees_with_none}}};
  for (const auto& groups : ties) {
    FewVariants f({{"a", 1e6}, {"b", 2e6}, {"c", 3e6}, {"d", 4e6}});
    f.options.by_agreement = true;
    f.bench.groups = groups;
    const auto outcome = f.run();
    REQUIRE_FALSE(outcome.has_value());
    CHECK(outcome.error().code == StatusCode::unavailable);
    CHECK_THAT(outcome.error().message, Catch::Contains("set expect to decide") && Catch::Contains("a"));
    CHECK(f.kept.empty());
  }
  FewVariants two({{"a", 1e6}, {"b", 2e6}, {"c", 3e6}});
  two.options.by_agreement = true;
  two.bench.groups = {{"a", 1}, {"b", 2}};
  two.bench.failures["c"] = invalid_argument("0:1: error: not GLSL");
  REQUIRE_FALSE(two.run().has_value());
  CHECK(two.count(Verdict::rejected) == 1);
  CHECK(two.kept.size() == 1);
}

TEST_CASE("tuner: new variants are compared with known ones, and a vote is taken again where one more joins") {
  FewVariants f({{"a", 1e6}, {"b", 2e6}, {"c", 3e6}});
  f.options.by_agreement = true;
  f.bench.groups = {{"a", 1}, {"b", 2}, {"c", 2}};
  REQUIRE(f.run().has_value());
  for (const auto& [name, record] : f.kept) f.task.known.push_back(record);
  f.task.incumbent = "b";
  const auto same = f.run();
  REQUIRE(same.has_value());
  CHECK(same->candidates == 0);
  CHECK(same->known == 3);
  CHECK(same->rejected.size() == 1);

  for (const char* name : {"d", "e"}) {
    f.task.candidates.push_back({name, 0, 0});
    f.bench.times[name] = 2.5e6;
    f.bench.groups[name] = 1;
  }
  const auto turned = f.run();  // a, d and e against b and c
  REQUIRE(turned.has_value());
  CHECK(turned->candidates == 3);
  CHECK(turned->variant == "a");
  CHECK(f.kept.at("b").verdict == Verdict::outvoted);

  f.bench.groups["b"] = 7;  // the known ones do not agree any more: all are measured again
  f.bench.groups["c"] = 8;
  f.options.again = false;
  CHECK(f.run()->known == 0);
}

TEST_CASE("tuner: each failed variant is listed once with a short reason, whatever the first one does") {
  FewVariants f({{"a", 1e6}, {"b", 2e6}, {"c", 3e6}, {"d", 1e6}});
  f.bench.failures["a"] = invalid_argument("program x/a: GLSL compiler: warning: none\n0:3(7): error: too large\nmore");
  f.bench.failures["d"] = device_lost("bench: the process ended by SIGSEGV");
  const auto outcome = f.run();
  REQUIRE(outcome.has_value());
  CHECK(outcome->variant == "b");
  CHECK(outcome->decision == TuneDecision::faster);
  CHECK(outcome->incumbent == "a");
  CHECK(outcome->incumbent_wall_ns == 0);
  CHECK(outcome->rejected == std::vector<std::string>{"a: invalid_argument: 0:3(7): error: too large",
                                                      "d: device_lost: bench: the process ended by SIGSEGV"});
  f.bench.failures["b"] = f.bench.failures["c"] = f.bench.failures["a"];
  const auto none = f.run();
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().message ==
        "no variant could be measured: a, b, c: invalid_argument: 0:3(7): error: too large; d: device_lost: bench: the "
        "process ended by SIGSEGV");
}

}  // namespace kiln::dynamic_shaders
