#include "onednn/layouts/part.hpp"

#include <algorithm>

namespace kiln::cpu {
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

}  // namespace kiln::cpu
