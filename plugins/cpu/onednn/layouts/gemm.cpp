#include "onednn/layouts/gemm.hpp"

#include "onednn/layouts/epilogue.hpp"
#include "onednn/omp_threads.hpp"

#include <optional>

namespace kiln::cpu {
namespace {

using Tag = dnnl::memory::format_tag;
constexpr auto f32 = dnnl::memory::data_type::f32;

// B is the library's "weights": packed once where the layout is `any`.
std::optional<Candidate> matmul(const GemmSpec& spec, const dnnl::engine& engine, const std::string& layout,
                                Tag weights) {
  const dnnl::memory::desc a({spec.m, spec.k}, f32, Tag::ab);
  const dnnl::memory::desc b({spec.k, spec.n}, f32, Tag::ab);
  const dnnl::memory::desc wanted({spec.k, spec.n}, f32, weights);
  const auto bias = spec.bias == Bias::none ? dnnl::memory::desc() : dnnl::memory::desc({1, spec.n}, f32, Tag::ab);
  const dnnl::memory::desc c({spec.m, spec.n}, f32, Tag::ab);
  const dnnl::matmul::primitive_desc described({a, wanted, bias, c}, attributes_of(spec.activation), engine, true);
  if (!described) return std::nullopt;
  Pipeline pipeline;
  pipeline.set_constant({b, described.weights_desc()});
  pipeline.add(dnnl::matmul(described), engine, described.scratchpad_desc(),
               {{DNNL_ARG_SRC, Place::input, a},
                {DNNL_ARG_WEIGHTS, Place::constant, described.weights_desc()},
                {DNNL_ARG_BIAS, Place::bias, bias},
                {DNNL_ARG_DST, Place::output, c}});
  return Candidate(layout + " " + described.impl_info_str(), {std::move(pipeline)});
}

// The same product as a fully connected layer, for which oneDNN has other code.
std::optional<Candidate> inner_product(const GemmSpec& spec, const dnnl::engine& engine) {
  const dnnl::memory::desc a({spec.m, spec.k}, f32, Tag::ab);
  const dnnl::memory::desc b({spec.n, spec.k}, f32, Tag::ba);  // B as it lies, seen transposed
  const dnnl::memory::desc wanted({spec.n, spec.k}, f32, Tag::any);
  const auto bias = spec.bias == Bias::none ? dnnl::memory::desc() : dnnl::memory::desc({spec.n}, f32, Tag::a);
  const dnnl::memory::desc c({spec.m, spec.n}, f32, Tag::ab);
  const dnnl::inner_product_forward::primitive_desc described({dnnl::prop_kind::forward_inference, a, wanted, bias, c},
                                                              attributes_of(spec.activation), engine, true);
  if (!described) return std::nullopt;
  Pipeline pipeline;
  pipeline.set_constant({b, described.weights_desc()});
  pipeline.add(dnnl::inner_product_forward(described), engine, described.scratchpad_desc(),
               {{DNNL_ARG_SRC, Place::input, a},
                {DNNL_ARG_WEIGHTS, Place::constant, described.weights_desc()},
                {DNNL_ARG_BIAS, Place::bias, bias},
                {DNNL_ARG_DST, Place::output, c}});
  return Candidate(std::string("inner product ") + described.impl_info_str(), {std::move(pipeline)});
}

}  // namespace

std::vector<Candidate> gemm_candidates(const GemmSpec& spec, const dnnl::engine& engine, int threads) {
  const OmpThreads all(threads);
  std::vector<Candidate> candidates;
  for (auto& made : {matmul(spec, engine, "packed", Tag::any), matmul(spec, engine, "plain", Tag::ab),
                     inner_product(spec, engine)}) {
    if (made) candidates.push_back(*made);
  }
  if (candidates.empty()) throw dnnl::error(dnnl_unimplemented, "no implementation of this gemm");
  return candidates;
}

}  // namespace kiln::cpu
