#include "conformance/shape_budget.hpp"

#include <algorithm>

namespace kiln::conformance {
namespace {

constexpr std::int64_t least_extent = 7;    // pixels along an axis: borders and an inside
constexpr std::int64_t least_channels = 8;  // of a group

bool halve_pixels(Conv2dSpec& spec) {
  const std::int64_t least_h = std::max(least_extent, (spec.r - 1) * spec.dilation_y + 1);
  const std::int64_t least_w = std::max(least_extent, (spec.s - 1) * spec.dilation_x + 1);
  const std::int64_t h = std::max(least_h, (spec.h + 1) / 2), w = std::max(least_w, (spec.w + 1) / 2);
  if (h >= spec.h && w >= spec.w) return false;
  spec.h = std::min(spec.h, h), spec.w = std::min(spec.w, w);
  return true;
}

bool halve_channels(Conv2dSpec& spec) {
  const std::int64_t group_c = spec.c / spec.groups, group_k = spec.k / spec.groups;
  if (spec.groups > 1) {
    spec.groups = (spec.groups + 1) / 2;
    spec.c = spec.groups * group_c, spec.k = spec.groups * group_k;
    return true;
  }
  if (spec.c <= least_channels && spec.k <= least_channels) return false;
  spec.c = spec.c <= least_channels ? spec.c : (spec.c + 1) / 2;
  spec.k = spec.k <= least_channels ? spec.k : (spec.k + 1) / 2;
  return true;
}

}  // namespace

double multiply_adds(const Conv2dSpec& spec) noexcept { return flops(spec) / 2; }

Conv2dSpec within_budget(Conv2dSpec spec, double most_multiply_adds) {
  while (multiply_adds(spec) > most_multiply_adds) {
    if (spec.n > 1) {
      spec.n = (spec.n + 1) / 2;
    } else if (!halve_pixels(spec) && !halve_channels(spec)) {
      break;
    }
  }
  return spec;
}

}  // namespace kiln::conformance
