// Exploration: decides when to run a job on a candidate to measure it, although another is expected to be faster.
//
// Each candidate of a new bucket has an allowance of three exploration runs. A run is made if its expected saving over
// later runs is more than its cost (expected improvement of a log-normal belief). A clearly slower candidate is
// therefore measured once, and one that is predicted to be clearly slower never. Further runs are paid from a budget, a
// share of the time spent in jobs: runs beyond the allowance; the single run of a candidate that is predicted to be ten
// times slower; and repeated runs on a device that became slow and may have recovered.
// Thread-safety: none; the selector locks. Ownership: values.
#pragma once

#include "selector/prospect.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace kiln::selector {

class Exploration {
 public:
  static constexpr std::uint32_t most_looks = 3;
  static constexpr double horizon = 100;  // later runs that are assumed to benefit
  static constexpr std::uint64_t patience =
      50;  // runs elsewhere before a device that changed is measured again

  // share: of the time spent in jobs, for runs beyond the allowance.
  explicit Exploration(double share) : share_(share) {}

  struct Look {
    std::size_t candidate;
    double charged_ns;  // to the budget; 0: within the allowance
  };
  // Returns the candidate to measure; nullopt: none is worth it.
  std::optional<Look> next(std::span<const Prospect> prospects) const;
  // The same for devices that changed before. passed_over: by candidate, runs on other devices since its last run.
  std::optional<Look> again(std::span<const Prospect> prospects, std::span<const std::uint64_t> passed_over) const;
  // Whether the budget is enough for a job of that length.
  bool affords(double ns) const { return explored_ns_ + ns <= share_ * worked_ns_; }

  void charge(double ns) { explored_ns_ += ns; }
  void spend(double job_ns) { worked_ns_ += job_ns; }
  double explored_ns() const noexcept { return explored_ns_; }
  double worked_ns() const noexcept { return worked_ns_; }
  double share() const noexcept { return share_; }

 private:
  std::optional<Look> look_at(std::span<const Prospect> prospects, std::size_t candidate, double best_ns,
                              double best_deviation) const;

  double share_;
  double worked_ns_ = 0;
  double explored_ns_ = 0;
};

}  // namespace kiln::selector
