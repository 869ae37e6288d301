// Every order of events of three jobs in three slots, on the executor's own pipeline: its lanes, the device,
// submitters, a canceller, a waiter, one who does not wait long enough and the loss of the device take single steps; a
// lane that found nothing sleeps until the pipeline says that it has to look again. Orders that lead to the same state
// are tried once. Each way to a state is walked from the beginning.
#include "core/executor/interleavings/walk.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {
namespace {

// A sanitizer watches the pipeline's memory, which a part of the orders uses in all ways.
std::size_t most_walks() { return !is_sanitized ? SIZE_MAX : is_long() ? 50'000 : 500; }

struct Explored {
  bool is_whole = true;  // every order was walked
  std::size_t states = 0;
  std::size_t walks = 0;
  std::size_t ends = 0;
  std::size_t most_together = 0;
  std::size_t overtaken = 0;  // walks in which a job was
};

// Depth first over the orders of steps; the first broken promise is told with the order that led there.
Explored explore(const Scenario& scenario) {
  Explored explored;
  std::set<std::string> seen;
  std::vector<std::vector<int>> open{{}};
  while (!open.empty()) {
    if (explored.walks == most_walks()) {
      explored.is_whole = false;
      break;
    }
    const std::vector<int> way = std::move(open.back());
    open.pop_back();
    Walk walk(scenario);
    std::string order;
    for (const int actor : way) {
      walk.step(actor);
      order += std::to_string(actor) + " ";
    }
    ++explored.walks;
    explored.most_together = std::max(explored.most_together, walk.most_together);
    explored.overtaken += walk.overtaken ? 1 : 0;
    INFO("order of actors: " << order);
    REQUIRE(walk.broken == "");
    if (!seen.insert(walk.state()).second) continue;
    bool moved = false;
    for (int actor = 0; actor < Walk::actor_count; ++actor) {
      if (!walk.can(actor)) continue;
      moved = true;
      open.push_back(way);
      open.back().push_back(actor);
    }
    if (!moved) {
      REQUIRE(walk.over());  // nobody can move: then every result has been taken, else one is lost or a wake-up was
      ++explored.ends;
    }
  }
  explored.states = seen.size();
  return explored;
}

TEST_CASE("interleavings: three jobs lose, double and hasten nothing in any order",
          "[executor][interleavings][unsanitized]") {
  for (const std::uint32_t slots : {1u, 2u, 3u}) {
    Scenario scenario;
    scenario.slots = slots;
    INFO(slots << " slots");
    const Explored explored = explore(scenario);
    CHECK(explored.ends >= 1);
    CHECK(explored.states > 100);
    WARN(slots << " slots: " << explored.states << " states, " << explored.walks << " walks");
  }
}

TEST_CASE("interleavings: likewise when one job is cancelled at any moment", "[executor][interleavings][unsanitized]") {
  for (int cancels = 1; cancels <= job_count; ++cancels) {
    Scenario scenario;
    scenario.cancels = cancels;
    INFO("job " << cancels << " is cancelled");
    CHECK(explore(scenario).ends >= 1);
  }
}

TEST_CASE("interleavings: likewise when one job fails before it reaches the device",
          "[executor][interleavings][unsanitized]") {
  for (int fails = 1; fails <= job_count; ++fails) {
    for (const bool unordered : {false, true}) {
      Scenario scenario;
      scenario.fails = fails;
      scenario.unordered = unordered;
      INFO("job " << fails << " fails, unordered " << unordered);
      CHECK(explore(scenario).ends >= 1);
    }
  }
}

TEST_CASE("interleavings: likewise when the device is lost at any moment", "[executor][interleavings][unsanitized]") {
  for (const bool small : {false, true}) {
    Scenario scenario;
    scenario.small = small;
    scenario.loses = true;
    INFO("small " << small);
    CHECK(explore(scenario).ends >= 1);
  }
}

TEST_CASE("interleavings: likewise when somebody waits for one job and leaves before its end",
          "[executor][interleavings][unsanitized]") {
  for (int hastens = 1; hastens <= job_count; ++hastens) {
    for (const bool late : {false, true}) {
      Scenario scenario;
      scenario.hastens = hastens;
      scenario.late = late;
      INFO("job " << hastens << " is waited for, its deadline has passed " << late);
      CHECK(explore(scenario).ends >= 1);
    }
  }
}

TEST_CASE("interleavings: likewise where copies are long, and the thread for results begins at any moment",
          "[executor][interleavings][unsanitized]") {
  for (const std::uint32_t slots : {1u, 2u, 3u}) {
    for (const bool loses : {false, true}) {
      Scenario scenario;
      scenario.slots = slots;
      scenario.apart = true;
      scenario.loses = loses;
      INFO(slots << " slots, the device may be lost " << loses);
      CHECK(explore(scenario).ends >= 1);
    }
  }
}

TEST_CASE("interleavings: likewise where a job need not wait for the long result of one before it",
          "[executor][interleavings][unsanitized]") {
  const auto walk = [](std::uint32_t slots, int overtakes, bool loses) {
    Scenario scenario;
    scenario.slots = slots;
    scenario.apart = true;
    scenario.longs = 1;
    scenario.overtakes = overtakes;
    scenario.loses = loses;
    INFO(slots << " slots, job " << overtakes << " may overtake, the device may be lost " << loses);
    const Explored explored = explore(scenario);
    CHECK(explored.ends >= 1);
    if (explored.is_whole) CHECK((explored.overtaken > 0) == (overtakes != 0));
  };
  walk(2, 2, false);
  walk(2, 0, false);
  walk(2, 3, false);
  if (!is_long()) return;
  for (const int overtakes : {0, 2, 3}) walk(3, overtakes, true);
}

TEST_CASE("interleavings: likewise where small jobs share submissions", "[executor][interleavings][unsanitized]") {
  for (const std::uint32_t slots : {1u, 2u, 3u}) {
    Scenario scenario;
    scenario.slots = slots;
    scenario.small = true;
    INFO(slots << " slots");
    const Explored explored = explore(scenario);
    CHECK(explored.ends >= 1);
    if (explored.is_whole) CHECK(explored.most_together == slots);  // every size of a batch was among them
  }
  for (int job = 1; job <= job_count; ++job) {
    for (const bool cancelled : {false, true}) {
      Scenario scenario;
      scenario.small = true;
      (cancelled ? scenario.cancels : scenario.fails) = job;
      INFO("job " << job << (cancelled ? " is cancelled" : " fails"));
      CHECK(explore(scenario).ends >= 1);
    }
  }
}

}  // namespace
}  // namespace kiln::test
