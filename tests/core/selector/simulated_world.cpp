#include "core/selector/simulated_world.hpp"

#include "core/selector/candidates.hpp"
#include "selector/performance_model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

namespace kiln::test {
namespace {

double log_uniform(std::mt19937_64& random, double least, double most) {
  return std::exp(std::uniform_real_distribution<double>(std::log(least), std::log(most))(random));
}

}  // namespace

std::size_t SimulatedWorld::best(std::size_t spec) const {
  return static_cast<std::size_t>(std::min_element(truth_ms[spec].begin(), truth_ms[spec].end()) -
                                  truth_ms[spec].begin());
}

std::vector<KernelSpec> different_buckets(std::size_t count) {
  std::vector<KernelSpec> specs;
  std::set<std::string> seen;
  for (const std::int64_t kernel : {3, 1, 5}) {
    for (const std::int64_t channels : {16, 32, 64, 128, 256}) {
      for (const std::int64_t side : {7, 10, 14, 28, 56, 112}) {
        const KernelSpec spec = conv(channels, side, kernel);
        if (specs.size() < count && seen.insert(ShapeBucket(spec).shape).second) specs.push_back(spec);
      }
    }
  }
  if (specs.size() < count) throw std::runtime_error("only " + std::to_string(specs.size()) + " different buckets");
  return specs;
}

SimulatedWorld simulated_world(Times times, std::size_t devices, std::size_t buckets, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  SimulatedWorld world;
  world.specs = different_buckets(buckets);
  struct Speed {
    double start_ms, flops_per_ms, bytes_per_ms;
  };
  std::vector<Speed> speeds;
  for (std::size_t d = 0; d < devices; ++d) {
    world.devices.push_back(device_of("device " + std::to_string(d)));
    const double start_ms = log_uniform(random, 0.005, 0.2);
    const double flops_per_ms = log_uniform(random, 20e6, 500e6);
    speeds.push_back({start_ms, flops_per_ms, log_uniform(random, 5e6, 100e6)});
  }
  for (const KernelSpec& spec : world.specs) {
    const double base_ms = log_uniform(random, 0.1, 10);
    std::vector<double>& row = world.truth_ms.emplace_back();
    for (const Speed& speed : speeds) {
      const double affine_ms =
          speed.start_ms + flops(spec) / speed.flops_per_ms + bytes_moved(spec) / speed.bytes_per_ms;
      const double suits = std::normal_distribution<double>()(random);
      row.push_back(times == Times::affine ? affine_ms * std::exp(0.25 * suits) : base_ms * std::exp(0.6 * suits));
    }
  }
  return world;
}

VisitFigures visit(DeviceSelector& selector, const SimulatedWorld& world, std::size_t visits, std::size_t learning,
                   double noise, std::uint64_t seed) {
  std::mt19937_64 random(seed ^ 0x9e3779b97f4a7c15u);
  std::lognormal_distribution<double> noisy(0, noise);
  std::vector<Candidate> candidates;
  for (const DeviceInfo& device : world.devices) candidates.push_back({&device, 0, false});
  std::vector<std::size_t> order(world.specs.size());
  std::iota(order.begin(), order.end(), 0);
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> looks;
  VisitFigures figures;
  for (std::size_t turn = 0; turn < visits; ++turn) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t s : order) {
      auto choice = selector.select(world.specs[s], candidates, {});
      if (!choice) throw std::runtime_error(choice.error().text());
      const std::size_t chosen = choice->candidate;
      const double truth_ms = world.truth_ms[s][chosen];
      const double took_ms = truth_ms * noisy(random);
      selector.record(world.specs[s], world.devices[chosen], run_of(took_ms), {});
      figures.spent_ms += took_ms;
      const bool start_up = choice->because.find(" of at most ") != std::string::npos;
      const bool explores = choice->because.find("chosen to learn more") != std::string::npos ||
                            choice->because.find("charged to the exploration budget") != std::string::npos;
      if (start_up) figures.most_looks = std::max(figures.most_looks, ++looks[{s, chosen}]);
      if (explores) figures.explored_ms += took_ms;
      figures.total_ms += truth_ms;
      figures.oracle_ms += world.best_ms(s);
      if (turn < learning) continue;
      ++figures.asked;
      figures.right += truth_ms <= 1.1 * world.best_ms(s) ? 1 : 0;
      figures.fastest += chosen == world.best(s) ? 1 : 0;
    }
  }
  return figures;
}

UnseenFigures judge_unseen(const SimulatedWorld& world, double noise, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> noisy(0, noise);
  selector::PerformanceModel model(0.1);
  std::vector<std::size_t> order(world.specs.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const std::size_t seen = order.size() * 3 / 4;
  for (std::size_t i = 0; i < seen; ++i) {
    const ShapeBucket bucket = ShapeBucket(world.specs[order[i]]);
    for (std::size_t d = 0; d < world.devices.size(); ++d) {
      for (int run = 0; run < 3; ++run) {
        (void)model.learn_run(bucket, world.devices[d], 1e6 * world.truth_ms[order[i]][d] * noisy(random), 0);
      }
    }
  }
  std::vector<double> errors;
  double chosen_ms = 0, best_ms = 0;
  for (std::size_t i = seen; i < order.size(); ++i) {
    const std::vector<double>& truth_ms = world.truth_ms[order[i]];
    std::vector<double> expected_ms;
    for (std::size_t d = 0; d < world.devices.size(); ++d) {
      const auto estimate = model.estimate(ShapeBucket(world.specs[order[i]]), world.devices[d]);
      expected_ms.push_back(std::exp(estimate.log_ns) / 1e6);
      errors.push_back(std::abs(expected_ms[d] / truth_ms[d] - 1));
    }
    const auto chosen = std::min_element(expected_ms.begin(), expected_ms.end()) - expected_ms.begin();
    chosen_ms += truth_ms[static_cast<std::size_t>(chosen)];
    best_ms += world.best_ms(order[i]);
  }
  std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2), errors.end());
  return {errors[errors.size() / 2], chosen_ms / best_ms - 1};
}

}  // namespace kiln::test
