// depthwise/planes, depthwise/bands, depthwise/blocked: conv2d where each output channel sees one input channel of its
// own.
//
// There is nothing to share between channels, so what counts is how pixels are loaded and stored: four at a time, from
// the NCHW input as it lies. planes: a lane computes some whole planes, so that every index and every border is known
// when the text is written. bands: a lane computes some whole rows of a plane; the columns' borders are known when the
// text is written, and rows need not be whole texels. blocked: a lane computes a block of one plane. One pass each.
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dynamic_shaders/kernel_writer.hpp"
#include "dynamic_shaders/lane_map.hpp"

namespace kiln::dynamic_shaders {

struct Depthwise {
  std::int64_t planes = 0;    // of a lane; 0: bands or blocked
  std::int64_t rows = 0;      // bands: of a lane; 0: planes or blocked
  std::int64_t x = 0, y = 0;  // blocked: outputs of a lane; x is a multiple of 4
  View view = View::invalid;  // of the activations

  bool operator==(const Depthwise&) const = default;
};

// "depthwise/planes:planes=4,view=texels", "depthwise/bands:rows=2,view=texels",
// "depthwise/blocked:x=8,y=4,view=texels"
std::string depthwise_variant(const Depthwise& choice);
std::optional<Depthwise> depthwise_of(std::string_view variant);  // absent: not written so by depthwise_variant()

// unsupported, saying what does not hold; ok: such a kernel can be written, compiles on the device and can be launched
// there. REQUIRES: check_limits() of the spec's tensors is ok.
Status check(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device);
// All that fit.
std::vector<Depthwise> depthwise_space(const Conv2dSpec& spec, const DeviceInfo& device);

Result<KernelPlan> depthwise(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                             const Form& form);

// The kernels of depthwise convolutions: by planes, by bands of planes, and register-blocked.

// The passes of the depthwise families as text.
//
// Thread-safety: pure functions. Ownership: values.

// Lanes over the parts of all planes, the parts of one side by side; where planes are whole, over groups of them.
// unsupported: the device's grid is too small. REQUIRES: the choice's parameters divide the spec as check() wants it.
Result<LaneMap> depthwise_lanes(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                const Form& form);

// REQUIRES: check(spec, choice, device) is ok.
Result<Pass> depthwise_planes_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                   const Form& form);
Result<Pass> depthwise_bands_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                  const Form& form);
Result<Pass> depthwise_blocked_pass(const Conv2dSpec& spec, const Depthwise& choice, const DeviceInfo& device,
                                    const Form& form);

// The body of depthwise/blocked.
//
// Thread-safety: as the writer. Ownership: nothing is kept beyond the call.

// REQUIRES: the tensors are bound; the text has set `int layer, channel, part`.
void write_block(const Conv2dSpec& spec, const Depthwise& choice, KernelWriter& writer);

// The body of depthwise/planes.
//
// Thread-safety: as the writer. Ownership: nothing is kept beyond the call.

// REQUIRES: the tensors are bound; the text has set `int column, layer`.
void write_planes(const Conv2dSpec& spec, const Depthwise& choice, KernelWriter& writer);

// The body of depthwise/bands.
//
// Thread-safety: as the writer. Ownership: nothing is kept beyond the call.

// REQUIRES: the tensors are bound; the text has set `int layer, channel, part`.
void write_bands(const Conv2dSpec& spec, const Depthwise& choice, KernelWriter& writer);

// What the texts of the depthwise kernels share: a channel's weights in variables, and outputs that lie behind one
// another, each a sum over taps whose places in the input are known when the text is written.
//
// Thread-safety: as the writer. Ownership: nothing is kept beyond a call.

// Variables w{plane}_{tap} and, where the spec has one, bias{plane}. `channel` is an expression.
void write_weights(KernelWriter& writer, const Conv2dSpec& spec, const std::string& channel, std::int64_t plane);

// A vector of sums as it is stored.
std::string finished(const KernelWriter& writer, const Conv2dSpec& spec, const std::string& value);

// The expression of a pixel of the input, whose load it may write first; empty: it lies outside.
using PlanePixel = std::function<std::string(std::int64_t plane, std::int64_t row, std::int64_t column)>;

// Rows of so many planes, from the binding `y`'s texel first_y on. Columns outside the input are not asked for.
// REQUIRES: rows * spec.out_w() * planes is a multiple of 4.
void write_outputs(KernelWriter& writer, const Conv2dSpec& spec, std::int64_t planes, std::int64_t rows,
                   const PlanePixel& pixel);

}  // namespace kiln::dynamic_shaders
