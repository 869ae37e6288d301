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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dynamic_shaders/dialect/kernel_writer.hpp"

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

}  // namespace kiln::dynamic_shaders
