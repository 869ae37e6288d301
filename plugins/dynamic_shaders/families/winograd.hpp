// winograd/f2, winograd/f4: conv2d by Winograd's algorithm F(2, 3) or F(4, 3), only where the spec allows its error.
//
// Three passes: tiles of the input are transformed into t² planes (t = m + 2), each plane is a product of matrices by
// the blocked kernel, with the transformed weights (prepared once), and tiles of the product are transformed back. The
// matrices are those of A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016: points
// 0, ±1 and 0, ±1, ±2, as core's allowance for the error assumes. Thread-safety: pure functions. Ownership: values.
#pragma once

#include <optional>

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/kernel_writer.hpp"
#include "dynamic_shaders/lane_map.hpp"

namespace kiln::dynamic_shaders {

struct WinogradShape {
  std::int64_t m = 4, t = 6;  // outputs and inputs of a tile along an axis
  std::int64_t tiles_x = 0, tiles_y = 0;
  std::int64_t quads = 0;  // of four tiles, in order of rows; the last may be partly empty
  ConvShape products;      // one group a point, one pixel a tile
};

// Absent: the algorithm does not exist for the spec, or the spec does not allow its error. REQUIRES: m is 2 or 4.
std::optional<WinogradShape> winograd_shape(const Conv2dSpec& spec, std::int64_t m);

// ok: check(products, blocking, device) is, the transformed tensors fit, and the transforms can be launched.
Status check_winograd(const Conv2dSpec& spec, const WinogradShape& shape, const Blocking& blocking,
                      const DeviceInfo& device);

// unsupported: it is not allowed, or check_winograd is not ok. REQUIRES: m is 2 or 4; blocking.packing is plane.
Result<KernelPlan> winograd(const Conv2dSpec& spec, std::int64_t m, const Blocking& blocking, const DeviceInfo& device,
                            const Form& form);

// Winograd's three transforms as passes of text.
//
// Thread-safety: pure functions. Ownership: values.

// Which lanes of the three passes compute what. unsupported: the device's grid is too small.
Result<LaneMap> input_lanes(const Conv2dSpec& spec, const WinogradShape& shape, const DeviceInfo& device,
                            const Form& form);
Result<LaneMap> weight_lanes(const WinogradShape& shape, const Blocking& blocking, const DeviceInfo& device,
                             const Form& form);
Result<LaneMap> output_lanes(const Conv2dSpec& spec, const WinogradShape& shape, const DeviceInfo& device,
                             const Form& form);

// Four tiles of one channel a lane: input → texels [image][point][channel][quad of tiles].
Result<Pass> transform_input(const Conv2dSpec& spec, const WinogradShape& shape, View view, const DeviceInfo& device,
                             const Form& form, Binding to);
// Four output channels and one input channel a lane, all points: weights → the blocked kernel's packed weights.
Result<Pass> transform_weights(const WinogradShape& shape, const Blocking& blocking, const DeviceInfo& device,
                               const Form& form, Binding to);
// Four tiles of one channel a lane: products → output, with bias and activation.
Result<Pass> transform_output(const Conv2dSpec& spec, const WinogradShape& shape, View view, const DeviceInfo& device,
                              const Form& form, Binding from);

}  // namespace kiln::dynamic_shaders
