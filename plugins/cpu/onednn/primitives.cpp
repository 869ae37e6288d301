#include "onednn/primitives.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <vector>

namespace kiln::cpu {
namespace {

constexpr std::int64_t block = 16;         // channels that a tile's boundary keeps together
constexpr std::int64_t least_rows = 3;     // in a tile: its neighbours' rows are read twice
constexpr std::int64_t column_block = 16;  // columns likewise: what the library's code computes at a time

enum Along : std::size_t { images, rows, columns, channels };
constexpr const char* names[] = {"images", "rows", "columns", "channels"};

// Output channels that stay together: of several groups, whole ones, enough to fill blocks on both sides.
std::int64_t channel_unit(const Conv2dSpec& spec) {
  if (spec.groups == 1) return block;
  const std::int64_t group_inputs = spec.c / spec.groups;
  const std::int64_t group_outputs = spec.k / spec.groups;
  const std::int64_t fill_inputs = block / std::gcd(block, group_inputs);
  const std::int64_t fill_outputs = block / std::gcd(block, group_outputs);
  return std::lcm(fill_inputs, fill_outputs) * group_outputs;
}

// "4x2 tiles by rows and channels"; empty for a single piece.
std::string name_of(const std::array<std::int64_t, 4>& pieces) {
  std::string counts, of;
  for (std::size_t along = 0; along < pieces.size(); ++along) {
    if (pieces[along] == 1) continue;
    counts += (counts.empty() ? "" : "x") + std::to_string(pieces[along]);
    of += (of.empty() ? "" : " and ") + std::string(names[along]);
  }
  return of.empty() ? of : counts + " tiles by " + of;
}

class Cutter {
 public:
  explicit Cutter(const Conv2dSpec& spec)
      : axes_{Axis{spec.n, 1, 1}, Axis{spec.out_h(), 1, least_rows}, Axis{spec.out_w(), column_block, 1},
              Axis{spec.k, channel_unit(spec), 1}} {}

  // About `wanted` tiles, along the first direction as far as it goes.
  void add(const std::vector<Along>& order, std::int64_t wanted) {
    std::vector<Axis> axes;
    for (const Along along : order) axes.push_back(axes_[along]);
    const std::vector<std::int64_t> counts = share(axes, wanted);
    std::array<std::int64_t, 4> pieces{1, 1, 1, 1};
    for (std::size_t i = 0; i < order.size(); ++i) pieces[order[i]] = counts[i];
    Cuts cuts;
    cuts.name = name_of(pieces);
    if (cuts.name.empty()) return;
    for (const Range& some_images : ranges(images, pieces[images])) {
      for (const Range& some_channels : ranges(channels, pieces[channels])) {
        for (const Range& some_rows : ranges(rows, pieces[rows])) {
          for (const Range& some_columns : ranges(columns, pieces[columns])) {
            cuts.tiles.push_back({some_images, some_rows, some_columns, some_channels});
          }
        }
      }
    }
    const auto same = [&](const Cuts& other) { return other.name == cuts.name; };
    if (std::ranges::none_of(all_, same)) all_.push_back(std::move(cuts));
  }

  std::vector<Cuts> take() noexcept { return std::move(all_); }

 private:
  std::vector<Range> ranges(Along along, std::int64_t count) const {
    return split(axes_[along].extent, count, axes_[along].unit);
  }

  Axis axes_[4];
  std::vector<Cuts> all_;
};

}  // namespace

Cut whole(const Conv2dSpec& spec) { return {{0, spec.n}, {0, spec.out_h()}, {0, spec.out_w()}, {0, spec.k}}; }

std::vector<Cuts> cuts_of(const Conv2dSpec& spec, int threads, Choices choices) {
  if (threads == 1) return {};
  const bool many = choices == Choices::many;
  const std::int64_t count = threads;
  Cutter cutter(spec);
  cutter.add({rows, channels}, 2 * count);
  if (many) cutter.add({rows, channels}, count);
  if (many) cutter.add({rows, channels}, 4 * count);
  cutter.add({channels, rows}, count);
  if (many) cutter.add({channels, rows}, 2 * count);
  if (spec.n > 1) cutter.add({images, channels}, many ? 2 * count : count);
  if (spec.out_h() < 2 * least_rows) cutter.add({columns, channels}, count);
  return cutter.take();
}

namespace {

std::int64_t quotient_up(std::int64_t of, std::int64_t by) { return (of + by - 1) / by; }

}  // namespace

std::vector<Range> split(std::int64_t extent, std::int64_t count, std::int64_t unit) {
  const std::int64_t units = quotient_up(extent, unit);
  count = std::min(count, units);
  std::vector<Range> ranges;
  for (std::int64_t i = 0; i < count; ++i) {
    ranges.push_back({units * i / count * unit, std::min(units * (i + 1) / count * unit, extent)});
  }
  return ranges;
}

std::vector<std::int64_t> share(const std::vector<Axis>& axes, std::int64_t wanted) {
  std::vector<std::int64_t> counts;
  for (const Axis& axis : axes) {
    const std::int64_t most = std::max<std::int64_t>(quotient_up(axis.extent, axis.unit) / axis.least, 1);
    counts.push_back(std::min(most, wanted));
    wanted = quotient_up(wanted, counts.back());
  }
  return counts;
}

namespace {

constexpr auto f32 = dnnl::memory::data_type::f32;

std::uint64_t bytes_of(std::int64_t elements) { return static_cast<std::uint64_t>(elements) * sizeof(float); }

// What a range of outputs reads along one direction of the image, and how much padding stands around that.
struct Reach {
  Range read;
  std::int64_t pad_before = 0, pad_after = 0;
};

struct Direction {
  std::int64_t extent, out, taps, stride, pad, dilation;
};

Reach reach_of(const Direction& along, Range outputs) {
  if (outputs.begin == 0 && outputs.end == along.out) return {{0, along.extent}, along.pad, along.pad};
  const std::int64_t first = outputs.begin * along.stride - along.pad;
  const std::int64_t last = (outputs.end - 1) * along.stride - along.pad + along.dilation * (along.taps - 1);
  const Range read{std::max<std::int64_t>(first, 0), std::min(last, along.extent - 1) + 1};
  return {read, read.begin - first, last + 1 - read.end};
}

}  // namespace

bool has_pixels_view(const Conv2dSpec& spec) noexcept {
  const bool pointwise = spec.r == 1 && spec.s == 1 && spec.pad_y == 0 && spec.pad_x == 0;
  // oneDNN refuses a view whose last step would reach into the next row or plane.
  return pointwise && (spec.stride_y != 1 || spec.stride_x != 1) && spec.out_h() * spec.stride_y <= spec.h &&
         spec.out_w() * spec.stride_x <= spec.w;
}

std::optional<Part> part_of(const Conv2dSpec& spec, const Cut& cut, Pixels pixels) {
  const Reach rows = reach_of({spec.h, spec.out_h(), spec.r, spec.stride_y, spec.pad_y, spec.dilation_y}, cut.rows);
  const Reach columns =
      reach_of({spec.w, spec.out_w(), spec.s, spec.stride_x, spec.pad_x, spec.dilation_x}, cut.columns);
  if (rows.read.size() <= 0 || columns.read.size() <= 0) return std::nullopt;
  const std::int64_t group_inputs = spec.c / spec.groups;
  const std::int64_t group_outputs = spec.k / spec.groups;
  const Range groups =
      spec.groups == 1 ? Range{0, 1} : Range{cut.channels.begin / group_outputs, cut.channels.end / group_outputs};
  Part part;
  part.spec = spec;
  part.spec.n = cut.images.size();
  part.spec.k = cut.channels.size();
  part.spec.groups = groups.size();
  part.spec.c = groups.size() * group_inputs;
  part.spec.h = rows.read.size();
  part.spec.w = columns.read.size();
  part.spec.pad_y = rows.pad_before;
  part.spec.pad_x = columns.pad_before;
  part.pad_below = rows.pad_after;
  part.pad_right = columns.pad_after;
  const std::int64_t plane = spec.h * spec.w;
  dnnl::memory::dims steps{spec.c * plane, plane, spec.w, 1};
  if (pixels == Pixels::read) {
    part.spec.h = cut.rows.size();
    part.spec.w = cut.columns.size();
    part.spec.stride_y = part.spec.stride_x = 1;
    steps[2] = spec.stride_y * spec.w;
    steps[3] = spec.stride_x;
  }
  part.input = dnnl::memory::desc({part.spec.n, part.spec.c, part.spec.h, part.spec.w}, f32, steps);
  part.input_offset = bytes_of((cut.images.begin * spec.c + groups.begin * group_inputs) * plane +
                               rows.read.begin * spec.w + columns.read.begin);
  const std::int64_t out_plane = spec.out_h() * spec.out_w();
  part.output = dnnl::memory::desc({part.spec.n, part.spec.k, cut.rows.size(), cut.columns.size()}, f32,
                                   dnnl::memory::dims{spec.k * out_plane, out_plane, spec.out_w(), 1});
  part.output_offset = bytes_of((cut.images.begin * spec.k + cut.channels.begin) * out_plane +
                                cut.rows.begin * spec.out_w() + cut.columns.begin);
  part.weights_offset = bytes_of(cut.channels.begin * group_inputs * spec.r * spec.s);
  part.bias_offset = bytes_of(cut.channels.begin);
  return part;
}

namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Described = dnnl::convolution_forward::primitive_desc;

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
