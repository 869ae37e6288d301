// One choice at a time, of candidates whose costs are given: when to explore, whom to serve meanwhile, what it charges.
#include "core/selector/candidates.hpp"

#include "selector/chooser.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace kiln;
using namespace kiln::selector;
using namespace kiln::test;

namespace {

using Prospects = std::vector<Prospect>;

// A device whose programs a compiler makes, and two whose programs are there at once.
struct Devices {
  Devices() { compiled.serializes = true; }
  DeviceInfo a = device_of("a"), b = device_of("b"), compiled = device_of("compiled");
};

Prospect measured(const DeviceInfo& device, double run_ms, std::uint64_t runs = 10, double deviation = 0) {
  Prospect prospect;
  prospect.device = &device;
  prospect.run.evidence = Evidence::own;
  prospect.run.log_ns = std::log(run_ms * 1e6);
  prospect.run.log_deviation = deviation;
  prospect.run.runs = runs;
  return prospect;
}

// By runs of other shapes.
Prospect expected(const DeviceInfo& device, double run_ms, double deviation = 0) {
  Prospect prospect = measured(device, run_ms, 0, deviation);
  prospect.run.evidence = Evidence::regression;
  return prospect;
}

Prospect unknown(const DeviceInfo& device, std::uint32_t looks = 0) {
  Prospect prospect;
  prospect.device = &device;
  prospect.looks = looks;
  return prospect;
}

Prospect cold(Prospect prospect, double build_ms = 0) {
  prospect.cold = true;
  prospect.build_ns = build_ms * 1e6;
  return prospect;
}

ShapeBucket bucket(const std::string& shape = "s") {
  ShapeBucket made;
  made.operation = "conv2d";
  made.family = made.shape = shape;
  return made;
}

Chooser chooser(const std::string& policy = "ema", double exploration = 0.02) {
  SelectorConfig config;
  config.policy = policy;
  config.exploration = exploration;
  return Chooser::create(config).value();
}

JobTerms with_deadline() {
  JobTerms terms;
  terms.has_deadline = true;
  return terms;
}

JobTerms building_ahead() {
  JobTerms terms;
  terms.can_build_ahead = true;
  return terms;
}

// "b", or "b for 20 ms": the candidate to measure and what the budget is charged.
std::string text(const Prospects& prospects, const std::optional<Exploration::Look>& look) {
  if (!look) return "none";
  const std::string id = prospects[look->candidate].device->id;
  return look->charged_ns == 0 ? id : id + " for " + std::to_string(std::lround(look->charged_ns / 1e6)) + " ms";
}

}  // namespace

TEST_CASE("selector exploration: a candidate of which nothing is known is measured three times without charge",
          "[selector]") {
  const Devices devices;
  Exploration exploration(0.02);
  const auto next = [&](const Prospects& prospects) { return text(prospects, exploration.next(prospects)); };
  for (const std::uint32_t looks : {0u, 1u, 2u}) {
    CHECK(next({measured(devices.a, 1), unknown(devices.b, looks)}) == "b");
    CHECK(next({unknown(devices.b, looks), measured(devices.a, 1)}) == "b");
  }
  CHECK(next({unknown(devices.a)}) == "none");  // there is no other
  CHECK(next({}) == "none");
  // Then as if it took ten times as long as the best, where the budget is enough.
  Prospects prospects{measured(devices.a, 1), unknown(devices.b, 3)};
  for (Prospect& prospect : prospects) prospect.repeat = 2;
  exploration.spend(0.999e9);
  CHECK(next(prospects) == "none");
  exploration.spend(0.002e9);
  CHECK(next(prospects) == "b for 20 ms");
  CHECK(next({unknown(devices.a, 3), unknown(devices.b, 3)}) == "none");  // ten times nothing known
}

TEST_CASE("selector exploration: what is predicted to be hopeless is tried once if it may win and time was earned",
          "[selector]") {
  const Devices devices;
  const auto next = [&](double deviation, std::uint32_t looks, std::uint64_t runs, double worked_ns) {
    Exploration exploration(0.02);
    exploration.spend(worked_ns);
    Prospects prospects{measured(devices.a, 1), expected(devices.b, 20, deviation)};
    prospects[1].looks = looks;
    prospects[1].run.runs = runs;
    prospects[1].repeat = 3;
    return text(prospects, exploration.next(prospects));
  };
  CHECK(next(1.3, 0, 0, 3.001e9) == "b for 60 ms");
  CHECK(next(1.3, 0, 0, 2.999e9) == "none");
  CHECK(next(1.3, 1, 0, 3.001e9) == "none");
  CHECK(next(1.3, 0, 1, 3.001e9) == "none");
  CHECK(next(1.28, 0, 0, 3.001e9) == "none");  // less than one chance in a hundred
}

TEST_CASE("selector exploration: a run is worth it if later runs are expected to save more than it costs",
          "[selector]") {
  const Devices devices;
  const Exploration exploration(0.02);
  const auto next = [&](Prospect other, std::uint32_t repeat = 1, double best_deviation = 0) {
    Prospects prospects{measured(devices.a, 1, 10, best_deviation), std::move(other)};
    for (Prospect& prospect : prospects) prospect.repeat = repeat;
    return text(prospects, exploration.next(prospects));
  };
  CHECK(next(expected(devices.b, 0.5, 0.5)) == "b");
  CHECK(next(expected(devices.b, 2)) == "none");
  CHECK(next(expected(devices.b, 2, 0.1)) == "none");
  CHECK(next(expected(devices.b, 2, 1)) == "b");            // saves 0.095 ms in each of 101 runs
  CHECK(next(expected(devices.b, 2, 1), 9) == "b");         // and in 109, of which nine lose 1 ms
  CHECK(next(expected(devices.b, 2, 1), 12) == "none");     // 112 times 0.095 is less than 12
  CHECK(next(expected(devices.b, 2, 0), 1, 1) == "b");      // the best one is uncertain
  CHECK(next(measured(devices.b, 0.5, 2, 0.1)) == "none");  // its own runs say so: it is chosen anyway
  CHECK(next(measured(devices.b, 1.1, 2, 0.3)) == "b");
  CHECK(next(measured(devices.b, 1.1, 3, 0.3)) == "none");  // three runs are enough
  Prospect first = measured(devices.b, 0.5, 1, 0.5);
  first.run.evidence = Evidence::first;
  CHECK(next(first) == "b");
  first.looks = 3;
  CHECK(next(first) == "none");
}

TEST_CASE("selector exploration: of several the least looked at comes first, then what is there, then the unknown",
          "[selector]") {
  const Devices devices;
  Exploration exploration(0.02);
  exploration.spend(1e12);
  const auto next = [&](const Prospect& one, const Prospect& other) {
    const Prospects prospects{measured(devices.a, 1), one, other}, turned{other, measured(devices.a, 1), one};
    const std::string found = text(prospects, exploration.next(prospects));
    CHECK(text(turned, exploration.next(turned)) == found);
    return found;
  };
  const DeviceInfo x = device_of("x"), y = device_of("y");
  DeviceInfo compiled_x = x;
  compiled_x.serializes = true;
  CHECK(next(unknown(x, 3), unknown(y, 2)) == "y");  // without charge
  CHECK(next(unknown(x, 1), unknown(y, 0)) == "y");
  CHECK(next(cold(unknown(compiled_x)), unknown(y)) == "y");
  CHECK(next(cold(unknown(x)), unknown(devices.compiled, 1)) == "x");  // no compiler: its program is there at once
  CHECK(next(expected(x, 0.5, 0.5), unknown(y)) == "y");
  CHECK(next(expected(x, 0.7, 0.5), expected(y, 0.6, 0.5)) == "y");
  CHECK(next(cold(unknown(compiled_x)), expected(y, 0.5, 0.5)) == "y");
}

TEST_CASE("selector choice: a job with a deadline goes to the cheapest that was measured", "[selector]") {
  const Devices devices;
  const Chooser some = chooser();
  const Prospects prospects{unknown(devices.compiled), measured(devices.a, 2), measured(devices.b, 1)};
  const Decision decision = some.decide(bucket(), prospects, with_deadline(), nullptr);
  CHECK(decision.ground == Ground::deadline);
  CHECK(decision.candidate == 2);
  CHECK_FALSE(decision.explores);
  CHECK(decision.charged_ns == 0);
  CHECK(decision.candidate_of == std::vector<std::size_t>{1, 2});
  CHECK(decision.cheapest == 1);
  CHECK(some.because(prospects, decision) ==
        "b: 1 ms expected (10 runs), compiled: not measured yet, a: 2 ms expected (10 runs) (no exploration, because "
        "the job has a deadline)");
}

TEST_CASE("selector choice: the only candidate, and candidates without an estimate", "[selector]") {
  const Devices devices;
  const Chooser some = chooser();
  const Prospects one{measured(devices.a, 2, 1)};
  Decision decision = some.decide(bucket(), one, {}, nullptr);
  CHECK(decision.ground == Ground::only_one);
  CHECK(decision.candidate == 0);
  CHECK(some.because(one, decision) == "the only candidate; a: 2 ms expected (1 run)");

  const std::pair<Prospects, std::size_t> cases[] = {
      {{unknown(devices.a, 3), unknown(devices.b, 3)}, 0},
      {{cold(unknown(devices.compiled, 3)), cold(unknown(devices.b, 3))}, 1},  // no compiler before its first run
      {{unknown(devices.compiled, 3), unknown(devices.b, 3)}, 0},
  };
  for (const auto& [prospects, candidate] : cases) {
    decision = some.decide(bucket(), prospects, {}, nullptr);
    CHECK(decision.ground == Ground::no_estimate);
    CHECK(decision.candidate == candidate);
    CHECK_THAT(some.because(prospects, decision),
               Catch::StartsWith("the exploration runs of all candidates gave no estimate; " +
                                 prospects[candidate].device->id + ": not measured yet, "));
  }
}

TEST_CASE("selector choice: the policy sees neither what only promises nor what is hopeless", "[selector]") {
  const Devices devices;
  const Chooser some = chooser();
  const DeviceInfo promising = device_of("promising");
  Prospect roof = measured(promising, 0.1, 0);
  roof.run.evidence = Evidence::roof;
  roof.looks = 3;
  Prospect waits = measured(devices.b, 1);
  waits.queue_ns = 0.5e6;
  const Prospects prospects{roof, measured(devices.compiled, 10.1), measured(devices.a, 1.2), waits,
                            measured(devices.compiled, 10)};
  const Decision decision = some.decide(bucket(), prospects, {}, nullptr);
  CHECK(decision.ground == Ground::policy);
  CHECK(decision.candidate_of == std::vector<std::size_t>{1, 2, 3, 4});
  CHECK(decision.candidate == 2);  // 1.2 ms against 1.5 ms with the wait
  CHECK(decision.options[1].runs == 10);
  CHECK(decision.options[2].fixed_ns == 0.5e6);
  const Prospects hopeless{measured(devices.a, 1), measured(devices.b, 10.1), measured(devices.compiled, 9.9)};
  CHECK(some.decide(bucket(), hopeless, {}, nullptr).candidate_of == std::vector<std::size_t>{0, 2});
  // Where there are only promises they are options.
  const Prospects promises{roof, unknown(devices.a, 3)};
  CHECK(some.decide(bucket(), promises, with_deadline(), nullptr).candidate_of == std::vector<std::size_t>{0});
}

TEST_CASE("selector choice: a policy strays only as far as the budget goes", "[selector]") {
  const Devices devices;
  Chooser some = chooser("epsilon", 1);
  Prospects prospects{measured(devices.a, 1), measured(devices.b, 2)};
  for (Prospect& prospect : prospects) prospect.repeat = 3;
  std::mt19937_64 random;
  const auto strayed = [&] {
    int count = 0;
    for (int i = 0; i < 100; ++i) {
      const Decision decision = some.decide(bucket(), prospects, {}, &random);
      CHECK(decision.explores == (decision.candidate == 1));
      CHECK(decision.charged_ns == Approx(decision.explores ? 6e6 : 0));
      count += decision.explores ? 1 : 0;
    }
    return count;
  };
  CHECK(strayed() == 0);
  const Decision usual = some.decide(bucket(), prospects, {}, nullptr);
  CHECK(some.propensities(usual, 3, random) == std::vector<double>{1, 0});
  CHECK(some.because(prospects, usual) == "a: 1 ms expected (10 runs), b: 2 ms expected (10 runs)");
  some.spend(bucket(), devices.a, 5.9e6);
  CHECK(strayed() == 0);
  some.spend(bucket(), devices.a, 0.2e6);
  const int times = strayed();
  CHECK(times > 20);
  CHECK(times < 80);
  const std::vector<double> shares = some.propensities(usual, 3, random);
  CHECK(shares[0] + shares[1] == Approx(1));
  CHECK(shares[1] > 0.2);
  CHECK(some.decide(bucket(), prospects, {}, nullptr).candidate == 0);  // no draw: the cheapest
  Decision strays = usual;
  strays.candidate = 1, strays.explores = true;
  CHECK(some.because(prospects, strays) ==
        "b: 2 ms expected (10 runs), a: 1 ms expected (10 runs) (chosen to learn more: policy epsilon)");
}

TEST_CASE("selector choice: another candidate serves while the program of the best is built", "[selector]") {
  const Devices devices;
  const Chooser some = chooser();
  struct Case {
    const char* what;
    Prospects prospects;
    std::size_t candidate;
    std::optional<std::size_t> build_ahead;
  };
  const Prospect here = measured(devices.a, 5), built = cold(measured(devices.compiled, 2), 90);
  Prospect busy = built, never_ran = unknown(devices.b, 3);
  busy.queue_ns = 4e6;
  const Case cases[] = {
      {"the best is cold", {here, built}, 0, 1},
      {"the best is cold and first", {built, here}, 1, 0},
      {"the best is warm", {here, measured(devices.compiled, 2)}, 1, {}},
      {"its program needs no compiler", {here, cold(measured(devices.b, 2), 90)}, 0, {}},
      {"its build takes no longer than the other's run", {here, cold(measured(devices.compiled, 2), 2)}, 1, {}},
      {"the other one is cold too", {cold(measured(devices.compiled, 95), 1), built}, 1, {}},
      {"it is not the best, because others wait for it", {here, busy}, 0, {}},
      {"the other one never ran", {never_ran, built}, 0, 1},
      {"of two others the sooner", {measured(devices.b, 7), here, built}, 1, 2},
  };
  for (const Case& each : cases) {
    CAPTURE(each.what);
    const Decision decision = some.decide(bucket(), each.prospects, building_ahead(), nullptr);
    CHECK(decision.ground == Ground::policy);
    CHECK(decision.candidate == each.candidate);
    CHECK(decision.build_ahead == each.build_ahead);
    CHECK_FALSE(decision.wanted_look);
    CHECK_FALSE(some.decide(bucket(), each.prospects, {}, nullptr).build_ahead);
  }
  const Prospects both{here, built};
  const Decision decision = some.decide(bucket(), both, building_ahead(), nullptr);
  CHECK(
      some.because(both, decision) ==
      "serves until the program of compiled is built; a: 5 ms expected (10 runs), compiled: 2 ms expected (10 runs) + "
      "90 ms build");
}

TEST_CASE("selector choice: of what would be best with its program there, the wait is shared by the job's runs",
          "[selector]") {
  const Devices devices;
  const Chooser some = chooser();
  Prospects prospects{measured(devices.a, 3), cold(measured(devices.compiled, 2), 90)};
  prospects[1].queue_ns = 2e6;
  for (const auto& [repeat, ahead] : {std::pair(1u, false), std::pair(4u, true)}) {
    for (Prospect& prospect : prospects) prospect.repeat = repeat;
    const Decision decision = some.decide(bucket(), prospects, building_ahead(), nullptr);
    CHECK(decision.candidate == 0);
    CHECK(decision.build_ahead.has_value() == ahead);
  }
  // A job with a deadline has nothing built beside it.
  JobTerms terms = building_ahead();
  terms.has_deadline = true;
  const Decision decision = some.decide(bucket(), prospects, terms, nullptr);
  CHECK(decision.ground == Ground::deadline);
  CHECK(decision.candidate == 0);
  CHECK_FALSE(decision.build_ahead);
}

TEST_CASE("selector choice: an exploration run that waits for its program is not charged yet", "[selector]") {
  const Devices devices;
  Chooser some = chooser();
  some.spend(bucket(), devices.a, 1e10);
  const Prospects prospects{measured(devices.a, 1), cold(unknown(devices.compiled, 3))};
  CHECK(some.decide(bucket(), prospects, {}, nullptr).charged_ns == Approx(1e7));
  const Decision decision = some.decide(bucket(), prospects, building_ahead(), nullptr);
  CHECK(decision.ground == Ground::look);
  CHECK(decision.candidate == 0);
  CHECK(decision.wanted_look == 1u);
  CHECK(decision.charged_ns == 0);
  CHECK_FALSE(decision.explores);
}

TEST_CASE("selector choice: an exploration run waits for its program, for eight jobs", "[selector]") {
  const Devices devices;
  Chooser some = chooser();
  const Prospects prospects{measured(devices.a, 5), cold(unknown(devices.compiled))};
  for (int job = 0; job < 8; ++job) {
    CAPTURE(job);
    const Decision decision = some.decide(bucket(), prospects, building_ahead(), nullptr);
    CHECK(decision.ground == Ground::look);
    CHECK(decision.candidate == 0);
    CHECK(decision.wanted_look == 1u);
    CHECK(decision.build_ahead == 1u);
    CHECK_FALSE(decision.explores);
    CHECK(decision.charged_ns == 0);
    CHECK(
        some.because(prospects, decision) ==
        "serves until the program of compiled is built and can be measured; a: 5 ms expected (10 runs), compiled: not "
        "measured yet");
    // One program at a time: of another shape none is built.
    const Decision other = some.decide(bucket("other"), prospects, building_ahead(), nullptr);
    CHECK(other.candidate == 0);
    CHECK(other.wanted_look == 1u);
    CHECK(other.build_ahead.has_value() == (job == 0));
    some.commit(bucket(), prospects, decision);
  }
  Decision decision = some.decide(bucket(), prospects, building_ahead(), nullptr);
  CHECK(decision.candidate == 1);
  CHECK(decision.explores);
  CHECK_FALSE(decision.wanted_look);
  CHECK_FALSE(decision.build_ahead);
  CHECK(some.because(prospects, decision) ==
        "exploration run 1 of at most 3; compiled: not measured yet, a: 5 ms expected (10 runs)");
  some.commit(bucket(), prospects, decision);  // ends the wait
  decision = some.decide(bucket("other"), prospects, building_ahead(), nullptr);
  CHECK(decision.candidate == 0);
  CHECK(decision.build_ahead == 1u);
}

TEST_CASE("selector choice: the budget is charged what an exploration run really took", "[selector]") {
  const Devices devices;
  Chooser some = chooser();
  some.spend(bucket(), devices.a, 1e10);
  CHECK(some.exploration().worked_ns() == 1e10);
  CHECK(some.exploration().explored_ns() == 0);
  Prospects prospects{measured(devices.a, 1), unknown(devices.b, 3)};
  for (Prospect& prospect : prospects) prospect.repeat = 2;
  const Decision decision = some.decide(bucket(), prospects, {}, nullptr);
  CHECK(decision.candidate == 1);
  CHECK(decision.charged_ns == Approx(2e7));
  CHECK(some.because(prospects, decision) ==
        "exploration run 4, charged to the exploration budget; b: not measured yet, a: 1 ms expected (10 runs)");
  some.commit(bucket(), prospects, decision);
  CHECK(some.exploration().explored_ns() == Approx(2e7));
  some.spend(bucket(), devices.a, 7e6);  // of another job
  some.spend(bucket("other"), devices.b, 7e6);
  CHECK(some.exploration().explored_ns() == Approx(2e7));
  some.spend(bucket(), devices.b, 3e6);
  CHECK(some.exploration().explored_ns() == Approx(1.3e7));
  some.spend(bucket(), devices.b, 4e6);
  CHECK(some.exploration().explored_ns() == Approx(7e6));
  some.spend(bucket(), devices.b, 5e6);  // it had two runs
  CHECK(some.exploration().explored_ns() == Approx(7e6));
  CHECK(some.exploration().worked_ns() == Approx(1e10 + 2.6e7));
  // What never ends stays charged as expected.
  some.commit(bucket(), prospects, decision);
  some.commit(bucket(), prospects, some.decide(bucket(), prospects, with_deadline(), nullptr));
  some.spend(bucket(), devices.b, 3e6);
  CHECK(some.exploration().explored_ns() == Approx(2.7e7));
}

TEST_CASE("selector choice: runs beside a device that changed are counted until it is measured again", "[selector]") {
  const Devices devices;
  Chooser some = chooser();
  some.spend(bucket(), devices.a, 1e10);
  Prospects prospects{measured(devices.a, 1), measured(devices.b, 3)};
  prospects[1].run.drifted = true;
  for (Prospect& prospect : prospects) prospect.repeat = 10;
  for (int round = 0; round < 2; ++round) {
    for (int job = 0; job < 5; ++job) {
      CAPTURE(round, job);
      const Decision decision = some.decide(bucket(), prospects, {}, nullptr);
      CHECK(decision.ground == Ground::policy);
      CHECK(decision.candidate == 0);
      some.commit(bucket(), prospects, decision);
      CHECK(some.decide(bucket("other"), prospects, {}, nullptr).ground == Ground::policy);
    }
    const Decision decision = some.decide(bucket(), prospects, {}, nullptr);
    CHECK(decision.ground == Ground::look);
    CHECK(decision.candidate == 1);
    CHECK(decision.charged_ns == Approx(3e7));
    some.commit(bucket(), prospects, decision);
  }
}

TEST_CASE("selector choice: runs from before a device changed do not count", "[selector]") {
  const Devices devices;
  Chooser some = chooser();
  some.spend(bucket(), devices.a, 1e10);
  Prospects prospects{measured(devices.a, 1), measured(devices.b, 3)};
  for (Prospect& prospect : prospects) prospect.repeat = 10;
  const auto run_on_a = [&] {
    const Decision decision = some.decide(bucket(), prospects, {}, nullptr);
    CHECK(decision.ground == Ground::policy);
    CHECK(decision.candidate == 0);
    some.commit(bucket(), prospects, decision);
  };
  for (int job = 0; job < 5; ++job) run_on_a();
  prospects[1].run.drifted = true;
  for (int job = 0; job < 5; ++job) run_on_a();
  CHECK(some.decide(bucket(), prospects, {}, nullptr).ground == Ground::look);
}

TEST_CASE("selector choice: the grounds have words", "[selector]") {
  const std::pair<Ground, std::string> words[] = {{Ground::only_one, "only one"},       {Ground::look, "look"},
                                                  {Ground::policy, "policy"},           {Ground::deadline, "deadline"},
                                                  {Ground::no_estimate, "no estimate"}, {Ground::invalid, "invalid"}};
  for (const auto& [ground, word] : words) CHECK(to_string(ground) == word);
}
