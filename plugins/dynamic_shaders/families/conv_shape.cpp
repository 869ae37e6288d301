#include "dynamic_shaders/families/conv_shape.hpp"

namespace kiln::dynamic_shaders {

ConvShape shape_of(const Conv2dSpec& spec) noexcept {
  ConvShape shape;
  shape.n = spec.n, shape.groups = spec.groups;
  shape.c = spec.c / spec.groups, shape.k = spec.k / spec.groups;
  shape.h = shape.source_h = spec.h, shape.w = shape.source_w = spec.w;
  shape.r = spec.r, shape.s = spec.s;
  shape.stride_y = spec.stride_y, shape.stride_x = spec.stride_x;
  shape.pad_y = spec.pad_y, shape.pad_x = spec.pad_x;
  shape.dilation_y = spec.dilation_y, shape.dilation_x = spec.dilation_x;
  shape.out_h = spec.out_h(), shape.out_w = shape.source_out_w = spec.out_w();
  shape.bias = spec.bias == Bias::per_channel;
  shape.activation = spec.activation;
  if (spec.r == 1 && spec.s == 1 && spec.pad_y == 0 && spec.pad_x == 0) {
    shape.flat = true;
    shape.pick_y = spec.stride_y, shape.pick_x = spec.stride_x;
    shape.w = shape.out_w = spec.out_h() * spec.out_w();
    shape.h = shape.out_h = 1;
    shape.stride_y = shape.stride_x = shape.dilation_y = shape.dilation_x = 1;
  }
  return shape;
}

std::array<std::uint32_t, 3> narrow(const Triple& triple) noexcept {
  const auto extent = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  return {extent(triple[0]), extent(triple[1]), extent(triple[2])};
}

Status check_grid(const Triple& grid, const DeviceInfo& device) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (grid[axis] <= std::int64_t{device.max_grid[axis]}) continue;
    return unsupported("grid[" + std::to_string(axis) + "] = " + std::to_string(grid[axis]) + ", device " + device.id +
                       " takes at most " + std::to_string(device.max_grid[axis]));
  }
  return {};
}

}  // namespace kiln::dynamic_shaders
