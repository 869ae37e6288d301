// Blocking: the parameters of a register-blocked convolution, and what they make of a shape.
//
// Thread-safety: values, pure functions. Ownership: values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/kernel_writer.hpp"

namespace kiln::dynamic_shaders {

// What differs between the lanes of a workgroup: the output channels, the outputs' places, or the output channels and
// then the groups, so that no lane of a workgroup is idle where a group has few channels.
enum class Lanes : std::uint8_t { invalid = 0, channels, places, groups };
// What a texel of the activations holds: four channels of one pixel, or four pixels of one channel. plane: four pixels,
// as they lie in the NCHW input already.
enum class Packing : std::uint8_t { invalid = 0, channels, pixels, plane };
// Of the kernel: in a loop, or in the loop over channels. Of a 1x1 kernel: one step a round, or four; a step is one
// channel, with packing channels four.
enum class Rows : std::uint8_t { invalid = 0, looped, unrolled };
enum class Border : std::uint8_t { invalid = 0, padded, guarded };  // zeros in memory, or chosen at each load

struct Blocking {
  Lanes lanes = Lanes::invalid;
  std::int64_t k = 0, x = 0, y = 0;  // outputs of one lane; k is a multiple of 4
  Packing packing = Packing::invalid;
  View view = View::invalid;  // of activations and weights
  Rows rows = Rows::invalid;
  Border border = Border::invalid;
  std::int64_t workgroup = 0;  // lanes

  bool operator==(const Blocking&) const = default;
};

// "lanes=channels,k=4,x=7,y=4,packing=channels,view=texels,rows=looped,border=padded,workgroup=16"
std::string to_text(const Blocking& blocking);
std::optional<Blocking> blocking_of(std::string_view text);  // absent: not written so by to_text()

// What a blocking makes of a shape: extents of the packed forms and of the launch.
struct BlockedExtents {
  std::int64_t blocks_x = 0, blocks_y = 0;
  std::int64_t k_lanes = 0;            // lanes over a group's channels, with those that only fill the last workgroup
  std::int64_t steps = 0;              // of the loop over channels
  std::int64_t step_c = 0;             // channels a step
  std::int64_t round_steps = 1;        // a round of that loop
  std::int64_t packed_h = 0;           // rows of the packed activations
  std::int64_t packed_w = 0;           // texels of such a row
  std::int64_t activation_texels = 0;  // of one image; of the input itself where packing is plane
  std::int64_t weight_texels = 0;
  Triple grid{1, 1, 1};            // of the main pass
  Triple activation_box{1, 1, 1};  // texels of the pass that packs activations; there is none where packing is plane
  Triple weight_box{1, 1, 1};      // texels of the pass that packs weights
  bool wide_stores = false;        // all outputs of a block can be stored four at a time
};
// REQUIRES: x, y and workgroup are positive.
BlockedExtents extents_of(const ConvShape& shape, const Blocking& blocking) noexcept;

// ok: such a kernel can be written for the shape, compiles on the device, and its passes can be launched there, those
// that pack included. Otherwise what does not hold.
Status check(const ConvShape& shape, const Blocking& blocking, const DeviceInfo& device);

// The main pass of direct/blocked as text.
//
// Thread-safety: a pure function. Ownership: the pass is a value.

struct BlockedBindings {
  Binding activations, weights, bias, output;  // bias: where the shape has one
};

// REQUIRES: check(shape, blocking, …) is ok. The grid is that of extents_of().
Pass blocked_pass(const ConvShape& shape, const Blocking& blocking, const Form& form, const BlockedBindings& bindings);

}  // namespace kiln::dynamic_shaders
