// selector: the simulated goals of the learning selector, each with its target and what was reached.
//
//   selector [--seeds N] [--policy NAME]
// Every figure is a function of the seeds: nothing is timed.
#include "core/selector/candidates.hpp"
#include "core/selector/simulated_world.hpp"
#include "selector/model/run_average.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kiln;
using namespace kiln::test;

std::unique_ptr<DeviceSelector> learning(const std::string& policy) {
  SelectorContext context;
  context.config.policy = policy;
  return selector_of("learning", context);
}

struct Spread {
  std::vector<double> values;
  void add(double value) { values.push_back(value); }
  double at(double share) {
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  }
};

void print(const char* goal, const char* target, Spread& reached, double factor, const char* unit) {
  std::printf("| %-58s | %-8s | %7.2f%s | %7.2f | %7.2f |\n", goal, target, factor * reached.at(0.5), unit,
              factor * reached.at(0.05), factor * reached.at(0.95));
}

void choices(Times times, std::size_t devices, int seeds, const std::string& policy) {
  Spread right, fastest, regret, explored, looks;
  for (int seed = 0; seed < seeds; ++seed) {
    const SimulatedWorld world = simulated_world(times, devices, 64, static_cast<std::uint64_t>(seed));
    const auto selector = learning(policy);
    const VisitFigures figures = visit(*selector, world, 200, 8, 0.1, static_cast<std::uint64_t>(seed));
    right.add(static_cast<double>(figures.right) / static_cast<double>(figures.asked));
    fastest.add(static_cast<double>(figures.fastest) / static_cast<double>(figures.asked));
    regret.add(figures.regret());
    explored.add(figures.explored());
    looks.add(static_cast<double>(figures.most_looks));
  }
  const std::string world =
      std::string(times == Times::affine ? "affine" : "independent") + ", " + std::to_string(devices) + " devices: ";
  print((world + "right after 8 visits (within 10 %)").c_str(), ">= 95 %", right, 100, " %");
  print((world + "the very fastest after 8 visits").c_str(), "", fastest, 100, " %");
  print((world + "regret over 200 visits").c_str(), "<= 5 %", regret, 100, " %");
  print((world + "exploring beyond start-up").c_str(), "<= 2 %", explored, 100, " %");
  print((world + "most looks a bucket and device").c_str(), "<= 3", looks, 1, "  ");
}

// One arm whose device takes 2 ms, then `factor` times that, then 2 ms again, with 10 % noise.
void drift(double factor, int seeds) {
  Spread slower, faster;
  std::uint32_t alarms = 0;
  std::uint64_t stationary = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::lognormal_distribution<double> noise(0, 0.1);
    selector::RunAverage average;
    const auto run = [&](double ms) { return average.add(std::log(ms * 1e6 * noise(random)), 0.1); };
    constexpr int quiet = 10'000;
    for (int i = 0; i < quiet; ++i) (void)run(2);
    alarms += average.alarms;
    stationary += quiet;
    const auto until = [&](selector::Drift wanted, double ms) {
      int runs = 1;
      while (run(ms) != wanted && runs < 1000) ++runs;
      return runs;
    };
    slower.add(until(selector::Drift::slower, 2 * factor));
    for (int i = 0; i < 20; ++i) (void)run(2 * factor);
    faster.add(until(selector::Drift::faster, 2));
  }
  char text[64];
  std::snprintf(text, sizeof text, "drift: slow-down by %.1f noticed, in runs", factor);
  print(text, factor >= 3 ? "<= 12" : "", slower, 1, "  ");
  std::snprintf(text, sizeof text, "drift: recovery from it noticed, in runs");
  print(text, factor >= 3 ? "<= 30" : "", faster, 1, "  ");
  if (factor < 3) return;
  std::printf("| %-58s | %-8s | %7.2f   | %17s |\n", "drift: false alarms in 10,000 runs", "<= 1",
              1e4 * alarms / static_cast<double>(stationary), (std::to_string(stationary) + " runs").c_str());
}

void unseen(std::size_t devices, int seeds) {
  Spread errors, slower;
  for (int seed = 0; seed < seeds; ++seed) {
    const auto number = static_cast<std::uint64_t>(seed);
    const UnseenFigures figures = judge_unseen(simulated_world(Times::affine, devices, 64, number), 0.1, number);
    errors.add(figures.median_error);
    slower.add(figures.slower);
  }
  const std::string world = "unseen shapes, " + std::to_string(devices) + " devices: ";
  print((world + "median error").c_str(), "<= 25 %", errors, 100, " %");
  print((world + "chosen slower than the best").c_str(), "<= 10 %", slower, 100, " %");
}

}  // namespace

int main(int argc, char** argv) {
  int seeds = 100;
  std::string policy = "thompson";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seeds") == 0) seeds = std::max(1, std::atoi(argv[i + 1]));
    if (std::strcmp(argv[i], "--policy") == 0) policy = argv[i + 1];
  }
  std::printf("policy %s, %d seeds, 64 buckets, 10 %% noise\n\n", policy.c_str(), seeds);
  std::printf("| %-58s | %-8s | %9s | %7s | %7s |\n", "goal", "target", "median", "p5", "p95");
  for (const Times times : {Times::affine, Times::independent}) {
    for (const std::size_t devices : {2u, 3u, 4u}) choices(times, devices, seeds, policy);
  }
  drift(3, seeds);
  drift(1.5, seeds);
  for (const std::size_t devices : {2u, 4u}) unseen(devices, seeds);
  return 0;
}
