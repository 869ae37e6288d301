// Layers, a blocking and a device that the tests of the search space share.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <string>

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/sample_specs.hpp"

namespace kiln::dynamic_shaders {

inline DeviceInfo sharing_device() {
  DeviceInfo device = viewing_device();
  device.max_shared_bytes = 32768;
  return device;
}

inline Conv2dSpec layer(std::int64_t channels, std::int64_t extent, std::int64_t kernel, std::int64_t stride = 1,
                 std::int64_t groups = 1) {
  Conv2dSpec spec;
  spec.c = spec.k = channels, spec.groups = groups;
  spec.h = spec.w = extent;
  spec.r = spec.s = kernel, spec.stride_y = spec.stride_x = stride;
  spec.pad_y = spec.pad_x = kernel / 2;
  return spec;
}

inline std::string family_of(const std::string& variant) { return variant.substr(0, variant.find(':')); }

inline Blocking good_blocking() {
  return {Lanes::channels, 4, 8, 4, Packing::pixels, View::texels, Rows::unrolled, Border::padded, 16};
}

}  // namespace kiln::dynamic_shaders
