// DirectCall: the peer: oneDNN called directly and spread over OpenMP's threads by itself, weights packed beforehand.
//
// Thread-safety: one thread; oneDNN works on as many as OpenMP has. Ownership: owns what it packs and reorders; the
// problem outlives it.
#pragma once

#include "cpu/problem.hpp"

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln::bench {

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

}  // namespace kiln::bench
