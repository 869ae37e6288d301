#include "cache/policy/parts/use_history.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace kiln {
namespace {

// How many intervals the program's mean rate stands for beside those that were seen.
constexpr double assumed_intervals = 4;
constexpr std::uint32_t most_times = 64;  // more at once say no more about the next

}  // namespace

void UseHistory::used(std::uint64_t now, std::uint32_t times, double half_life) noexcept {
  times = std::min(times, most_times);
  if (uses_ != 0) {
    const double gap = static_cast<double>(now - latest_);
    recent_uses_ *= static_cast<float>(std::exp2(-gap / half_life));
    const std::uint64_t each = std::max<std::uint64_t>(1, (now - latest_) / times);
    const std::size_t size = std::min<std::size_t>(std::bit_width(each) - 1, sizes - 1);
    if (uses_ + times > std::numeric_limits<std::uint8_t>::max()) halve();
    intervals_[size] = static_cast<std::uint8_t>(intervals_[size] + times);
  }
  uses_ = static_cast<std::uint8_t>(uses_ + times);
  recent_uses_ += static_cast<float>(times);
  latest_ = now;
}

void UseHistory::halve() noexcept {
  for (std::uint8_t& count : intervals_) count = static_cast<std::uint8_t>(count / 2);
  uses_ = static_cast<std::uint8_t>(uses_ / 2);
}

std::uint32_t UseHistory::age_class(std::uint64_t now) const noexcept {
  return std::min<std::uint32_t>(static_cast<std::uint32_t>(std::bit_width(now - latest_ + 1)) - 1, sizes - 1);
}

double UseHistory::prospect(std::uint32_t age_class, double half_life) const noexcept {
  // Two crowds have come to this age without a use: of the intervals seen those that lasted longer, and a few assumed
  // ones of a program without memory, at the mean rate that is left at this age. Keeping them through one more power of
  // two costs its length for each that is not used in it and half of it for each that is; the best ratio of uses to
  // time, over all lengths of keeping, is the answer.
  double length = std::ldexp(1.0, static_cast<int>(age_class));
  const double rate = static_cast<double>(recent_uses_) * std::log(2.0) / half_life * std::exp2(-length / half_life);
  double seen = uses_;
  for (std::uint32_t i = 0; i < age_class; ++i) seen -= intervals_[i];
  double assumed = assumed_intervals;
  double uses = 0;
  double time = 0;
  double best = 0;
  for (std::size_t i = age_class; i < sizes; ++i, length *= 2) {
    const double used_assumed = assumed * (rate * length) / (1 + rate * length);
    const double used = intervals_[i] + used_assumed;
    uses += used;
    time += length * (seen + assumed - used / 2);
    best = std::max(best, uses / time);
    seen -= intervals_[i];
    assumed -= used_assumed;
  }
  return best;
}

}  // namespace kiln
