// Who computes a convolution in conv_tables: peers, judges and the devices of Kiln.
//
// Contestant: one way to compute a convolution, ready to be timed: built, its weights packed.
//
// Thread-safety: one thread; each works on as many cores as it likes. Ownership: borrows the problem. Throws
// std::runtime_error where it cannot run.
#pragma once

#include "conv/problem.hpp"
#include "reference/layers.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kiln/kernel_generator.hpp>
#include <kiln/plugin_loader.hpp>

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
// XNNPACK works on NHWC: oneDNN reorders its input and its output, as for a user whose tensors are NCHW.
std::unique_ptr<Contestant> make_xnnpack(const Problem& problem);
// OpenCV's dnn module: a network of one layer, NCHW in and out, as its users run it.
std::unique_ptr<Contestant> make_opencv(const Problem& problem);
// The version of each; nothing where it is not there.
std::optional<std::string> xnnpack_version();
std::optional<std::string> opencv_version();

// Judge: whether outputs of one problem are right, by the double-precision reference, which is computed once.
//
// Thread-safety: one thread. Ownership: borrows the problem.

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

// Kiln's contestants: its cpu device, and an OpenGL device with the kernel that the generator chooses for it: the tuned
// one where the cache's folder holds a tuning database, else the cost model's.
//
// Thread-safety: one thread. Ownership: contestants die before their device, and both before the problem.

class KilnDevices {
 public:
  // cache_directory: where the tuning database is; empty: nothing is tuned. Throws std::runtime_error where the cpu
  // device cannot be opened; without OpenGL why_no_opengl() says why.
  explicit KilnDevices(const std::string& cache_directory);

  std::unique_ptr<Contestant> on_cpu(Problem& problem);
  // As the shape is, or with Winograd's error allowed. Null without OpenGL; NCHW in host memory to NCHW in host memory.
  std::unique_ptr<Contestant> on_opengl(const Problem& problem, Accuracy accuracy);
  const std::string& why_no_opengl() const { return why_no_opengl_; }
  std::string opengl_driver() const { return opengl_ != nullptr ? opengl_->info().driver : ""; }

 private:
  KilnCpu cpu_;
  Registry registry_;
  PluginLoader loader_;
  WorkCounters counters_;
  std::unique_ptr<Driver> driver_;
  std::shared_ptr<Device> opengl_;
  std::unique_ptr<KernelGenerator> generator_;
  std::string why_no_opengl_;
};

}  // namespace kiln::bench
