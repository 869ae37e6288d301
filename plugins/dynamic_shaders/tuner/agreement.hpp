// Which variants of a kernel are right where there is no reference: those of the largest group that computes the same.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kiln::dynamic_shaders {

struct Vote {
  std::string variant;
  std::uint32_t group = 0;  // VariantSamples::agreement
};

struct Outvoted {
  std::string variant;
  std::string why;
};

struct Agreement {
  std::uint32_t group = 0;         // taken as right
  std::vector<Outvoted> outvoted;  // the variants of all other groups, in the order of the votes
};

// unavailable: no group is larger than every other, with the variants of the largest ones. Variants of the group
// agrees_with_none count as one group, which is never taken as right. REQUIRES: not empty.
Result<Agreement> agreement_of(std::span<const Vote> votes);

}  // namespace kiln::dynamic_shaders
