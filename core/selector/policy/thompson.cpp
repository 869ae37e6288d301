// thompson: draws a time for each candidate from what is believed of it (log-normal) and takes the cheapest draw, so
// that each is chosen as often as it is likely to be the best.
#include "selector/policy/policy.hpp"

#include <cmath>
#include <limits>

namespace kiln::selector {
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

}  // namespace kiln::selector
