// ucb: the one whose cost is least if it is as fast as it may well be: what is uncertain is given the benefit of doubt,
// the more so the more runs the others have had.
#include "selector/policy/policy.hpp"

#include <cmath>

namespace kiln::selector {
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
