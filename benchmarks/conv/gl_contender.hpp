// Contender: one way to compute a convolution on an OpenGL device, ready to be timed: programs built, weights packed,
// buffers filled.
//
// Thread-safety: one thread. Ownership: owns its buffers and programs; the device and the problem outlive it. Throws
// std::runtime_error where the device refuses.
#pragma once

#include <kiln/device.hpp>
#include <kiln/tensor.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kiln::benchmarks {

struct Problem {
  Problem(const Conv2dSpec& of, std::uint64_t seed);

  Conv2dSpec spec;
  std::shared_ptr<HostTensor> input, weights;
};

// What takes less is repeated until it takes as long, and the whole is divided: a short run says more of waking
// threads.
inline constexpr double least_timed_ms = 2, most_repeats = 200;
// Before its turn is timed a contender runs for so long, or once.
inline constexpr double warming_ms = 10;

struct Times {
  double device_ms = 0;  // of all passes but the one that packs activations; by the device's clock
  double wall_ms = 0;    // input in host memory to output in host memory, NCHW both, all passes
};

class Contender {
 public:
  Contender(Device& device, const Problem& problem, KernelPlan plan);

  // Poisons the output, runs, and compares all of it with the double-precision reference.
  bool is_right();
  Times time();
  // Of each pass, packing included, by the device's clock: the least of `rounds`.
  std::vector<double> pass_ms(int rounds);
  // One run as `wall_ms` is of, what it wrote last, and NaN to where the next one writes.
  void run();
  const std::vector<float>& output() const { return output_; }
  void poison();
  const std::string& variant() const { return plan_.variant; }
  double build_ms() const { return build_ms_; }  // compiling, and the first dispatch of every pass

 private:
  std::uint64_t dispatch(std::span<const PassLaunch> launches);
  std::vector<PassLaunch> launches_of(const std::vector<Pass>& passes, std::vector<std::unique_ptr<Program>>& programs);

  Device& device_;
  const Problem& problem_;
  KernelPlan plan_;
  std::vector<std::unique_ptr<Buffer>> tensors_, scratch_, prepared_, constants_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<std::vector<Buffer*>> bound_;
  std::vector<PassLaunch> launches_;
  std::vector<PassLaunch> timed_;  // by the device's clock: all but the packing, repeated
  std::size_t repeats_ = 1;
  std::size_t packing_ = 0;  // so many of the first passes only pack activations
  std::vector<float> output_;
  double build_ms_ = 0;
};

// The definition with every extent read from memory, as it is first written: one program for all shapes.
KernelPlan shape_generic_plan(const Conv2dSpec& spec);

// OnednnPeer: oneDNN's direct convolution beside the generator's kernels, in the layout that it likes best.
//
// Thread-safety: one thread; oneDNN works on as many as OpenMP has. Ownership: owns its memory; the problem outlives
// it. Throws std::runtime_error where oneDNN has nothing but its reference code.

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
