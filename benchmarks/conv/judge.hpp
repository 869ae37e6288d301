// Judge: whether outputs of one problem are right, by the double-precision reference, which is computed once.
//
// Thread-safety: one thread. Ownership: borrows the problem.
#pragma once

#include "cpu/problem.hpp"
#include "reference/conv2d.hpp"

#include <span>
#include <vector>

namespace kiln::bench {

class Judge {
 public:
  // REQUIRES: a conv2d.
  explicit Judge(const Problem& problem);
  // Every output finite and within the bound of a direct sum or, where a Winograd algorithm exists for the shape, of
  // that: which one a library took is not known.
  bool is_right(std::span<const float> output);

 private:
  bool within(std::span<const float> output, const std::vector<double>& allowance) const;

  const Problem& problem_;
  Conv2dSpec spec_;
  reference::Reference reference_;
  std::vector<double> winograd_;  // computed when an output is beyond the direct sum's bound
};

}  // namespace kiln::bench
