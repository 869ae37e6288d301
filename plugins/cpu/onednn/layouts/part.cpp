#include "onednn/layouts/part.hpp"

#include <algorithm>

namespace kiln::cpu {
namespace {

constexpr auto f32 = dnnl::memory::data_type::f32;

std::uint64_t bytes_of(std::int64_t elements) { return static_cast<std::uint64_t>(elements) * sizeof(float); }

}  // namespace

bool has_pixels_view(const Conv2dSpec& spec) noexcept {
  const bool pointwise = spec.r == 1 && spec.s == 1 && spec.pad_y == 0 && spec.pad_x == 0;
  // oneDNN refuses a view whose last step would reach into the next row or plane.
  return pointwise && (spec.stride_y != 1 || spec.stride_x != 1) && spec.out_h() * spec.stride_y <= spec.h &&
         spec.out_w() * spec.stride_x <= spec.w;
}

std::optional<Part> part_of(const Conv2dSpec& spec, Range rows, Range channels, Pixels pixels) {
  const std::int64_t first = rows.begin * spec.stride_y - spec.pad_y;
  const std::int64_t last = (rows.end - 1) * spec.stride_y - spec.pad_y + spec.dilation_y * (spec.r - 1);
  const bool every_row = rows.begin == 0 && rows.end == spec.out_h();  // then the last ones may be there unread
  const Range read =
      every_row ? Range{0, spec.h} : Range{std::max<std::int64_t>(first, 0), std::min(last, spec.h - 1) + 1};
  if (read.size() <= 0) return std::nullopt;
  Part part;
  part.spec = spec;
  part.spec.k = channels.size();
  part.spec.h = read.size();
  part.spec.pad_y = read.begin - first;
  part.pad_below = every_row ? spec.pad_y : last + 1 - read.end;
  const std::int64_t plane = spec.h * spec.w;
  dnnl::memory::dims steps{spec.c * plane, plane, spec.w, 1};
  if (pixels == Pixels::read) {
    part.spec.h = rows.size();
    part.spec.w = spec.out_w();
    part.spec.stride_y = part.spec.stride_x = 1;
    steps[2] = spec.stride_y * spec.w;
    steps[3] = spec.stride_x;
  }
  part.input = dnnl::memory::desc({spec.n, spec.c, part.spec.h, part.spec.w}, f32, steps);
  part.input_offset = bytes_of(read.begin * spec.w);
  const std::int64_t out_plane = spec.out_h() * spec.out_w();
  part.output = dnnl::memory::desc({spec.n, channels.size(), rows.size(), spec.out_w()}, f32,
                                   dnnl::memory::dims{spec.k * out_plane, out_plane, spec.out_w(), 1});
  part.output_offset = bytes_of(channels.begin * out_plane + rows.begin * spec.out_w());
  part.weights_offset = bytes_of(channels.begin * (spec.c / spec.groups) * spec.r * spec.s);
  part.bias_offset = bytes_of(channels.begin);
  return part;
}

}  // namespace kiln::cpu
