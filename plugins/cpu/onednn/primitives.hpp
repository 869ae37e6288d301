// Cutting work into ranges and parts for the workers.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include <kiln/kernel.hpp>

#include "onednn/candidate.hpp"
#include "onednn/worker_pool.hpp"

namespace kiln::cpu {

// Range: a stretch of an extent, and the cutting of extents into them.
//
// Thread-safety: values and pure functions.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const noexcept { return end - begin; }
};

// `count` ranges that share `extent`, their boundaries at multiples of `unit`; fewer where there are not enough units.
std::vector<Range> split(std::int64_t extent, std::int64_t count, std::int64_t unit);

// What is cut along an axis: pieces of at least `least` units, where there is more than one.
struct Axis {
  std::int64_t extent = 1, unit = 1, least = 1;
};

// How many pieces along each of `axes`, so that about `wanted` come out of all: as many as there can be along the
// first, along the next what is missing, and so on.
std::vector<std::int64_t> share(const std::vector<Axis>& axes, std::int64_t wanted);

// Cut: a box of a conv2d's output that one thread computes, and the ways to share the whole output out in such boxes.
//
// Thread-safety: values and pure functions.
struct Cut {
  Range images, rows, columns, channels;  // of the output; channels are whole groups where there are several
};

Cut whole(const Conv2dSpec& spec);

struct Cuts {
  std::string name;  // "4x2 tiles by rows and channels": for people, and no two ways share one
  std::vector<Cut> tiles;
};

// few: one way for each direction, for layouts that are seldom the best. many: with more and smaller tiles too.
enum class Choices : std::uint8_t { invalid = 0, few, many };

// Likely best first, each of two tiles at least; empty for one thread, or where the output is too small. More tiles
// than threads stand first, where there is enough work: a thread that is held up leaves some to the others.
std::vector<Cuts> cuts_of(const Conv2dSpec& spec, int threads, Choices choices);

// Part: a cut of a conv2d's output, as a convolution of its own on views of the tensors.
//
// Thread-safety: values.
struct Part {
  Conv2dSpec spec;  // of the part: its extents and groups, pad_y above and pad_x to the left are its own, and the
                    // strides where only pixels read count
  std::int64_t pad_below = 0, pad_right = 0;
  dnnl::memory::desc input, output;  // how they lie in NCHW tensors, from these offsets in bytes on
  std::uint64_t input_offset = 0, output_offset = 0, weights_offset = 0, bias_offset = 0;
};

// all: the input rows and columns between the first and last tap. read: for a pointwise convolution with strides, the
// pixels that it reads, seen as the input of one without strides.
enum class Pixels : std::uint8_t { invalid = 0, all, read };

// Whether Pixels::read differs from Pixels::all and oneDNN can describe the view.
bool has_pixels_view(const Conv2dSpec& spec) noexcept;

// Absent where the cut reads padding alone. REQUIRES: cut within the output, its channels whole groups where
// spec.groups is not 1; has_pixels_view(spec) for Pixels::read.
std::optional<Part> part_of(const Conv2dSpec& spec, const Cut& cut, Pixels pixels);

// oneDNN primitives of a part, packing of weights, and the epilogue.

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
