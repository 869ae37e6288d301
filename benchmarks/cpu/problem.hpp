// Problem: a conv2d or gemm with random operands and an output for each side, and what the programs of this folder
// share.
//
// Thread-safety: one thread. Ownership: owns its tensors, which stay where they are as it moves.
#pragma once

#include <kiln/plugin.hpp>

#include "figures/figures.hpp"

#include <memory>
#include <random>
#include <span>
#include <vector>

namespace kiln::bench {

struct Tensor {
  explicit Tensor(std::uint64_t bytes);
  void poison();

  std::shared_ptr<HostTensor> held;
  std::span<float> values;
};

struct Problem {
  // REQUIRES: spec is a conv2d or a gemm without bias.
  Problem(const KernelSpec& spec, std::mt19937& random);
  // The whole output against the double-precision reference. Throws std::runtime_error.
  bool is_right(const Tensor& output) const;

  KernelSpec spec;
  Tensor input, weights, kiln_output, peer_output;  // outputs poisoned
};

double milliseconds_since(std::uint64_t begun_ns);

}  // namespace kiln::bench
