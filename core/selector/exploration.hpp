// Exploration: when a candidate is looked at rather than taken because it is expected to be the cheapest.
//
// At the start of a bucket each candidate has an allowance of three looks. A look is taken where what it may save over
// the runs that are likely to come outweighs what it costs (expected improvement of a log-normal belief), so that what
// is clearly slower is looked at once, and what is predicted to be clearly slower not at all. Beyond the allowance, and
// for a candidate that is predicted to be ten times slower, which is tried once at most, looking is paid for out of a
// share of the time spent in jobs. So is looking again, now and then, at a device that has changed before and was left:
// nobody would notice that it has recovered.
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
  static constexpr double horizon = 100;  // runs that a finding is taken to serve
  static constexpr std::uint64_t patience =
      50;  // runs that others serve before a device that changed is looked at again

  // share: of the time spent in jobs, what may be spent on looking beyond the allowance.
  explicit Exploration(double share) : share_(share) {}

  struct Look {
    std::size_t candidate;
    double charged_ns;  // to the budget; 0: within the allowance
  };
  // The candidate to look at; nullopt: none is worth it.
  std::optional<Look> next(std::span<const Prospect> prospects) const;
  // One that has changed before; passed_over: by candidate, the runs that others served since its last.
  std::optional<Look> again(std::span<const Prospect> prospects, std::span<const std::uint64_t> passed_over) const;
  // Whether the budget has room for a job of that length.
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
