// Network: a pipeline of layers as the libraries of `networks` take it, step by step.
//
// Thread-safety: constant once made. Ownership: borrows the pipeline. Throws std::runtime_error where a step is no layer.
#pragma once

#include "conv/contestants.hpp"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kiln/operation.hpp>
#include <kiln/pipeline.hpp>

namespace kiln::bench {

struct NetworkStep {
  std::string name;
  KernelSpec spec;
  std::vector<std::string> inputs;
  std::span<const float> weights, bias;  // empty: the layer has none
  std::string output;
};

struct Network {
  explicit Network(const Pipeline& pipeline);
  const Shape& shape(const std::string& tensor) const { return shapes.at(tensor); }
  // How many steps read a tensor, and the last one that does.
  std::size_t readers(const std::string& tensor) const;
  std::size_t last_reader(const std::string& tensor) const;

  std::vector<NetworkStep> steps;
  std::map<std::string, Shape> shapes;
  std::string image, result;  // result: the first tensor that the pipeline writes for the host
  std::span<const float> pixels;
};

// The network by a library, from one image in host memory to `result`; output() is the latter, NCHW. XNNPACK's image
// lies in NHWC already. Null where the build has no such library.
std::unique_ptr<Contestant> make_onednn_network(const Network& network);
std::unique_ptr<Contestant> make_xnnpack_network(const Network& network);
std::unique_ptr<Contestant> make_opencv_network(const Network& network);

}  // namespace kiln::bench
