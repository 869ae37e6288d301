// What a workgroup's tile of a product may be, on any device and on one: implicit/*, gemm/shared.
//
// Thread-safety: pure functions. Ownership: values; names are borrowed.
#pragma once

#include <kiln/device.hpp>

#include <cstdint>
#include <string_view>

namespace kiln::dynamic_shaders {

struct TileExtents {
  std::string_view row_name, column_name;  // as the variant's id has them
  std::int64_t rows = 0, columns = 0;      // of a lane
  std::int64_t row_lanes = 0, column_lanes = 0;
  std::int64_t depth = 0;         // of a step
  std::int64_t shared_bytes = 0;  // of a workgroup
};

// unsupported, beginning with the family and saying what does not hold, and what would.
Status check_tile(std::string_view family, const TileExtents& tile, const DeviceInfo& device);

}  // namespace kiln::dynamic_shaders
