// What tune() asks of its bench, call by call, on a bench whose times never change.
#include "dynamic_shaders/tuner/tuner.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kiln::dynamic_shaders {
namespace {

using RunCounts = std::vector<std::uint32_t>;

// Each run of a variant takes its time, on the device nine tenths of it.
class ListingBench final : public VariantBench {
 public:
  Result<VariantSamples> measure(std::string_view variant, std::uint32_t runs,
                                 std::chrono::nanoseconds limit) noexcept override {
    const std::string name(variant);
    asked.push_back(name);
    runs_of[name].push_back(runs);
    limits_kept = limits_kept && limit == std::chrono::seconds(20);
    if (on_measure) on_measure(name);
    if (const auto failure = failures.find(name); failure != failures.end()) return failure->second;
    VariantSamples samples;
    samples.wall_ns.assign(runs, times.at(name));
    samples.device_ns.assign(runs, times.at(name) / 10 * 9);
    samples.contention = contention;
    if (const auto group = groups.find(name); group != groups.end()) samples.agreement = group->second;
    return samples;
  }

  std::map<std::string, std::uint64_t> times;
  std::map<std::string, Status> failures;
  std::map<std::string, std::uint32_t> groups;
  std::function<void(const std::string&)> on_measure;
  double contention = 0;
  std::vector<std::string> asked;
  std::map<std::string, RunCounts> runs_of;
  bool limits_kept = true;
};

// A task without a model; the first variant by name serves, and is the plainest.
struct Listed {
  ListingBench bench;
  TuneTask task;
  TuneOptions options;

  explicit Listed(std::map<std::string, std::uint64_t> times) {
    for (const auto& [name, time] : times) task.candidates.push_back({name, 0, 0});
    task.ranked = false;
    task.incumbent = task.baseline = times.begin()->first;
    bench.times = std::move(times);
  }
  TuneOutcome run() {
    auto outcome = tune(task, bench, options);
    INFO((outcome ? std::string() : outcome.error().text()));
    REQUIRE(outcome.has_value());
    CHECK(bench.limits_kept);
    return std::move(*outcome);
  }
  // In how many rounds of three runs each a variant met the others.
  std::size_t rounds_of(const std::string& variant) {
    std::size_t rounds = 0;
    for (const std::uint32_t runs : bench.runs_of[variant]) rounds += runs == 3;
    return rounds;
  }
  void know(const std::string& variant, Verdict verdict, std::uint64_t wall_ns, const std::string& why = {}) {
    TuningRecord record;
    record.variant = variant;
    record.verdict = verdict;
    record.wall_ns = record.device_ns = {wall_ns};
    record.why = why;
    task.known.push_back(record);
  }
};

// The runs of a variant that stays to the end.
RunCounts whole(RunCounts before, std::size_t rounds) {
  before.insert(before.end(), rounds, 3);
  return before;
}

std::string padded_name(int number) { return (number < 10 ? "v0" : "v") + std::to_string(number); }

}  // namespace

TEST_CASE(
    "tuner: a candidate runs once, four times more unless it takes over twice the best, and in rounds where it is "
    "near") {
  Listed l(
      {{"a", 1'000'000}, {"b", 1'300'000}, {"c", 1'300'001}, {"d", 2'000'000}, {"e", 2'000'001}, {"p", 9'000'000}});
  l.task.baseline = "p";
  const TuneOutcome outcome = l.run();
  CHECK(l.bench.runs_of["a"] == whole({1, 4}, 16));
  CHECK(l.bench.runs_of["b"] == whole({1, 4}, 16));  // at 1.3 times the best
  CHECK(l.bench.runs_of["c"] == RunCounts{1, 4});
  CHECK(l.bench.runs_of["d"] == RunCounts{1, 4});
  CHECK(l.bench.runs_of["e"] == RunCounts{1});
  CHECK(l.bench.runs_of["p"] == RunCounts{1, 1, 1});  // and beside the first two rounds
  CHECK(outcome.variant == "a");
  CHECK(outcome.decision == TuneDecision::kept);
  CHECK(outcome.incumbent == "a");
  CHECK(outcome.incumbent_wall_ns == 1'000'000);
  CHECK(outcome.wall_ns == 1'000'000);
  CHECK(outcome.device_ns == 900'000);
  CHECK(outcome.baseline == "p");
  CHECK(outcome.baseline_wall_ns == 9'000'000);
  CHECK(outcome.baseline_device_ns == 8'100'000);
  CHECK(outcome.space == 6);
  CHECK(outcome.candidates == 6);
  CHECK(outcome.known == 0);
  CHECK(outcome.note.empty());
  CHECK(outcome.contention == 0);
}

TEST_CASE("tuner: every other round begins with the next of those that meet, and the plain variant comes last in two") {
  Listed l({{"a", 1'000'000}, {"b", 1'100'000}, {"p", 9'000'000}});
  l.task.baseline = "p";
  l.run();
  std::string asked;
  for (const std::string& name : l.bench.asked) asked += name;
  CHECK(asked ==
        "aapbb"
        "abp"
        "bap"
        "abba"
        "abba"
        "abba"
        "abba"
        "abba"
        "abba"
        "abba");
}

TEST_CASE("tuner: after three rounds the four fastest and what serves go on") {
  Listed l(
      {{"a", 1'050'000}, {"b", 1'000'000}, {"c", 1'010'000}, {"d", 1'020'000}, {"e", 1'030'000}, {"f", 1'040'000}});
  CHECK(l.run().variant == "b");
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    INFO(name);
    CHECK(l.rounds_of(name) == 16);
  }
  CHECK(l.rounds_of("f") == 3);
}

TEST_CASE("tuner: at most sixteen meet, and what serves with them") {
  std::map<std::string, std::uint64_t> times;
  for (int i = 0; i < 18; ++i) times[padded_name(i)] = 1'000'000 + 10'000u * static_cast<std::uint64_t>(i);
  Listed l(times);
  l.task.incumbent = l.task.baseline = "v17";
  CHECK(l.run().variant == "v00");
  for (int i = 0; i < 4; ++i) CHECK(l.rounds_of(padded_name(i)) == 16);
  for (int i = 4; i < 16; ++i) CHECK(l.rounds_of(padded_name(i)) == 3);
  CHECK(l.rounds_of("v16") == 0);
  CHECK(l.rounds_of("v17") == 16);
}

TEST_CASE("tuner: without time left six rounds remain, after the first of them for four and what serves") {
  Listed l(
      {{"a", 1'050'000}, {"b", 1'000'000}, {"c", 1'010'000}, {"d", 1'020'000}, {"e", 1'030'000}, {"f", 1'040'000}});
  l.options.exhaustive = true;  // searches whatever the time
  l.options.budget = std::chrono::nanoseconds(0);
  CHECK(l.run().variant == "b");
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    INFO(name);
    CHECK(l.rounds_of(name) == 6);
  }
  CHECK(l.rounds_of("f") == 1);
  Listed none({{"a", 1'000'000}, {"b", 1'000'000}, {"c", 900'000}});
  none.task.baseline = "b";
  none.options.budget = std::chrono::nanoseconds(0);
  const TuneOutcome outcome = none.run();
  CHECK(outcome.candidates == 2);  // what serves and the plain one
  CHECK(outcome.space == 3);
  CHECK(none.bench.runs_of["c"].empty());
}

TEST_CASE("tuner: a quarter of a space with a model is searched, eight variants at the least") {
  const auto searched = [](int count, bool exhaustive) {
    std::map<std::string, std::uint64_t> times;
    for (int i = 0; i < count; ++i) times[padded_name(i)] = 1'000'000;
    Listed l(times);
    l.task.ranked = true;
    for (Candidate& candidate : l.task.candidates) candidate.predicted = 1;
    l.options.exhaustive = exhaustive;
    return l.run().candidates;
  };
  CHECK(searched(7, false) == 7);
  CHECK(searched(8, false) == 8);
  CHECK(searched(9, false) == 8);
  CHECK(searched(35, false) == 8);
  CHECK(searched(36, false) == 9);
  CHECK(searched(43, false) == 10);
  CHECK(searched(9, true) == 9);
}

TEST_CASE("tuner: the plain variant is not measured again where it failed beside the first round") {
  Listed l({{"a", 1'000'000}, {"b", 1'100'000}, {"p", 9'000'000}});
  l.task.baseline = "p";
  int asked = 0;
  l.bench.on_measure = [&](const std::string& name) {
    if (name == "p" && ++asked == 2) l.bench.failures["p"] = corrupt("differs");
  };
  const TuneOutcome outcome = l.run();
  CHECK(asked == 2);
  CHECK(outcome.baseline_wall_ns == 9'000'000);  // of the search
  CHECK(outcome.rejected == std::vector<std::string>{"p: corrupt: differs"});
}

TEST_CASE("tuner: where all near the best fail in the rounds, those behind them meet") {
  Listed l({{"a", 1'000'000}, {"b", 1'100'000}, {"c", 1'900'000}, {"d", 2'000'000}});
  l.task.incumbent = l.task.baseline = "d";
  l.bench.on_measure = [&](const std::string& name) {
    if (l.bench.runs_of[name].back() == 3 && name != "c") l.bench.failures[name] = corrupt("differs");
  };
  const TuneOutcome outcome = l.run();
  CHECK(outcome.variant == "c");
  CHECK(outcome.decision == TuneDecision::faster);
  CHECK(l.rounds_of("c") == 16);
  CHECK(l.rounds_of("a") == 1);
  CHECK(l.rounds_of("b") == 1);
  CHECK(l.rounds_of("d") == 1);
  CHECK(outcome.incumbent_wall_ns == 0);
  CHECK(outcome.rejected.size() == 3);
}

TEST_CASE("tuner: a busy machine is told with its figures, what is kept, and what to do") {
  Listed l({{"a", 1'000'000}, {"b", 3'000'000}});
  l.task.incumbent = "b";
  l.bench.contention = 0.9;
  CHECK(
      l.run().note ==
      "the machine is too busy to compare variants: its threads waited 90 % of their time, times in the rounds spread "
      "by 0 %. Tune again with --again when it is idle");
  l.task.won = true;
  const TuneOutcome kept = l.run();
  CHECK(kept.note ==
        "the machine is too busy to compare variants, b is kept: its threads waited 90 % of their time, times in the "
        "rounds spread by 0 %. Tune again with --again when it is idle");
  CHECK(kept.contention == 0.9);
}

TEST_CASE("tuner: of what is known nothing runs in the search, but for a stale winner") {
  Listed l({{"a", 1'000'000}, {"b", 1'100'000}, {"c", 1'200'000}});
  l.know("a", Verdict::winner, 1'000'000, "runs in a row took longer");
  l.know("b", Verdict::measured, 1'100'000);
  l.know("c", Verdict::rejected, 0, "corrupt: differs");
  const TuneOutcome outcome = l.run();
  CHECK(outcome.candidates == 1);
  CHECK(outcome.known == 2);
  CHECK(l.bench.runs_of["a"].front() == 1);
  CHECK(l.bench.runs_of["b"].front() == 3);  // a round
  CHECK(l.bench.runs_of["c"].empty());
  CHECK(outcome.rejected == std::vector<std::string>{"c: corrupt: differs"});
  l.options.again = true;
  CHECK(l.run().known == 0);
}

TEST_CASE("tuner: without a reference the two fastest known variants run again, once each") {
  const std::map<std::string, std::uint64_t> times = {
      {"a", 1'200'000}, {"b", 1'100'000}, {"c", 1'000'000}, {"d", 1'300'000}};
  const auto know = [&](Listed& l, const std::vector<std::string>& known) {
    l.options.by_agreement = true;
    for (const auto& [name, time] : times) l.bench.groups[name] = 5;
    for (const std::string& name : known) l.know(name, Verdict::measured, times.at(name));
  };
  Listed agreeing(times);
  know(agreeing, {"a", "b", "c"});
  const TuneOutcome outcome = agreeing.run();
  CHECK(outcome.known == 3);
  CHECK(outcome.candidates == 1);
  CHECK(std::vector<std::string>(agreeing.bench.asked.begin(), agreeing.bench.asked.begin() + 4) ==
        std::vector<std::string>{"c", "b", "d", "d"});
  CHECK(agreeing.bench.runs_of["c"].front() == 1);
  for (const std::uint32_t group : {0u, 6u, agrees_with_none}) {
    CAPTURE(group);
    Listed other(times);
    know(other, {"a", "b", "c"});
    other.bench.groups["b"] = group;
    const auto again = tune(other.task, other.bench, other.options);
    CHECK(other.bench.runs_of["a"].front() == 1);  // all are measured again
    if (again) CHECK(again->known == 0);
  }
  Listed slower(times);
  know(slower, {"a", "b", "c"});
  slower.bench.groups["a"] = 6;  // the third is not asked, until it meets the others
  CHECK(slower.run().known == 3);
  Listed one(times);
  know(one, {"b"});
  CHECK(one.run().known == 1);
  CHECK(one.bench.asked.front() == "b");
}

TEST_CASE("tuner: progress tells what is planned, the best so far, and three tenths of the time for the rounds") {
  Listed l({{"a", 2'000'000}, {"b", 1'000'000}, {"c", 1'500'000}});
  l.options.budget = std::chrono::hours(1000);
  std::vector<TuneProgress> told;
  l.options.progress = [&](const TuneProgress& at) { told.push_back(at); };
  l.run();
  REQUIRE(told.size() == 3 + 16 + 1);
  const std::string best[] = {"a", "b", "b"};
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(told[i].measured == i + 1);
    CHECK(told[i].planned == 3);
    CHECK(told[i].best == best[i]);
    CHECK(static_cast<double>(told[i].left_ns) == Approx(0.3 * 3.6e15).epsilon(0.01));
  }
  CHECK(told[0].best_ns == 2'000'000);
  CHECK(told[2].best_ns == 1'000'000);
  CHECK(told[3].measured == 3);
  CHECK(told[3].planned == 3);
  CHECK(told.back().best_ns == 1'000'000);
  CHECK(told.back().left_ns == 0);
}

TEST_CASE("tuner: in the rounds progress tells who is the fastest there") {
  Listed l({{"a", 1'000'000}, {"b", 1'100'000}});
  l.bench.on_measure = [&](const std::string& name) {
    if (l.bench.runs_of[name].back() == 3) l.bench.times["b"] = 800'000;
  };
  std::vector<TuneProgress> told;
  l.options.progress = [&](const TuneProgress& at) { told.push_back(at); };
  CHECK(l.run().variant == "b");
  REQUIRE(told.size() == 2 + 16 + 1);
  for (std::size_t i = 0; i < told.size(); ++i) {
    CAPTURE(i);
    CHECK(told[i].best == (i < 2 ? "a" : "b"));
    CHECK(told[i].best_ns == (i < 2 ? 1'000'000 : 800'000));
  }
}

TEST_CASE("tuner: the record of a winner has the runs of its rounds, beside which the plain variant's do not count") {
  Listed l({{"a", 1'000'000}, {"b", 1'100'000}});
  std::map<std::string, TuningRecord> kept;
  l.task.keep = [&](const std::vector<TuningRecord>& records) {
    for (const TuningRecord& record : records) kept[record.variant] = record;
  };
  CHECK(l.run().variant == "a");  // the plain one itself
  CHECK(kept["a"].verdict == Verdict::winner);
  CHECK(kept["a"].wall_ns.size() == 48);
  CHECK(kept["b"].wall_ns.size() == 48);
  Listed failing({{"a", 1'000'000}, {"b", 1'100'000}});
  failing.task.keep = l.task.keep;
  failing.bench.on_measure = [&](const std::string& name) {
    const RunCounts& runs = failing.bench.runs_of[name];
    if (name == "a" && runs.size() == 4) {  // beside the first round
      CHECK(runs == RunCounts{1, 4, 3, 1});
      failing.bench.failures["a"] = corrupt("differs");
    } else {
      failing.bench.failures.clear();
    }
  };
  CHECK(failing.run().variant == "b");
  CHECK(kept["a"].verdict == Verdict::rejected);
  CHECK(kept["b"].verdict == Verdict::winner);
}

TEST_CASE("tuner: where the stored winner cannot be measured the others' failures are kept all the same") {
  Listed l({{"a", 1'000'000}, {"b", 1'100'000}, {"c", 1'200'000}});
  l.task.won = true;
  std::map<std::string, Verdict> kept;
  l.task.keep = [&](const std::vector<TuningRecord>& records) {
    for (const TuningRecord& record : records) kept[record.variant] = record.verdict;
  };
  l.bench.on_measure = [&](const std::string& name) {
    if (l.bench.runs_of[name].back() != 3) return;
    if (name == "a") l.bench.failures["a"] = unavailable("no memory");
    if (name == "b") l.bench.failures["b"] = corrupt("differs");
  };
  const auto outcome = tune(l.task, l.bench, l.options);
  REQUIRE_FALSE(outcome.has_value());
  CHECK(outcome.error().message == "the stored winner a is kept: measurement failed: unavailable: no memory");
  CHECK(kept == std::map<std::string, Verdict>{{"b", Verdict::rejected}, {"c", Verdict::measured}});
}

TEST_CASE("tuner: known variants of which one cannot be compared are measured again") {
  Listed l({{"a", 1'200'000}, {"b", 1'100'000}, {"c", 1'000'000}});
  l.options.by_agreement = true;
  l.bench.groups = {{"a", 1}, {"b", 1}, {"c", 1}};
  for (const char* name : {"a", "b", "c"}) l.know(name, Verdict::measured, l.bench.times[name]);
  l.bench.failures["c"] = unavailable("no memory");
  const TuneOutcome outcome = l.run();
  CHECK(outcome.known == 0);
  CHECK(outcome.candidates == 3);
  CHECK(l.bench.asked.front() == "c");
}

TEST_CASE("tuner: which failures are the variant's own") {
  for (const StatusCode own : {StatusCode::timeout, StatusCode::device_lost, StatusCode::corrupt,
                               StatusCode::invalid_argument, StatusCode::unsupported}) {
    CHECK(tells_of_variant(own));
  }
  for (const StatusCode other : {StatusCode::ok, StatusCode::unavailable, StatusCode::io, StatusCode::not_found,
                                 StatusCode::cancelled, StatusCode::internal, StatusCode::wrong_result}) {
    CHECK_FALSE(tells_of_variant(other));
  }
}

}  // namespace kiln::dynamic_shaders
