#include "core/selector/candidates.hpp"
#include "core/selector/simulated_world.hpp"

#include "selector/decision_log.hpp"

#include <kiln/selector_admin.hpp>

#include <catch2/catch.hpp>

#include <fstream>

using namespace kiln;
using namespace kiln::test;

namespace {

SelectorContext logging(const std::filesystem::path& folder) {
  SelectorContext context;
  context.cache_directory = folder;
  context.config.log = true;
  return context;
}

const PolicyVerdict& verdict_of(const SelectorReplay& replay, const std::string& policy) {
  for (const PolicyVerdict& verdict : replay.policies) {
    if (verdict.policy == policy) return verdict;
  }
  FAIL("no verdict on " + policy);
  return replay.policies.front();
}

}  // namespace

TEST_CASE("selector replay: policies are ranked as the true times rank them", "[selector]") {
  const TemporaryFolder folder;
  const SimulatedWorld world = simulated_world(Times::independent, 3, 16, 5);
  VisitFigures figures;
  {
    const auto selector = selector_of("learning", logging(folder.path()));
    figures = visit(*selector, world, 60, 8, 0.1, 5);
  }
  const auto replay = replay_selector_log(folder.path(), {});
  REQUIRE(replay);
  CHECK(replay->decisions == 16 * 60);
  CHECK(replay->looks > 0);
  CHECK(replay->judged + replay->looks + replay->without_outcome == replay->decisions);
  CHECK(replay->judged > 500);
  CHECK(replay->rejected.empty());
  CHECK(replay->policies.size() == 5);

  const PolicyVerdict &ema = verdict_of(*replay, "ema"), &first = verdict_of(*replay, "first");
  double first_ms = 0, best_ms = 0;
  for (std::size_t s = 0; s < world.specs.size(); ++s) first_ms += world.truth_ms[s][0], best_ms += world.best_ms(s);
  CHECK(ema.mean_ns < first.mean_ns);
  CHECK(ema.low_ns <= ema.mean_ns);
  CHECK(ema.mean_ns <= ema.high_ns);
  // What was recorded is what a policy close to ema did.
  CHECK(ema.mean_ns == Approx(replay->recorded_mean_ns).epsilon(0.05));
  CHECK(ema.agreement > 0.9);
  CHECK(ema.mean_ns == Approx(best_ms / 16 * 1e6).epsilon(0.1));
  // Hopeless options are no options, so the first of a decision need not be the first device: it is no worse than that.
  CHECK(first.mean_ns <= first_ms / 16 * 1e6 * 1.1);
  CHECK(first.mean_ns > 1.1 * ema.mean_ns);
}

TEST_CASE("selector replay: lines that make no sense are left out, each with the reason", "[selector]") {
  const TemporaryFolder folder;
  {
    const auto selector = selector_of("learning", logging(folder.path()));
    (void)visit(*selector, simulated_world(Times::affine, 2, 4, 1), 20, 8, 0.1, 1);
  }
  const auto before = replay_selector_log(folder.path(), {});
  REQUIRE(before);
  std::ofstream(folder.path() / "selector.log", std::ios::app)
      << "{\"decision\":\"x\",\"bucket\n"
      << R"({"decision":"y","bucket":"b","ground":"policy","chosen":3,"candidates":[],"options":[],"propensities":[]})"
      << "\n";
  const auto after = replay_selector_log(folder.path() / "selector.log", {});
  REQUIRE(after);
  CHECK(after->judged == before->judged);
  REQUIRE(after->rejected.size() == 2);
  CHECK(after->rejected[0].validator == "json");
  CHECK(after->rejected[1].validator == "field");
  CHECK_THAT(after->rejected[1].found, Catch::Contains("chosen 3 of 0"));
  {
    std::ofstream log(folder.path() / "selector.log", std::ios::app);
    for (int i = 0; i < 200; ++i) log << "no record\n";
  }
  CHECK(replay_selector_log(folder.path() / "selector.log", {})->rejected.size() == 100);  // told one by one
  const auto none = replay_selector_log(folder.path() / "nothing", {});
  REQUIRE_FALSE(none);
  CHECK(none.error().code == StatusCode::not_found);
}

TEST_CASE("selector log: bounded, the oldest decisions go first", "[selector]") {
  const TemporaryFolder folder;
  SelectorContext context = logging(folder.path());
  context.config.max_log = 64 << 10;
  {
    const auto selector = selector_of("learning", context);
    (void)visit(*selector, simulated_world(Times::affine, 3, 8, 1), 100, 8, 0.1, 1);
  }
  const auto now = std::filesystem::file_size(folder.path() / "selector.log");
  const auto older = std::filesystem::file_size(folder.path() / "selector.log.1");
  CHECK(now + older <= (64 << 10) + 2048);
  CHECK(older >= 32 << 10);
  const auto replay = replay_selector_log(folder.path(), {});
  REQUIRE(replay);
  CHECK(replay->rejected.empty());
  CHECK(replay->decisions > 20);
  CHECK(replay->decisions < 800);
}

TEST_CASE("selector log: nothing is recorded unless it is asked for", "[selector]") {
  const TemporaryFolder folder;
  SelectorContext context = logging(folder.path());
  context.config.log = false;
  {
    const auto selector = selector_of("learning", context);
    (void)visit(*selector, simulated_world(Times::affine, 2, 4, 1), 5, 2, 0.1, 1);
  }
  CHECK_FALSE(std::filesystem::exists(folder.path() / "selector.log"));
}
