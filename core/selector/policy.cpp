#include "selector/policy.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace kiln::selector {

Policy::~Policy() = default;

double Option::expected_ns() const noexcept { return fixed_ns + std::exp(log_ns); }

std::size_t cheapest(std::span<const Option> options) noexcept {
  std::size_t best = 0;
  for (std::size_t i = 1; i < options.size(); ++i) {
    if (options[i].expected_ns() < options[best].expected_ns()) best = i;
  }
  return best;
}

Result<std::unique_ptr<Policy>> make_policy(const SelectorConfig& config) {
  if (config.policy == "ema") return make_ema();
  if (config.policy == "epsilon") return make_epsilon(config.exploration);
  if (config.policy == "ucb") return make_ucb();
  if (config.policy == "thompson") return make_thompson();
  return invalid_argument("[selector] policy = \"" + config.policy + "\": expected ema, epsilon, ucb or thompson");
}

// ema: the least expected cost.
namespace {

class Ema final : public Policy {
 public:
  std::size_t choose(std::span<const Option> options, std::mt19937_64&) override { return cheapest(options); }
};

}  // namespace

std::unique_ptr<Policy> make_ema() { return std::make_unique<Ema>(); }

// epsilon: the least expected cost, except for a share of random choices among candidates that are not hopeless.
namespace {

constexpr double hopeless = 10;  // times the least expected cost

class Epsilon final : public Policy {
 public:
  explicit Epsilon(double share) : share_(share) {}

  std::size_t choose(std::span<const Option> options, std::mt19937_64& random) override {
    const std::size_t best = cheapest(options);
    if (std::uniform_real_distribution<double>(0, 1)(random) >= share_) return best;
    std::vector<std::size_t> possible;
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (options[i].expected_ns() <= hopeless * options[best].expected_ns()) possible.push_back(i);
    }
    return possible[std::uniform_int_distribution<std::size_t>(0, possible.size() - 1)(random)];
  }

 private:
  double share_;
};

}  // namespace

std::unique_ptr<Policy> make_epsilon(double exploration) { return std::make_unique<Epsilon>(exploration); }

// thompson: draws a time for each candidate from its log-normal belief and takes the least, so each is chosen with the
// probability that it is the best.
namespace {

class Thompson final : public Policy {
 public:
  std::size_t choose(std::span<const Option> options, std::mt19937_64& random) override {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < options.size(); ++i) {
      std::normal_distribution<double> belief(options[i].log_ns, options[i].log_deviation);
      const double draw = options[i].fixed_ns + std::exp(belief(random));
      if (draw >= least) continue;
      least = draw;
      best = i;
    }
    return best;
  }
};

}  // namespace

std::unique_ptr<Policy> make_thompson() { return std::make_unique<Thompson>(); }

// ucb: the least lower confidence bound of the cost; the interval grows with the number of runs of all candidates.
namespace {

class Ucb final : public Policy {
 public:
  std::size_t choose(std::span<const Option> options, std::mt19937_64&) override {
    std::uint64_t runs = 0;
    for (const Option& option : options) runs += option.runs;
    const double width = std::sqrt(2 * std::log(1 + static_cast<double>(runs)));
    const auto bound = [&](const Option& option) {
      return option.fixed_ns + std::exp(option.log_ns - width * option.log_deviation);
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < options.size(); ++i) {
      if (bound(options[i]) < bound(options[best])) best = i;
    }
    return best;
  }
};

}  // namespace

std::unique_ptr<Policy> make_ucb() { return std::make_unique<Ucb>(); }

}  // namespace kiln::selector
