// SparseRanges: addresses that were given away without memory behind them (partially resident mappings). Buffers are
// put over parts of them later. A device would read zeros in the rest; the simulated one refuses the access as
// unmapped.
//
// Thread-safety: REQUIRES the device's mutex. Ownership: values.
#pragma once

#include <cstdint>
#include <map>

namespace kiln::simulator::kernel {

class SparseRanges {
 public:
  bool overlaps(std::uint64_t start, std::uint64_t bytes) const;
  // REQUIRES that it overlaps none.
  void add(std::uint64_t start, std::uint64_t bytes) { ends_[start] = start + bytes; }
  void cut(std::uint64_t start, std::uint64_t bytes);

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by start; no two overlap
};

}  // namespace kiln::simulator::kernel
