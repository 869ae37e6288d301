// Contestant: one way to compute a convolution, ready to be timed: built, its weights packed.
//
// Thread-safety: one thread; each works on as many cores as it likes. Ownership: borrows the problem. Throws
// std::runtime_error where it cannot run.
#pragma once

#include "cpu/problem.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kiln::bench {

class Contestant {
 public:
  Contestant() = default;
  Contestant(const Contestant&) = delete;
  Contestant& operator=(const Contestant&) = delete;
  virtual ~Contestant() = default;

  // What is timed.
  virtual void run() = 0;
  // Outside the clock: NaN to where the next run writes, and what it wrote, NCHW.
  virtual void poison() = 0;
  virtual std::vector<float> output() = 0;
};

// The peers that a build may lack; each null where it does, or where the library has nothing for the shape.
// XNNPACK works on NHWC, as it wants to: its input lies so already, and putting its output in order is not timed.
std::unique_ptr<Contestant> make_xnnpack(const Problem& problem);
// OpenCV's dnn module: a network of one layer, NCHW in and out, as its users run it.
std::unique_ptr<Contestant> make_opencv(const Problem& problem);
// The version of each; nothing where it is not there.
std::optional<std::string> xnnpack_version();
std::optional<std::string> opencv_version();

}  // namespace kiln::bench
