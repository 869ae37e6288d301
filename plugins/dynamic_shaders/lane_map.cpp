#include "dynamic_shaders/lane_map.hpp"

#include <algorithm>
#include <bit>

#include "dynamic_shaders/kernel_writer.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr std::uint64_t wanted_groups = 16;  // so that the last of them to end keeps nobody waiting for long

std::uint32_t divide_up(std::uint32_t a, std::uint32_t b) { return a / b + (a % b != 0); }

// The least power of two that covers `extent`, within `most`.
std::uint32_t lanes_for(std::uint32_t extent, std::uint32_t wanted, std::uint32_t most) {
  return std::min(std::bit_ceil(std::min(extent, wanted)), std::bit_floor(std::max(most, 1u)));
}

bool fits(const LaneMap::Triple& grid, const LaneMap::Triple& most) {
  return grid[0] <= most[0] && grid[1] <= most[1] && grid[2] <= most[2];
}

// The flattest grid that holds `groups`, with as few to spare as its shape allows; absent: none does.
std::optional<LaneMap::Triple> fold(std::uint64_t groups, const LaneMap::Triple& most) {
  const auto divide = [](std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; };
  const std::uint64_t z = divide(groups, std::uint64_t{most[0]} * most[1]);
  const std::uint64_t y = divide(divide(groups, z), most[0]);
  const std::uint64_t x = divide(groups, z * y);
  if (z > most[2]) return std::nullopt;
  return LaneMap::Triple{static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(z)};
}

}  // namespace

std::optional<LaneMap::Item> LaneMap::item(const Triple& group, const Triple& lane) const noexcept {
  std::uint32_t tile_x = group[0], tile_y = group[1], layer = group[2];
  if (folded) {
    const std::uint64_t tile = (std::uint64_t{group[2]} * grid[1] + group[1]) * grid[0] + group[0];
    if (tile >= std::uint64_t{tiles[0]} * tiles[1] * tiles[2]) return std::nullopt;
    tile_x = static_cast<std::uint32_t>(tile % tiles[0]);
    tile_y = static_cast<std::uint32_t>(tile / tiles[0] % tiles[1]);
    layer = static_cast<std::uint32_t>(tile / tiles[0] / tiles[1]);
  }
  const Item item{tile_x * workgroup[0] + lane[0], tile_y * workgroup[1] + lane[1], layer};
  if (item.column >= box[0] || item.row >= box[1]) return std::nullopt;
  return item;
}

std::string LaneMap::decoding(KernelWriter& writer) const {
  Text text(1);
  const bool any = writer.any_shape();
  if (folded) {
    const auto shaped = [&](const char* name, std::uint64_t value) {
      const std::string known = writer.number(name, static_cast<std::int64_t>(value));
      return any ? writer.to_unsigned(known) : known + "u";
    };
    const auto placed = [&](const std::string& tile, int axis) {
      return writer.to_int(tile + " * " + std::to_string(workgroup[static_cast<std::size_t>(axis)]) + "u + " +
                           writer.unsigned_lane(axis));
    };
    const std::string x = shaped("tiles_x", tiles[0]), y = shaped("tiles_y", tiles[1]);
    text.line("uint tile = (", writer.unsigned_group(2), " * ", shaped("grid_y", grid[1]), " + ",
              writer.unsigned_group(1), ") * ", shaped("grid_x", grid[0]), " + ", writer.unsigned_group(0), ";");
    text.line("if (tile >= ", shaped("tiles", std::uint64_t{tiles[0]} * tiles[1] * tiles[2]), ") return;");
    text.line("int column = ", placed("tile % " + x, 0), ";");
    text.line("int row = ", placed("tile / " + x + " % " + y, 1), ";");
    text.line("int layer = ", writer.to_int("tile / " + x + " / " + y), ";");
  } else {
    const char* names[] = {"column", "row", "layer"};
    for (int axis = 0; axis < 3; ++axis) {
      text.line("int ", names[axis], " = ", writer.to_int(writer.unsigned_globally(axis)), ";");
    }
  }
  if (workgroup[0] != 1 && (any || box[0] % workgroup[0] != 0)) {
    text.line("if (column >= ", writer.number("columns", box[0]), ") return;");
  }
  if (box[1] % workgroup[1] != 0) text.line("if (row >= ", writer.number("rows", box[1]), ") return;");
  return text.take();
}

std::uint32_t workgroup_for_few(std::uint64_t lanes, const DeviceInfo& device) noexcept {
  if (device.kind != DeviceKind::software) return usual_workgroup;
  const std::uint64_t vector = std::bit_ceil(std::max(device.simd_lanes, 8u));
  const std::uint64_t share = std::bit_floor(std::max<std::uint64_t>(lanes / wanted_groups, 1));
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(share, std::min<std::uint64_t>(vector, usual_workgroup), usual_workgroup));
}

Result<LaneMap> map_lanes(const LaneMap::Triple& box, const DeviceInfo& device, const Form& form, std::uint32_t lanes) {
  LaneMap map;
  map.box = box;
  const std::uint32_t most = std::min(device.max_workgroup[0], device.max_workgroup_lanes);
  map.workgroup[0] = lanes_for(form.any_shape() ? lanes : box[0], lanes, most);
  if (!form.any_shape()) {
    map.workgroup[1] = lanes_for(box[1], lanes,
                                 std::min({device.max_workgroup[1], device.max_workgroup_lanes / map.workgroup[0],
                                           std::max(lanes / map.workgroup[0], 1u)}));
  }
  for (std::size_t axis = 0; axis < 3; ++axis) map.tiles[axis] = divide_up(box[axis], map.workgroup[axis]);
  map.grid = map.tiles;
  if (fits(map.grid, device.max_grid)) return map;

  const std::uint64_t plane = std::uint64_t{map.tiles[0]} * map.tiles[1];  // below 2^62
  // The tile's number must stay within GLSL's 32 bits, also for those the fold adds.
  if (plane <= (1u << 31) && plane * map.tiles[2] <= (1u << 31)) {
    if (const auto grid = fold(plane * map.tiles[2], device.max_grid)) {
      map.folded = true;
      map.grid = *grid;
      return map;
    }
  }
  return unsupported("device " + device.id + ": grid needs " + std::to_string(map.tiles[0]) + " x " +
                     std::to_string(map.tiles[1]) + " x " + std::to_string(map.tiles[2]) +
                     " workgroups, expected at most " + std::to_string(device.max_grid[0]) + " x " +
                     std::to_string(device.max_grid[1]) + " x " + std::to_string(device.max_grid[2]));
}

}  // namespace kiln::dynamic_shaders
