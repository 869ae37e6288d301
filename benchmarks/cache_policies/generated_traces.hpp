// Traces made from a seed: Zipf mixes with scans, and with popularity that moves.
//
// Thread-safety: pure functions. Ownership: values. The same seed gives the same trace with the same standard library's
// Mersenne Twister, which the standard defines; nothing else of it is used.
#pragma once

#include "cache_policies/trace.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::bench {

struct ZipfMix {
  std::string name;
  std::uint32_t programs = 1000;
  double skew = 1.0;                // request probability of rank r: 1 / r^skew
  std::uint32_t requests = 60'000;  // without the scans'
  std::uint32_t scan_every = 0;     // requests; 0: no scans
  std::uint32_t scan_length = 0;    // programs that are asked for once and never again
  std::uint32_t shuffle_every = 0;  // requests after which popularity is dealt anew; 0: never
  std::uint64_t seed = 1;
};

// Sizes are 12 to 160 KB and costs 20 to 1,000 ms, both log-uniform and independent of one another and of popularity.
Trace generate(const ZipfMix& mix);

// The mixes that cache_policies runs.
std::vector<ZipfMix> standard_mixes(std::uint64_t seed);

}  // namespace kiln::bench
