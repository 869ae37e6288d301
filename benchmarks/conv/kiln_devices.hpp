// Kiln's contestants: its cpu device, and an OpenGL device with the kernel that the generator chooses for it: the tuned
// one where the cache's folder holds a tuning database, else the cost model's.
//
// Thread-safety: one thread. Ownership: contestants die before their device, and both before the problem.
#pragma once

#include <kiln/kernel_generator.hpp>
#include <kiln/plugin_loader.hpp>

#include "conv/contestant.hpp"
#include "cpu/problem.hpp"

namespace kiln::bench {

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
