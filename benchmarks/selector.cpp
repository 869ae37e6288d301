// selector: the simulated goals of the learning selector, each with its target and what was reached.
//
//   selector [--seeds N] [--policy NAME] [--figures FILE]
// Every figure is a function of the seeds: nothing is timed. Beside the learning selector stands one that knows nothing
// and serves everything by the first device, on the same worlds.
#include "core/selector/candidates.hpp"
#include "core/selector/simulated_world.hpp"
#include "figures.hpp"
#include "selector/statistics.hpp"

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

// A figure a goal: the median and quartiles of the seeds.
class Told {
 public:
  explicit Told(bench::FigureFile& file) : file_(file) {}
  void add(const std::string& id, const std::string& name, const char* unit, bench::Better better,
           const Spread& reached, double factor, double goal, const std::string& group, const Spread* fixed = nullptr) {
    bench::Figure figure;
    figure.id = "selector." + id;
    figure.name = name;
    figure.unit = unit;
    figure.better = better;
    for (const double value : reached.values) figure.kiln.push_back(factor * value);
    if (fixed != nullptr) {
      figure.peer = bench::Peer{"always the first device", {}};
      for (const double value : fixed->values) figure.peer->samples.push_back(factor * value);
    }
    if (goal > 0) figure.target = bench::Target{bench::Target::Of::kiln, goal};
    figure.group = group;
    file_.add(std::move(figure));
  }

 private:
  bench::FigureFile& file_;
};

void print(const char* goal, const char* target, Spread& reached, double factor, const char* unit) {
  std::printf("| %-58s | %-8s | %7.2f%s | %7.2f | %7.2f |\n", goal, target, factor * reached.at(0.5), unit,
              factor * reached.at(0.05), factor * reached.at(0.95));
}

void choices(Times times, std::size_t devices, int seeds, const std::string& policy, Told& told) {
  Spread right, fastest, regret, explored, looks, total, total_of_fixed;
  for (int seed = 0; seed < seeds; ++seed) {
    const SimulatedWorld world = simulated_world(times, devices, 64, static_cast<std::uint64_t>(seed));
    const auto selector = learning(policy);
    const VisitFigures figures = visit(*selector, world, 200, 8, 0.1, static_cast<std::uint64_t>(seed));
    right.add(static_cast<double>(figures.right) / static_cast<double>(figures.asked));
    fastest.add(static_cast<double>(figures.fastest) / static_cast<double>(figures.asked));
    regret.add(figures.regret());
    explored.add(figures.explored());
    looks.add(static_cast<double>(figures.most_looks));
    total.add(figures.total_ms / figures.oracle_ms);
    const auto fixed = selector_of("fixed", {});
    const VisitFigures of_fixed = visit(*fixed, world, 200, 8, 0.1, static_cast<std::uint64_t>(seed));
    total_of_fixed.add(of_fixed.total_ms / of_fixed.oracle_ms);
  }
  const std::string world =
      std::string(times == Times::affine ? "affine" : "independent") + ", " + std::to_string(devices) + " devices: ";
  print((world + "right after 8 visits (within 10 %)").c_str(), ">= 95 %", right, 100, " %");
  print((world + "the very fastest after 8 visits").c_str(), "", fastest, 100, " %");
  print((world + "regret over 200 visits").c_str(), "<= 5 %", regret, 100, " %");
  print((world + "exploring beyond start-up").c_str(), "<= 2 %", explored, 100, " %");
  print((world + "most looks a bucket and device").c_str(), "<= 3", looks, 1, "  ");
  const std::string group = world.substr(0, world.size() - 2);
  const std::string id = (times == Times::affine ? "affine" : "independent") + std::to_string(devices) + ".";
  told.add(id + "right", "right after 8 visits (within 10 %)", "%", bench::Better::more, right, 100, 95, group);
  told.add(id + "regret", "regret over 200 visits", "%", bench::Better::less, regret, 100, 5, group);
  told.add(id + "explored", "time spent on looking beyond start-up", "%", bench::Better::less, explored, 100, 2, group);
  told.add(id + "total/fixed", "time of all jobs, of what the best choice takes", "x", bench::Better::less, total, 1, 0,
           group, &total_of_fixed);
}

// One arm whose device takes 2 ms, then `factor` times that, then 2 ms again, with 10 % noise.
void drift(double factor, int seeds, Told& told) {
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
  told.add("drift.slower", "a slow-down by 3 is noticed after", "runs", bench::Better::less, slower, 1, 12, "drift");
  told.add("drift.faster", "the recovery from it is noticed after", "runs", bench::Better::less, faster, 1, 30,
           "drift");
  std::printf("| %-58s | %-8s | %7.2f   | %17s |\n", "drift: false alarms in 10,000 runs", "<= 1",
              1e4 * alarms / static_cast<double>(stationary), (std::to_string(stationary) + " runs").c_str());
}

void unseen(std::size_t devices, int seeds, Told& told) {
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
  const std::string id = "unseen" + std::to_string(devices) + ".", group = world.substr(0, world.size() - 2);
  told.add(id + "error", "error of the expected time, median of shapes", "%", bench::Better::less, errors, 100, 25,
           group);
  told.add(id + "slower", "chosen slower than the best", "%", bench::Better::less, slower, 100, 10, group);
}

}  // namespace

int main(int argc, char** argv) try {
  auto file = bench::FigureFile::of_words(argc, argv);
  Told told(file);
  int seeds = 100;
  std::string policy = "thompson";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seeds") == 0) seeds = std::max(1, std::atoi(argv[i + 1]));
    if (std::strcmp(argv[i], "--policy") == 0) policy = argv[i + 1];
  }
  std::printf("policy %s, %d seeds, 64 buckets, 10 %% noise\n\n", policy.c_str(), seeds);
  std::printf("| %-58s | %-8s | %9s | %7s | %7s |\n", "goal", "target", "median", "p5", "p95");
  for (const Times times : {Times::affine, Times::independent}) {
    for (const std::size_t devices : {2u, 3u, 4u}) choices(times, devices, seeds, policy, told);
  }
  drift(3, seeds, told);
  drift(1.5, seeds, told);
  for (const std::size_t devices : {2u, 4u}) unseen(devices, seeds, told);
  file.write();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "selector: %s\n", error.what());
  return 1;
}
