#include "dynamic_shaders/families/product/tile_limits.hpp"

#include <algorithm>
#include <string>

#include "dynamic_shaders/limits.hpp"

namespace kiln::dynamic_shaders {

Status check_tile(std::string_view family, const TileExtents& t, const DeviceInfo& device) {
  const auto does_not_fit = [&](const std::string& what) { return unsupported(std::string(family) + ": " + what); };
  const auto text_of = [](std::int64_t value) { return std::to_string(value); };
  if (t.rows < 4 || t.rows > 16 || t.rows % 4 != 0) {
    return does_not_fit(std::string(t.row_name) + " = " + text_of(t.rows) + ", expected 4, 8, 12 or 16");
  }
  if (t.columns < 1 || t.columns > 16 || t.depth < 1 || t.depth > 32) {
    return does_not_fit(std::string(t.column_name) + " = " + text_of(t.columns) + ", depth = " + text_of(t.depth) +
                        ", expected 1 to 16 and 1 to 32");
  }
  const std::int64_t most_lanes = std::min(device.max_workgroup_lanes, device.max_workgroup[0]);
  if (t.row_lanes < 1 || t.column_lanes < 1 || t.row_lanes > most_lanes / t.column_lanes) {
    return does_not_fit(text_of(t.row_lanes) + " x " + text_of(t.column_lanes) + " lanes, the device takes " +
                        text_of(most_lanes));
  }
  if (t.rows * t.columns > most_outputs) {
    return does_not_fit(text_of(t.rows * t.columns) + " outputs a lane, at most " + text_of(most_outputs));
  }
  if (t.rows * t.columns * t.depth > most_unrolled_terms) {
    return does_not_fit(text_of(t.rows * t.columns * t.depth) + " terms unrolled, at most " +
                        text_of(most_unrolled_terms));
  }
  if (t.shared_bytes > device.max_shared_bytes) {
    return does_not_fit(text_of(t.shared_bytes) + " bytes of shared memory, the device has " +
                        std::to_string(device.max_shared_bytes));
  }
  return {};
}

}  // namespace kiln::dynamic_shaders
