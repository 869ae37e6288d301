#include "onednn/primitives.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "onednn/cut.hpp"

namespace kiln::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Described = dnnl::convolution_forward::primitive_desc;
constexpr auto f32 = dnnl::memory::data_type::f32;

Desc input_of(const Conv2dSpec& spec, Tag tag) { return Desc({spec.n, spec.c, spec.h, spec.w}, f32, tag); }

Desc weights_of(const Conv2dSpec& spec, Tag plain, Tag grouped) {
  if (spec.groups == 1) return Desc({spec.k, spec.c, spec.r, spec.s}, f32, plain);
  return Desc({spec.groups, spec.k / spec.groups, spec.c / spec.groups, spec.r, spec.s}, f32, grouped);
}

Pipeline::Operand bias_of(const Part& part, int argument, Desc seen) {
  if (part.spec.bias == Bias::none) return {argument, Place::bias, Desc(), 0};
  return {argument, Place::bias, std::move(seen), part.bias_offset};
}

// The part's input in the layout `wanted`: where it lies, or reordered into the workspace.
Pipeline::Operand source_of(const Part& part, const Desc& wanted, Pipeline& pipeline, const dnnl::engine& engine) {
  const Pipeline::Operand lies{DNNL_ARG_FROM, Place::input, part.input, part.input_offset};
  if (wanted == part.input) return lies;
  const Pipeline::Operand reordered = pipeline.reserve(wanted);
  pipeline.add_reorder(engine, lies, reordered);
  return reordered;
}

Described describe(const Part& part, const Way& way, const dnnl::engine& engine) {
  const Conv2dSpec& spec = part.spec;
  const Desc bias = spec.bias == Bias::none ? Desc() : Desc({spec.k}, f32, Tag::a);
  const Desc output(part.output.dims(), f32, way.output);
  const dnnl::convolution_forward::desc asked(
      dnnl::prop_kind::forward_inference, way.algorithm, input_of(spec, way.input),
      weights_of(spec, Tag::any, Tag::any), bias, output, {spec.stride_y, spec.stride_x},
      {spec.dilation_y - 1, spec.dilation_x - 1}, {spec.pad_y, spec.pad_x}, {part.pad_below, part.pad_right});
  Described described(asked, attributes_of(spec.activation), engine, true);
  for (int i = 0; described && i < way.implementation; ++i) {
    if (!described.next_impl()) return Described();
  }
  return described;
}

}  // namespace

bool is_reference(const Made& made) noexcept { return made.implementation.starts_with("ref"); }

std::optional<Made> convolution(const Part& part, const Way& way, const dnnl::engine& engine) try {
  const Described described = describe(part, way, engine);
  if (!described) return std::nullopt;
  Pipeline pipeline;
  pipeline.set_constant({weights_of(part.spec, Tag::oihw, Tag::goihw), described.weights_desc(), part.weights_offset});
  Pipeline::Operand source = source_of(part, described.src_desc(), pipeline, engine);
  const Pipeline::Operand lies{DNNL_ARG_DST, Place::output, part.output, part.output_offset};
  Pipeline::Operand result = described.dst_desc() == part.output ? lies : pipeline.reserve(described.dst_desc());
  source.argument = DNNL_ARG_SRC;
  result.argument = DNNL_ARG_DST;
  pipeline.add(dnnl::convolution_forward(described), engine, described.scratchpad_desc(),
               {source,
                {DNNL_ARG_WEIGHTS, Place::constant, described.weights_desc()},
                bias_of(part, DNNL_ARG_BIAS, Desc({part.spec.k}, f32, Tag::a)),
                result});
  if (result.place != Place::output) pipeline.add_reorder(engine, result, lies);
  return Made{described.impl_info_str(), std::move(pipeline)};
} catch (const dnnl::error& error) {
  // Not every layout exists for every shape, and an implementation may refuse late.
  if (error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments) return std::nullopt;
  throw;
}

std::optional<Made> product(const Part& part, const dnnl::engine& engine) try {
  const Conv2dSpec& spec = part.spec;
  const std::int64_t pixels = spec.h * spec.w;
  const bool one = spec.n == 1;  // the library has better code for two dimensions than for a batch of one
  const auto matrix = [one](std::int64_t n, std::int64_t rows, std::int64_t columns, const dnnl::memory::dims& steps) {
    if (one) return Desc({rows, columns}, f32, dnnl::memory::dims{steps[1], 1});
    return Desc({n, rows, columns}, f32, dnnl::memory::dims{steps[0], steps[1], 1});
  };
  const auto steps_of = [](const Desc& desc) {
    const auto& steps = desc.data.format_desc.blocking.strides;
    return dnnl::memory::dims(steps, steps + 4);
  };
  // Pixels must follow one another. A view of those that are read is gathered first; nothing is scattered afterwards.
  const auto is_line = [&](const dnnl::memory::dims& steps) {
    return steps[3] == 1 && (spec.h == 1 || steps[2] == spec.w);
  };
  if (!is_line(steps_of(part.output))) return std::nullopt;
  const bool gathered = !is_line(steps_of(part.input));
  const Desc dense = input_of(spec, Tag::nchw);
  const Desc a = matrix(1, spec.k, spec.c, {spec.k * spec.c, spec.c});
  const Desc b = matrix(spec.n, spec.c, pixels, steps_of(gathered ? dense : part.input));
  const Desc c = matrix(spec.n, spec.k, pixels, steps_of(part.output));
  const Desc bias = matrix(1, spec.k, 1, {spec.k, 1});
  dnnl::post_ops operations;  // the bias runs along the rows: a second operand with one column
  if (spec.bias != Bias::none) operations.append_binary(dnnl::algorithm::binary_add, bias);
  append_activation(operations, spec.activation);
  const dnnl::matmul::primitive_desc described({a, b, c}, attributes_with(operations), engine, true);
  if (!described) return std::nullopt;
  Pipeline pipeline;
  pipeline.set_constant({a, a, part.weights_offset});
  Pipeline::Operand source{0, Place::input, b, part.input_offset};
  if (gathered) {
    source = source_of(part, dense, pipeline, engine);
    source.desc = b;
  }
  source.argument = DNNL_ARG_WEIGHTS;
  pipeline.add(dnnl::matmul(described), engine, described.scratchpad_desc(),
               {{DNNL_ARG_SRC, Place::constant, a},
                source,
                bias_of(part, DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, bias),
                {DNNL_ARG_DST, Place::output, c, part.output_offset}});
  return Made{described.impl_info_str(), std::move(pipeline)};
} catch (const dnnl::error& error) {
  if (error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments) return std::nullopt;
  throw;
}

namespace {

using Desc = dnnl::memory::desc;

// Below that, making the pieces' primitives costs more than sharing them out saves.
constexpr std::size_t worth_sharing = std::size_t{1} << 20;
constexpr std::int64_t unit = 64;  // a multiple of the library's blocks

struct Piece {
  Desc from, to;
};

// Absent where the layout has no such part: Winograd's is not a tensor's.
Desc part_of(const Desc& desc, std::size_t dimension, Range range) {
  dnnl::memory::dims extents = desc.dims();
  dnnl::memory::dims offsets(extents.size(), 0);
  extents[dimension] = range.size();
  offsets[dimension] = range.begin;
  return desc.submemory_desc(extents, offsets, true);
}

// One alone where the layouts cannot be cut.
std::vector<Piece> pieces_of(const Desc& from, const Desc& to, int count) {
  const std::vector<Piece> single{{from, to}};
  const dnnl::memory::dims extents = from.dims();
  const auto longest = static_cast<std::size_t>(std::ranges::max_element(extents) - extents.begin());
  std::vector<Piece> pieces;
  for (const Range& range : split(extents[longest], count, unit)) {
    pieces.push_back({part_of(from, longest, range), part_of(to, longest, range)});
    if (pieces.back().from.is_zero() || pieces.back().to.is_zero()) return single;
  }
  return pieces;
}

}  // namespace

void pack(const dnnl::memory& from, dnnl::memory& to, WorkerPool& pool, dnnl::stream& stream) {
  const Desc whole = to.get_desc();
  const dnnl::engine engine = stream.get_engine();
  const bool shared = pool.threads() > 1 && whole.get_size() >= worth_sharing;
  const std::vector<Piece> pieces =
      shared ? pieces_of(from.get_desc(), whole, pool.threads()) : std::vector<Piece>{{from.get_desc(), whole}};
  pool.run(pieces.size(), [&](std::size_t i, std::size_t) {
    dnnl::memory source(pieces[i].from, engine, from.get_data_handle());
    dnnl::memory target(pieces[i].to, engine, to.get_data_handle());
    dnnl::reorder(source, target).execute(stream, source, target);
    stream.wait();
  });
}

}  // namespace kiln::cpu
