// Exploration: when a candidate is chosen to be looked at rather than because it is expected to be the cheapest.
//
// At most three looks per bucket and device, and none at what is known to be slower. A candidate that is expected to be
// ten times slower is tried once at most, out of the share of time that the configuration allows, and not at all where
// runs of its own leave no doubt. Thread-safety: none; the selector locks. Ownership: values.
#pragma once

#include "selector/prospect.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace kiln::selector {

class Exploration {
 public:
  static constexpr std::uint32_t most_looks = 3;
  static constexpr double hopeless = 10;  // times the best

  // share: of the time spent in jobs, what may be spent on hopeless candidates.
  explicit Exploration(double share) : share_(share) {}

  // The candidate to look at; nullopt: none needs it.
  std::optional<std::size_t> next(std::span<const Prospect> prospects);
  void spend(double job_ns) { worked_ns_ += job_ns; }

 private:
  bool wants_look(const Prospect& prospect, double best_ns) const;

  double share_;
  double worked_ns_ = 0;
  double explored_ns_ = 0;
};

}  // namespace kiln::selector
