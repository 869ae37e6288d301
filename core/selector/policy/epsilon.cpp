// epsilon: the cheapest, but for a share of the choices, which go to any that is not hopeless.
#include "selector/policy/policy.hpp"

#include <vector>

namespace kiln::selector {
namespace {

constexpr double hopeless = 10;  // times the cheapest

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

}  // namespace kiln::selector
