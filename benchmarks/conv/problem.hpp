// Problem: a conv2d or gemm with random operands and an output for each side, and what the programs of this folder
// share.
//
// Thread-safety: one thread. Ownership: owns its tensors, which stay where they are as it moves.
#pragma once

#include "figures.hpp"

#include <kiln/plugin.hpp>

#include <oneapi/dnnl/dnnl.hpp>

#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
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

// DirectCall: the peer: oneDNN called directly and spread over OpenMP's threads by itself, weights packed beforehand.
//
// Thread-safety: one thread; oneDNN works on as many as OpenMP has. Ownership: owns what it packs and reorders; the
// problem outlives it.
class DirectCall {
 public:
  void run();
  const std::string& name() const { return name_; }

  // Of the ways that oneDNN has for the problem, that with the least median of its own. A conv2d goes from NCHW to NCHW
  // in each layout, with the reorders that it needs; a gemm is a matmul on packed weights or on those as they lie, or
  // an inner product. Throws std::runtime_error where there is nothing but reference code.
  static DirectCall best(const dnnl::engine& engine, Problem& problem);
  // A conv2d by Winograd's algorithm; nothing where oneDNN has none for the shape and this processor.
  static std::optional<DirectCall> winograd(const dnnl::engine& engine, Problem& problem);

 private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };
  enum class GemmWay { packed, plain, inner_product };

  explicit DirectCall(const dnnl::engine& engine) : engine_(engine), stream_(engine) {}
  static DirectCall convolution(const dnnl::engine& engine, Problem& problem, dnnl::memory::format_tag tag,
                                dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct);
  static DirectCall gemm(const dnnl::engine& engine, Problem& problem, GemmWay way);
  static std::vector<DirectCall> all(const dnnl::engine& engine, Problem& problem);
  dnnl::memory converted(dnnl::memory from, const dnnl::memory::desc& wanted);
  void add_reorder(const dnnl::memory& from, const dnnl::memory& to);
  double median_ms(int runs);

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::string name_;
  std::vector<Step> steps_;
};

// Kiln's side of a comparison: its cpu device, and one problem on it by submit() and wait().
//
// Thread-safety: one thread. Ownership: a KilnCall wraps its problem's memory and dies before it and before the device.

// The device, and what it says of its choices.
class KilnCpu {
 public:
  KilnCpu();  // throws std::runtime_error
  Device& device() { return *device_; }
  // The layout that the last program to choose has chosen; "the only one" where there was nothing to choose since
  // forget().
  std::string chosen() const;
  void forget() { notes_.last.clear(); }

 private:
  class Notes : public LogSink {
   public:
    void write(LogLevel, std::string_view, std::string_view message) noexcept override { last = message; }
    std::string last;
  };

  Notes notes_;
  Registry registry_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Device> device_;
};

// Buffers wrap host memory; the weights are resident, and packed by the first run.
class KilnCall {
 public:
  KilnCall(Device& device, Problem& problem);
  void run();  // throws std::runtime_error

 private:
  void wrap(Tensor& tensor, BufferUsage usage);

  Device& device_;
  std::unique_ptr<Program> program_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Buffer*> bindings_;
};

}  // namespace kiln::bench
