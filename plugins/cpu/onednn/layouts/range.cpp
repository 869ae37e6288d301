#include "onednn/layouts/range.hpp"

#include <algorithm>

namespace kiln::cpu {
namespace {

std::int64_t quotient_up(std::int64_t of, std::int64_t by) { return (of + by - 1) / by; }

}  // namespace

std::vector<Range> split(std::int64_t extent, std::int64_t count, std::int64_t unit) {
  const std::int64_t units = quotient_up(extent, unit);
  count = std::min(count, units);
  std::vector<Range> ranges;
  for (std::int64_t i = 0; i < count; ++i) {
    ranges.push_back({units * i / count * unit, std::min(units * (i + 1) / count * unit, extent)});
  }
  return ranges;
}

std::vector<std::int64_t> share(const std::vector<Axis>& axes, std::int64_t wanted) {
  std::vector<std::int64_t> counts;
  for (const Axis& axis : axes) {
    const std::int64_t most = std::max<std::int64_t>(quotient_up(axis.extent, axis.unit) / axis.least, 1);
    counts.push_back(std::min(most, wanted));
    wanted = quotient_up(wanted, counts.back());
  }
  return counts;
}

}  // namespace kiln::cpu
