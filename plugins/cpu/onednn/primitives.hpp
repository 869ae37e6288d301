// oneDNN primitives of a part, packing of weights, and the epilogue.
#pragma once

#include <functional>
#include <numeric>
#include <optional>
#include <string>

#include <oneapi/dnnl/dnnl.hpp>

#include <kiln/kernel.hpp>

#include "onednn/cut.hpp"
#include "onednn/pipeline.hpp"
#include "onednn/worker_pool.hpp"

namespace kiln::cpu {

// Pipelines of single oneDNN primitives for a Part, with the reorders that their layouts need.
//
// Thread-safety: any thread on which OpenMP is limited to one thread (omp_alone.hpp). The thread that runs a pipeline
// must be limited in the same way. Ownership: the caller owns the pipelines.

// The layouts between which a convolution itself runs, and which of the implementations that oneDNN offers there, from
// 0.
struct Way {
  std::string_view layout;
  dnnl::memory::format_tag input, output;
  int implementation = 0;
  dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
};

struct Made {
  std::string implementation;  // oneDNN's name for its code: "jit:avx512_core"
  Pipeline pipeline;
};

// Whether oneDNN names its plain loops, which can be a hundred times slower than anything else.
bool is_reference(const Made& made) noexcept;

// Absent where oneDNN has no such implementation. Throws dnnl::error for what is not the shape's doing.
std::optional<Made> convolution(const Part& part, const Way& way, const dnnl::engine& engine);

// A pointwise convolution without strides as a product of matrices, which lie in NCHW as they are needed. Absent also
// for a part of the columns of several rows, whose pixels do not follow one another. REQUIRES: part.spec is one and has
// no groups.
std::optional<Made> product(const Part& part, const dnnl::engine& engine);

// Packing: a constant's reorder into the layout that a primitive wants, large ones in pieces for all threads of the
// pool.
//
// Thread-safety: as the pool: one at a time, by a thread that is set to work alone (omp_alone.hpp). Ownership: the
// memories are the caller's.

// Fills all of `to`, padding too, from `from`. Throws dnnl::error.
void pack(const dnnl::memory& from, dnnl::memory& to, WorkerPool& pool, dnnl::stream& stream);

// The attributes that every primitive of this module shares: its scratchpad is the caller's, its activation is fused.
//
// Thread-safety: values.

struct Eltwise {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0, beta = 0;
};
inline Eltwise eltwise_of(Activation activation) {
  if (activation == Activation::relu) return {dnnl::algorithm::eltwise_relu, 0, 0};
  return activation == Activation::relu6 ? Eltwise{dnnl::algorithm::eltwise_clip, 0, 6} : Eltwise{};
}

inline void append_activation(dnnl::post_ops& operations, Activation activation) {
  const Eltwise function = eltwise_of(activation);
  if (function.algorithm == dnnl::algorithm::undef) return;
  operations.append_eltwise(1.0f, function.algorithm, function.alpha, function.beta);
}

inline dnnl::primitive_attr attributes_with(const dnnl::post_ops& operations) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(operations);
  return attributes;
}

inline dnnl::primitive_attr attributes_of(Activation activation) {
  dnnl::post_ops operations;
  append_activation(operations, activation);
  return attributes_with(operations);
}

// Of so many elements or rows that follow one another. Each throws dnnl::error.
inline dnnl::binary::primitive_desc addition(std::int64_t elements, Activation activation, const dnnl::engine& engine) {
  const dnnl::memory::desc all({elements}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a);
  return {{dnnl::algorithm::binary_add, all, all, all}, attributes_of(activation), engine};
}
inline dnnl::eltwise_forward::primitive_desc element_function(std::int64_t elements, Activation activation,
                                                              const dnnl::engine& engine) {
  const dnnl::memory::desc all({elements}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a);
  const Eltwise function = eltwise_of(activation);
  return {{dnnl::prop_kind::forward_inference, function.algorithm, all, function.alpha, function.beta},
          attributes_with({}),
          engine};
}
// The padding before and behind the rows and columns of `from`, in that order.
inline dnnl::pooling_forward::primitive_desc pooling(const Pool2dSpec& spec, const dnnl::memory::desc& from,
                                                     const dnnl::memory::desc& to, const dnnl::memory::dims& before,
                                                     const dnnl::memory::dims& behind, const dnnl::engine& engine) {
  const auto algorithm =
      spec.kind == PoolKind::maximum ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
  return {{dnnl::prop_kind::forward_inference,
           algorithm,
           from,
           to,
           {spec.stride_y, spec.stride_x},
           {spec.r, spec.s},
           before,
           behind},
          attributes_with({}),
          engine};
}
inline dnnl::softmax_forward::primitive_desc softmax_of_rows(std::int64_t rows, std::int64_t length,
                                                             const dnnl::engine& engine) {
  const dnnl::memory::desc all({rows, length}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab);
  return {{dnnl::prop_kind::forward_inference, all, 1}, attributes_with({}), engine};
}

inline std::int64_t elements_of(const Extents& extents) {
  const Shape shape = shape_of(extents);
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace kiln::cpu
