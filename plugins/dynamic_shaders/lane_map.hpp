// LaneMap: which output element each lane of a launch computes. One description gives the launch geometry, the
// statements that decode a lane, and the same decoding in C++ for tests.
//
// Outputs stand in a box of columns x rows x layers (conv2d: pixels of a plane, channels, images; gemm: n, m, 1). A
// workgroup covers a tile of columns x rows of one layer. The grid is the box of tiles where the device's grid is large
// enough; else the tiles are numbered, column by column, and folded into a grid that is.
// Thread-safety: values. Ownership: values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/status.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "dynamic_shaders/kernel_writer.hpp"

namespace kiln::dynamic_shaders {

struct LaneMap {
  using Triple = std::array<std::uint32_t, 3>;

  Triple box{1, 1, 1};        // outputs: columns, rows, layers
  Triple workgroup{1, 1, 1};  // lanes; one layer
  Triple tiles{1, 1, 1};      // workgroups that cover the box
  Triple grid{1, 1, 1};       // what is launched
  bool folded = false;        // the grid is not the box of tiles

  struct Item {
    std::uint32_t column = 0, row = 0, layer = 0;
  };
  // The output of one lane; absent where the lane has none.
  std::optional<Item> item(const Triple& group, const Triple& lane) const noexcept;

  // Statements that set `int column, row, layer`, and return where the lane has no output.
  std::string decoding(KernelWriter& writer) const;
};

// A wave of every GPU that OpenGL 4.3 runs on divides it; llvmpipe is indifferent from 8 to 256.
inline constexpr std::uint32_t usual_workgroup = 64;

// unsupported: no grid of the device holds as many workgroups. REQUIRES: every extent is 1 to 2^31 - 1; lanes, the most
// of a workgroup, is a power of two. Where a text is for any shape, the workgroup is the same for every box.
Result<LaneMap> map_lanes(const LaneMap::Triple& box, const DeviceInfo& device, const Form& form = {},
                          std::uint32_t lanes = usual_workgroup);

// Lanes of a workgroup where a pass has so few of them that whole workgroups would not part evenly among a host's
// cores: a vector at the least. On other devices the usual number.
std::uint32_t workgroup_for_few(std::uint64_t lanes, const DeviceInfo& device) noexcept;

}  // namespace kiln::dynamic_shaders
