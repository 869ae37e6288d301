#include "simulator/kernel/buffers/sparse_ranges.hpp"

#include <iterator>

namespace kiln::simulator::kernel {

bool SparseRanges::overlaps(std::uint64_t start, std::uint64_t bytes) const {
  const auto after = ends_.lower_bound(start + bytes);
  return after != ends_.begin() && std::prev(after)->second > start;
}

void SparseRanges::cut(std::uint64_t start, std::uint64_t bytes) {
  const std::uint64_t end = start + bytes;
  auto at = ends_.lower_bound(start);
  if (at != ends_.begin() && std::prev(at)->second > start) --at;
  while (at != ends_.end() && at->first < end) {
    const auto [first, last] = *at;
    at = ends_.erase(at);
    if (first < start) ends_[first] = start;
    if (last > end) ends_[end] = last;
  }
}

}  // namespace kiln::simulator::kernel
