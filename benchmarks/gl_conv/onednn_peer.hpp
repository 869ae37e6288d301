// OnednnPeer: oneDNN's direct convolution beside the generator's kernels, in the layout that it likes best.
//
// Thread-safety: one thread; oneDNN works on as many as OpenMP has. Ownership: owns its memory; the problem outlives
// it. Throws std::runtime_error where oneDNN has nothing but its reference code.
#pragma once

#include "gl_conv/contender.hpp"

#include <memory>
#include <string>

namespace kiln::benchmarks {

class OnednnPeer {
 public:
  explicit OnednnPeer(const Problem& problem);
  OnednnPeer(OnednnPeer&&) noexcept;
  ~OnednnPeer();

  // Of the whole output against the double-precision reference.
  bool is_right();
  // device: the convolution alone, on activations in its own layout. wall: with its reorders, NCHW to NCHW.
  Times time();
  std::string name() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace kiln::benchmarks
