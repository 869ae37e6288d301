// The selector's goals through all of Kiln: it chooses among simulated devices, each job is planned, cached, queued and
// run, and what is learned is what the executor measured. Short: a few seeds; KILN_TEST_LONG=1: a hundred.
#include "core/runtime/virtual_fleet.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <utility>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr double noise = 0.1;

struct Visits {
  std::size_t asked = 0, right = 0;  // after 8 visits of their shape; within 10 % of the best true time
  double total_ns = 0, oracle_ns = 0;
  double spent_ns = 0, explored_ns = 0;  // by the virtual clock; exploring: beyond the looks at the start
  std::size_t most_looks = 0;

  double share_right() const { return static_cast<double>(right) / static_cast<double>(asked); }
  double regret() const { return total_ns / oracle_ns - 1; }
  double explored() const { return explored_ns / spent_ns; }
};

// Every shape 200 times, in a random order.
Visits visit(VirtualFleet& fleet, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> order(fleet.shapes());
  std::iota(order.begin(), order.end(), 0);
  std::map<std::pair<std::size_t, std::string>, std::size_t> looks;
  Visits visits;
  for (int turn = 0; turn < 200; ++turn) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t shape : order) {
      const RunReport report = fleet.serve(shape);
      const double truth_ns = fleet.truth_ns(shape, static_cast<std::size_t>(report.device.id.back() - '0'));
      const double best_ns = fleet.truth_ns(shape, fleet.best(shape));
      const double took_ns = static_cast<double>(report.median.wall_ns);
      const auto said = [&](const char* words) { return report.selected_because.find(words) != std::string::npos; };
      visits.spent_ns += took_ns;
      if (said(" of at most ")) visits.most_looks = std::max(visits.most_looks, ++looks[{shape, report.device.id}]);
      if (said("chosen to learn more") || said("charged to the exploration budget")) visits.explored_ns += took_ns;
      visits.total_ns += truth_ns;
      visits.oracle_ns += best_ns;
      if (turn < 8) continue;
      ++visits.asked;
      visits.right += truth_ns <= 1.1 * best_ns ? 1 : 0;
    }
  }
  return visits;
}

// One shape on two devices, of which the first takes 2 s, but 6 s from one submission to another.
std::vector<support::SimModel> drifting(std::uint64_t slow_from, std::uint64_t slow_until, std::uint64_t seed) {
  std::vector<support::SimModel> models(2);
  models[0].device.fixed_ns = 2e9;
  models[1].device.fixed_ns = 3e9;
  for (std::size_t d = 0; d < models.size(); ++d) {
    models[d].noise = noise;
    models[d].seed = 2 * seed + d;
  }
  models[0].script.slow_from = slow_from;
  models[0].script.slow_until = slow_until;
  return models;
}

// Jobs on the first device until the selector has said so once more; at most 100.
std::size_t jobs_until(VirtualFleet& fleet, std::string_view became) {
  const std::size_t before = fleet.alarms("simulated:0", became);
  std::size_t jobs = 0;
  while (fleet.alarms("simulated:0", became) == before && jobs < 100) {
    (void)fleet.serve(0, "simulated:0");
    ++jobs;
  }
  return jobs;
}

std::uint64_t seeds(std::uint64_t few, std::uint64_t many) { return is_long() ? many : is_sanitized ? 1 : few; }

}  // namespace

TEST_CASE("selector on devices: a job takes what its device's model says, first runs and noise apart") {
  VirtualFleet fleet(drawn_models(3, 0, 5), 8);
  for (std::size_t shape = 0; shape < fleet.shapes(); ++shape) {
    for (std::size_t device = 0; device < fleet.devices(); ++device) {
      const std::string id = "simulated:" + std::to_string(device);
      (void)fleet.serve(shape, id);  // its weights go to the device
      const Measurement measured = fleet.serve(shape, id).median;
      CHECK(static_cast<double>(measured.wall_ns) == Approx(fleet.truth_ns(shape, device)).epsilon(1e-6));
      CHECK(measured.queue_ns == 0);
    }
  }
}

TEST_CASE("selector on devices: right after 8 visits, little regret, little exploring", "[unsanitized]") {
  const std::size_t devices = GENERATE(2u, 3u, 4u);
  CAPTURE(devices);
  std::size_t right = 0, asked = 0;
  double worst_regret = 0, most_explored = 0;
  for (std::uint64_t seed = 0; seed < seeds(1, 100); ++seed) {
    CAPTURE(seed);
    VirtualFleet fleet(drawn_models(devices, noise, seed), is_sanitized ? 6 : 64);
    const Visits visits = visit(fleet, seed);
    CHECK(visits.regret() <= 0.05);
    CHECK(visits.explored() <= 0.02);
    CHECK(visits.most_looks <= 3);
    right += visits.right;
    asked += visits.asked;
    worst_regret = std::max(worst_regret, visits.regret());
    most_explored = std::max(most_explored, visits.explored());
  }
  const double share = static_cast<double>(right) / static_cast<double>(asked);
  CHECK(share >= 0.95);
  WARN(devices << " devices: " << 100 * share << " % right, regret at most " << 100 * worst_regret
               << " %, exploring at most " << 100 * most_explored << " %");
}

TEST_CASE("selector on devices: shapes that were never run are expected within a quarter, and served by the right one",
          "[unsanitized]") {
  const std::size_t devices = GENERATE(2u, 3u, 4u);
  CAPTURE(devices);
  double worst_error = 0, worst_slower = 0;
  for (std::uint64_t seed = 0; seed < seeds(5, 100); ++seed) {
    CAPTURE(seed);
    VirtualFleet fleet(drawn_models(devices, noise, seed), 64);
    std::vector<std::size_t> order(fleet.shapes());
    std::iota(order.begin(), order.end(), 0);
    std::mt19937_64 random(seed);
    std::shuffle(order.begin(), order.end(), random);
    const std::size_t seen = order.size() * 3 / 4;
    for (std::size_t i = 0; i < seen; ++i) {
      for (std::size_t d = 0; d < devices; ++d) {
        for (int run = 0; run < 4; ++run) (void)fleet.serve(order[i], "simulated:" + std::to_string(d));
      }
    }
    std::vector<double> errors;
    double chosen_ns = 0, best_ns = 0;
    for (std::size_t i = seen; i < order.size(); ++i) {
      const Explanation explained = fleet.explain_hurried(order[i]);
      for (std::size_t d = 0; d < devices; ++d) {
        CHECK(explained.candidates[d].runs == 0);
        const double expected_ns = explained.candidates[d].run_ns + explained.candidates[d].transfer_ns;
        errors.push_back(std::abs(expected_ns / fleet.truth_ns(order[i], d) - 1));
      }
      chosen_ns += fleet.truth_ns(order[i], explained.choice.candidate);
      best_ns += fleet.truth_ns(order[i], fleet.best(order[i]));
    }
    const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
    std::nth_element(errors.begin(), middle, errors.end());
    CHECK(*middle <= 0.25);
    CHECK(chosen_ns / best_ns - 1 <= 0.10);
    worst_error = std::max(worst_error, *middle);
    worst_slower = std::max(worst_slower, chosen_ns / best_ns - 1);
  }
  WARN(devices << " devices: median error at most " << 100 * worst_error << " %, slower than the best by at most "
               << 100 * worst_slower << " %");
}

TEST_CASE("selector on devices: a threefold slow-down is noticed within 12 jobs of the device, its end within 30",
          "[unsanitized]") {
  constexpr std::uint64_t slow_from = 41, slow_jobs = 60;
  for (std::uint64_t seed = 0; seed < seeds(10, 100); ++seed) {
    CAPTURE(seed);
    VirtualFleet fleet(drifting(slow_from, slow_from + slow_jobs, seed), 1);
    for (std::uint64_t job = 1; job < slow_from; ++job) (void)fleet.serve(0, "simulated:0");
    const auto sure = fleet.explain(0).candidates[0];
    CHECK(fleet.alarms("simulated:0", "") == 0);
    const std::size_t noticed = jobs_until(fleet, "slower");
    CHECK(noticed <= 12);

    // Widened, and nothing forgotten.
    const auto alarmed = fleet.explain(0).candidates[0];
    CHECK(alarmed.deviation > 3 * sure.deviation);
    CHECK(alarmed.runs == sure.runs + noticed);
    CHECK(alarmed.run_ns == Approx(6e9).epsilon(0.3));

    for (std::uint64_t job = noticed; job < slow_jobs; ++job) (void)fleet.serve(0, "simulated:0");
    const auto slow = fleet.explain(0).candidates[0];
    CHECK(slow.deviation < 2 * sure.deviation);
    CHECK(slow.run_ns == Approx(6e9).epsilon(0.15));
    CHECK(jobs_until(fleet, "faster") <= 30);
    for (int job = 0; job < 30; ++job) (void)fleet.serve(0, "simulated:0");
    CHECK(fleet.explain(0).candidates[0].run_ns == Approx(2e9).epsilon(0.15));
    CHECK(fleet.alarms("simulated:0", "") == 2);
  }
}

TEST_CASE("selector on devices: left to the selector, a device that became slow is left within 12 of its jobs",
          "[unsanitized]") {
  constexpr std::uint64_t slow_from = 101;
  for (std::uint64_t seed = 0; seed < seeds(5, 100); ++seed) {
    CAPTURE(seed);
    VirtualFleet fleet(drifting(slow_from, 0, seed), 1);
    std::uint64_t on_first = 0;
    const auto serve = [&] {
      const bool first = fleet.serve(0).device.id == "simulated:0";
      on_first += first ? 1 : 0;
      return first;
    };
    for (int job = 0; job < 1000 && on_first + 1 < slow_from; ++job) (void)serve();
    REQUIRE(on_first + 1 == slow_from);  // the faster of the two
    int others_in_a_row = 0;
    for (int job = 0; job < 200 && others_in_a_row < 20; ++job) others_in_a_row = serve() ? 0 : others_in_a_row + 1;
    CHECK(others_in_a_row == 20);
    CHECK(on_first + 1 - slow_from <= 12);
    CHECK(fleet.alarms("simulated:0", "slower") == 1);
  }
}

TEST_CASE("selector on devices: at most one false alarm in 10,000 jobs of a device that stays as it is",
          "[unsanitized]") {
  for (std::uint64_t seed = 0; seed < seeds(1, 10); ++seed) {
    CAPTURE(seed);
    VirtualFleet fleet(drifting(0, 0, seed), 1);
    for (int job = 0; job < (is_sanitized ? 2'000 : 10'000); ++job) (void)fleet.serve(0, "simulated:0");
    CHECK(fleet.alarms("simulated:0", "") <= 1);
    CHECK(fleet.explain(0).candidates[0].runs >= (is_sanitized ? 1'900 : 9'900));  // they were learned from
  }
}
