// Range: a stretch of an extent, and the cutting of extents into them.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace kiln::cpu {

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const noexcept { return end - begin; }
};

// `count` ranges that share `extent`, their boundaries at multiples of `unit`; fewer where there are not enough units.
std::vector<Range> split(std::int64_t extent, std::int64_t count, std::int64_t unit);

// What is cut along an axis: pieces of at least `least` units, where there is more than one.
struct Axis {
  std::int64_t extent = 1, unit = 1, least = 1;
};

// How many pieces along each of `axes`, so that about `wanted` come out of all: as many as there can be along the
// first, along the next what is missing, and so on.
std::vector<std::int64_t> share(const std::vector<Axis>& axes, std::int64_t wanted);

}  // namespace kiln::cpu
