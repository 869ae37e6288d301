// ema: always the one with the least expected cost.
#include "selector/policy/policy.hpp"

namespace kiln::selector {
namespace {

class Ema final : public Policy {
 public:
  std::size_t choose(std::span<const Option> options, std::mt19937_64&) override { return cheapest(options); }
};

}  // namespace

std::unique_ptr<Policy> make_ema() { return std::make_unique<Ema>(); }

}  // namespace kiln::selector
