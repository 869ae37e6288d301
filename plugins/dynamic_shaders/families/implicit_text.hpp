// The texts of implicit/registers and implicit/shared: the product's pass and the pass that packs the weights.
//
// Packed weights: texel [group][tap][channel][k ÷ 4] holds four output channels, zeros where there are none.
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include "dynamic_shaders/families/implicit.hpp"

namespace kiln::dynamic_shaders {

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
