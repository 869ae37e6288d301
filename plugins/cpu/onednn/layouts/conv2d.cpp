#include "onednn/layouts/conv2d.hpp"

#include "onednn/layouts/epilogue.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace kiln::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Described = dnnl::convolution_forward::primitive_desc;
constexpr auto f32 = dnnl::memory::data_type::f32;

// What to ask oneDNN for: the layouts between which the convolution itself runs, and how many of the implementations
// that it offers there are worth trying.
struct Way {
  std::string_view layout;
  Tag input, output;
  int implementations;
};

// oneDNN's own first choice (`any`) looks at the convolution alone; the cost of reaching a layout from NCHW and back is
// not in it: a channels-last layout costs twice what blocks of 16 do. So the layouts are asked for one by one. A
// convolution that reads NCHW itself exists for few input channels.
constexpr Way direct_ways[] = {{"nChw16c", Tag::nChw16c, Tag::nChw16c, 1},
                               {"nchw>nChw16c", Tag::nchw, Tag::nChw16c, 1},
                               {"nhwc", Tag::nhwc, Tag::nhwc, 2},
                               {"nchw", Tag::nchw, Tag::nchw, 1},
                               {"any", Tag::any, Tag::any, 2},
                               {"nChw8c", Tag::nChw8c, Tag::nChw8c, 1}};
constexpr Way compact_ways[] = {direct_ways[0], direct_ways[2]};
constexpr std::string_view any_layout = "auto";
constexpr Way winograd_ways[] = {{"winograd", Tag::any, Tag::any, 2}};

Desc input_of(const Conv2dSpec& spec) { return Desc({spec.n, spec.c, spec.h, spec.w}, f32, Tag::nchw); }
Desc output_of(const Conv2dSpec& spec, Tag tag) { return Desc({spec.n, spec.k, spec.out_h(), spec.out_w()}, f32, tag); }

Desc weights_of(const Conv2dSpec& spec, Tag plain, Tag grouped) {
  if (spec.groups == 1) return Desc({spec.k, spec.c, spec.r, spec.s}, f32, plain);
  return Desc({spec.groups, spec.k / spec.groups, spec.c / spec.groups, spec.r, spec.s}, f32, grouped);
}

Desc bias_of(const Conv2dSpec& spec) { return spec.bias == Bias::none ? Desc() : Desc({spec.k}, f32, Tag::a); }

bool is_pointwise(const Conv2dSpec& spec) { return spec.r == 1 && spec.s == 1 && spec.pad_y == 0 && spec.pad_x == 0; }

// A pointwise convolution with strides reads only some pixels: seen with strides, they are the input of one without.
Conv2dSpec without_stride(Conv2dSpec spec) {
  spec.h = spec.out_h();
  spec.w = spec.out_w();
  spec.stride_y = spec.stride_x = 1;
  return spec;
}

// The library refuses a view whose last step would reach into the next row or plane.
bool has_pixels_view(const Conv2dSpec& spec) {
  return is_pointwise(spec) && (spec.stride_y != 1 || spec.stride_x != 1) && spec.out_h() * spec.stride_y <= spec.h &&
         spec.out_w() * spec.stride_x <= spec.w;
}

Desc pixels_read(const Conv2dSpec& spec) {
  return Desc({spec.n, spec.c, spec.out_h(), spec.out_w()}, f32,
              dnnl::memory::dims{spec.c * spec.h * spec.w, spec.h * spec.w, spec.stride_y * spec.w, spec.stride_x});
}

class Collector {
 public:
  Collector(const dnnl::engine& engine, std::vector<Pipeline>& into, std::string_view layout)
      : engine_(engine), into_(into), layout_(layout) {}

  // Every implementation of the way that is not known yet. `lies`: how the input lies in the caller's memory.
  void convolutions(const Conv2dSpec& spec, const Desc& lies, const Way& way, dnnl::algorithm algorithm) {
    if (!is_wanted(way.layout)) return;
    try {
      const dnnl::convolution_forward::desc asked(
          dnnl::prop_kind::forward_inference, algorithm, Desc({spec.n, spec.c, spec.h, spec.w}, f32, way.input),
          weights_of(spec, Tag::any, Tag::any), bias_of(spec), output_of(spec, way.output),
          {spec.stride_y, spec.stride_x}, {spec.dilation_y - 1, spec.dilation_x - 1}, {spec.pad_y, spec.pad_x},
          {spec.pad_y, spec.pad_x});
      Described described(asked, attributes_of(spec.activation), engine_, true);
      for (int i = 0; described && i < way.implementations; ++i) {
        if (is_new(described, lies)) into_.push_back(convolution(spec, lies, described, way.layout));
        if (!described.next_impl()) break;
      }
    } catch (const dnnl::error& error) {
      // Not every layout exists for every shape, and an implementation may refuse late: the way is not there.
      if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments) throw;
    }
  }

  // A pointwise convolution without strides is a product of matrices that lie in NCHW as they are needed.
  void product(const Conv2dSpec& spec, const Desc& lies) {
    if (!is_wanted("product")) return;
    const std::int64_t pixels = spec.h * spec.w;
    const bool one = spec.n == 1;  // the library has better code for two dimensions than for a batch of one
    const Desc a = one ? Desc({spec.k, spec.c}, f32, Tag::ab) : Desc({1, spec.k, spec.c}, f32, Tag::abc);
    const Desc b = one ? Desc({spec.c, pixels}, f32, Tag::ab) : Desc({spec.n, spec.c, pixels}, f32, Tag::abc);
    const Desc c = one ? Desc({spec.k, pixels}, f32, Tag::ab) : Desc({spec.n, spec.k, pixels}, f32, Tag::abc);
    // Its bias runs along the rows, which the library adds as a second operand of the same shape but for extents of
    // one.
    const Desc bias = spec.bias == Bias::none ? Desc()
                      : one                   ? Desc({spec.k, 1}, f32, Tag::ab)
                                              : Desc({1, spec.k, 1}, f32, Tag::abc);
    dnnl::post_ops operations;
    if (spec.bias != Bias::none) operations.append_binary(dnnl::algorithm::binary_add, bias);
    append_activation(operations, spec.activation);
    const dnnl::matmul::primitive_desc described({a, b, c}, attributes_with(operations), engine_, true);
    if (!described || is_reference(described.impl_info_str())) return;
    Pipeline pipeline(std::string("product ") + described.impl_info_str());
    pipeline.set_constant(a, a);
    Pipeline::Operand source{DNNL_ARG_WEIGHTS, Place::input, b};
    if (lies != input_of(spec)) {
      source = pipeline.reserve(b);
      Pipeline::Operand gathered = source;
      gathered.desc = input_of(spec);
      pipeline.add_reorder(engine_, {DNNL_ARG_FROM, Place::input, lies}, gathered);
      source.argument = DNNL_ARG_WEIGHTS;
    }
    pipeline.add(dnnl::matmul(described), engine_, described.scratchpad_desc(),
                 {{DNNL_ARG_SRC, Place::constant, a},
                  source,
                  {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, Place::bias, bias},
                  {DNNL_ARG_DST, Place::output, c}});
    into_.push_back(std::move(pipeline));
  }

  // The library's plain loops, up to a hundred times slower: only where there is nothing else.
  void allow_reference() noexcept { references_allowed_ = true; }

 private:
  struct Known {
    std::string implementation;
    Desc lies, input, output, weights;
  };

  bool is_wanted(std::string_view layout) const { return layout_ == any_layout || layout_ == layout; }
  static bool is_reference(std::string_view implementation) { return implementation.starts_with("ref"); }

  bool is_new(const Described& described, const Desc& lies) {
    if (!references_allowed_ && is_reference(described.impl_info_str())) return false;
    const Known found{described.impl_info_str(), lies, described.src_desc(), described.dst_desc(),
                      described.weights_desc()};
    const bool known = std::any_of(known_.begin(), known_.end(), [&](const Known& other) {
      return other.implementation == found.implementation && other.lies == found.lies && other.input == found.input &&
             other.output == found.output && other.weights == found.weights;
    });
    if (!known) known_.push_back(found);
    return !known;
  }

  Pipeline convolution(const Conv2dSpec& spec, const Desc& lies, const Described& described, std::string_view layout) {
    Pipeline pipeline(std::string(layout) + (spec.stride_y == 1 && lies != input_of(spec) ? " of pixels read " : " ") +
                      described.impl_info_str());
    pipeline.set_constant(weights_of(spec, Tag::oihw, Tag::goihw), described.weights_desc());
    Pipeline::Operand source{0, Place::input, lies};
    if (described.src_desc() != lies) {
      const Pipeline::Operand reordered = pipeline.reserve(described.src_desc());
      pipeline.add_reorder(engine_, source, reordered);
      source = reordered;
    }
    const Desc plain = output_of(spec, Tag::nchw);
    Pipeline::Operand result{0, Place::output, plain};
    if (described.dst_desc() != plain) result = pipeline.reserve(described.dst_desc());
    source.argument = DNNL_ARG_SRC;
    result.argument = DNNL_ARG_DST;
    pipeline.add(dnnl::convolution_forward(described), engine_, described.scratchpad_desc(),
                 {source,
                  {DNNL_ARG_WEIGHTS, Place::constant, described.weights_desc()},
                  {DNNL_ARG_BIAS, Place::bias, bias_of(spec)},
                  result});
    if (result.place != Place::output) pipeline.add_reorder(engine_, result, {0, Place::output, plain});
    return pipeline;
  }

  const dnnl::engine& engine_;
  std::vector<Pipeline>& into_;
  std::string_view layout_;
  std::vector<Known> known_;
  bool references_allowed_ = false;
};

}  // namespace

std::vector<Pipeline> conv2d_pipelines(const Conv2dSpec& spec, const dnnl::engine& engine, std::string_view layout) {
  std::vector<Pipeline> pipelines;
  Collector collector(engine, pipelines, layout);
  const Desc lies = input_of(spec);
  if (spec.accuracy == Accuracy::winograd) {
    for (const Way& way : winograd_ways) {
      collector.convolutions(spec, lies, way, dnnl::algorithm::convolution_winograd);
    }
  }
  if (has_pixels_view(spec)) {
    const Conv2dSpec compact = without_stride(spec);
    for (const Way& way : compact_ways) {
      collector.convolutions(compact, pixels_read(spec), way, dnnl::algorithm::convolution_direct);
    }
    if (spec.groups == 1) collector.product(compact, pixels_read(spec));
  }
  for (const Way& way : direct_ways) collector.convolutions(spec, lies, way, dnnl::algorithm::convolution_direct);
  if (is_pointwise(spec) && spec.groups == 1 && spec.stride_y == 1 && spec.stride_x == 1) collector.product(spec, lies);
  if (pipelines.empty() && layout != any_layout) return conv2d_pipelines(spec, engine, any_layout);
  if (pipelines.empty()) {
    collector.allow_reference();
    collector.convolutions(spec, lies, {"nchw", Tag::nchw, Tag::nchw, 1}, dnnl::algorithm::convolution_direct);
  }
  if (pipelines.empty()) throw dnnl::error(dnnl_unimplemented, "no implementation of this conv2d");
  return pipelines;
}

}  // namespace kiln::cpu
