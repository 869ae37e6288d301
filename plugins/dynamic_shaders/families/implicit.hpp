// implicit/registers, implicit/shared: conv2d as a product of matrices that is never written down: weights of channels
// × taps by the taps' inputs of pixels.
//
// A workgroup computes a tile of the product, each lane some channels of some pixels. Where a pixel's taps lie is
// worked out once a tap, outside the loop over input channels. registers: each lane loads what it multiplies. shared:
// the lanes of a workgroup load a step's part of both factors into shared memory together, so that each value is loaded
// once a tile. One pass over the NCHW input as it is, and a `prepare` pass for the weights. Thread-safety: pure
// functions. Ownership: values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/kernel_writer.hpp"

namespace kiln::dynamic_shaders {

enum class Staging : std::uint8_t { invalid = 0, registers, shared };

struct ImplicitTile {
  Staging staging = Staging::invalid;
  std::int64_t k = 0;        // channels of a lane, a multiple of 4
  std::int64_t pixels = 0;   // of a lane; a workgroup's width in pixels apart
  std::int64_t lanes_k = 0;  // of the workgroup
  std::int64_t lanes_p = 0;
  std::int64_t depth = 0;  // input channels of a step

  bool operator==(const ImplicitTile&) const = default;
};

// "implicit/shared:k=8,pixels=4,lanes_k=8,lanes_p=16,depth=8"
std::string implicit_variant(const ImplicitTile& tile);
std::optional<ImplicitTile> implicit_of(std::string_view variant);  // absent: not written so by implicit_variant()

// Bytes of shared memory that a workgroup takes.
std::int64_t shared_bytes(const ImplicitTile& tile) noexcept;
// Workgroups of the product's pass; texels that the weights' pass writes.
Triple implicit_grid(const Conv2dSpec& spec, const ImplicitTile& tile) noexcept;
Triple implicit_weight_box(const Conv2dSpec& spec, const ImplicitTile& tile) noexcept;
// unsupported, saying what does not hold; ok: such a kernel can be written, compiles on the device and can be launched
// there.
Status check(const Conv2dSpec& spec, const ImplicitTile& tile, const DeviceInfo& device);
// All that are worth a look and fit.
std::vector<ImplicitTile> implicit_space(const Conv2dSpec& spec, const DeviceInfo& device);

Result<KernelPlan> implicit_product(const Conv2dSpec& spec, const ImplicitTile& tile, const DeviceInfo& device,
                                    const Form& form);

// The texts of implicit/registers and implicit/shared: the product's pass and the pass that packs the weights.
//
// Packed weights: texel [group][tap][channel][k ÷ 4] holds four output channels, zeros where there are none.
// Thread-safety: pure functions. Ownership: values.

// What a tile makes of a shape, for one group of one image.
struct ImplicitExtents {
  std::int64_t c = 0, k = 0;  // channels of a group
  std::int64_t pixels = 0;    // of an output plane
  std::int64_t taps = 0;      // of the kernel
  std::int64_t tile_k = 0;    // channels of a workgroup
  std::int64_t tile_p = 0;    // pixels of a workgroup
  std::int64_t tiles_k = 0;   // workgroups
  std::int64_t tiles_p = 0;
  std::int64_t quads = 0;     // texels of all of a group's channels, whole tiles
  std::int64_t steps = 0;     // over the input's channels
  std::int64_t packed_c = 0;  // channels of whole steps
  std::int64_t weight_texels = 0;
};
ImplicitExtents extents_of(const Conv2dSpec& spec, const ImplicitTile& tile) noexcept;

Pass implicit_pass(const Conv2dSpec& spec, const ImplicitTile& tile, const Form& form, Binding weights);
Result<Pass> pack_implicit_weights(const Conv2dSpec& spec, const ImplicitTile& tile, const DeviceInfo& device,
                                   const Form& form, Binding to);

}  // namespace kiln::dynamic_shaders
