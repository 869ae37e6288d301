#include "dynamic_shaders/lane_map.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <vector>

#include "dynamic_shaders/sample_specs.hpp"

namespace kiln::dynamic_shaders {
namespace {

// How often the launch computes each output of the box; one more element counts what lies outside it.
std::vector<int> coverage(const LaneMap& map) {
  const auto& [columns, rows, layers] = map.box;
  std::vector<int> hits(std::size_t{columns} * rows * layers + 1);
  LaneMap::Triple group{}, lane{};
  for (group[2] = 0; group[2] < map.grid[2]; ++group[2]) {
    for (group[1] = 0; group[1] < map.grid[1]; ++group[1]) {
      for (group[0] = 0; group[0] < map.grid[0]; ++group[0]) {
        for (lane[1] = 0; lane[1] < map.workgroup[1]; ++lane[1]) {
          for (lane[0] = 0; lane[0] < map.workgroup[0]; ++lane[0]) {
            const auto item = map.item(group, lane);
            if (!item) continue;
            const bool inside = item->column < columns && item->row < rows && item->layer < layers;
            ++hits[inside ? (std::size_t{item->layer} * rows + item->row) * columns + item->column : hits.size() - 1];
          }
        }
      }
    }
  }
  return hits;
}

void check_covers(const LaneMap& map, const DeviceInfo& device) {
  INFO("box " << map.box[0] << " x " << map.box[1] << " x " << map.box[2] << ", grid " << map.grid[0] << " x "
              << map.grid[1] << " x " << map.grid[2] << ", workgroup " << map.workgroup[0] << " x "
              << map.workgroup[1]);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    CHECK(map.grid[axis] >= 1);
    CHECK(map.grid[axis] <= device.max_grid[axis]);
    CHECK(map.workgroup[axis] <= device.max_workgroup[axis]);
  }
  CHECK(map.workgroup[0] * map.workgroup[1] * map.workgroup[2] <= device.max_workgroup_lanes);
  std::vector<int> hits = coverage(map);
  CHECK(hits.back() == 0);
  hits.pop_back();
  CHECK(std::all_of(hits.begin(), hits.end(), [](int n) { return n == 1; }));
}

}  // namespace

TEST_CASE("dynamic_shaders: every output is computed exactly once, whatever the device's grid") {
  std::mt19937 random(7);
  const auto up_to = [&random](std::uint32_t most) { return 1 + static_cast<std::uint32_t>(random() % most); };
  int folded = 0, refused = 0;
  for (int i = 0; i < 400; ++i) {
    DeviceInfo device = sample_device();
    if (i % 2 == 1) device.max_grid = {up_to(40), up_to(6), up_to(6)};
    if (i % 3 == 1) device.max_workgroup_lanes = up_to(100);
    if (i % 5 == 1) device.max_workgroup = {up_to(20), up_to(20), 1};
    const LaneMap::Triple box{up_to(300), up_to(40), up_to(5)};
    const auto map = map_lanes(box, device);
    if (!map) {
      CHECK(map.error().code == StatusCode::unsupported);
      ++refused;
      continue;
    }
    check_covers(*map, device);
    folded += map->folded;
  }
  CHECK(folded > 30);
  CHECK(refused > 5);
  CHECK(folded + refused < 250);
}

TEST_CASE("dynamic_shaders: a grid is refused only where the device cannot hold it") {
  DeviceInfo device = sample_device();
  device.max_workgroup = {8, 1, 1};
  device.max_grid = {4, 3, 2};
  CHECK(map_lanes({8 * 24, 1, 1}, device).has_value());
  const auto map = map_lanes({8 * 24 + 1, 1, 1}, device);
  REQUIRE_FALSE(map.has_value());
  CHECK_THAT(map.error().message, Catch::Contains("25 x 1 x 1") && Catch::Contains("4 x 3 x 2"));
}

TEST_CASE("dynamic_shaders: a large picture is folded into the least grid") {
  const auto map = map_lanes({6000 * 5000, 2, 1}, sample_device());
  REQUIRE(map.has_value());
  CHECK(map->folded);
  const std::uint64_t tiles = std::uint64_t{map->tiles[0]} * map->tiles[1];
  CHECK(tiles == 937500);
  CHECK(std::uint64_t{map->grid[0]} * map->grid[1] * map->grid[2] < tiles + 65536);
}

TEST_CASE("dynamic_shaders: the written decoding agrees with the geometry") {
  const auto plain = map_lanes({100, 7, 3}, sample_device());
  REQUIRE(plain.has_value());
  KernelWriter writer(Dialect::glsl, "");
  CHECK(plain->decoding(writer) ==
        "  int column = int(gl_GlobalInvocationID.x);\n"
        "  int row = int(gl_GlobalInvocationID.y);\n"
        "  int layer = int(gl_GlobalInvocationID.z);\n"
        "  if (column >= 100) return;\n");
  DeviceInfo device = sample_device();
  device.max_grid = {5, 5, 5};
  const auto folded = map_lanes({100, 7, 3}, device);
  REQUIRE(folded.has_value());
  CHECK(folded->grid == LaneMap::Triple{5, 5, 2});
  // Workgroup (1, 2, 1) is tile (1 * 5 + 2) * 5 + 1 = 36 of 42: the first of its row of 2, row 18 % 7, layer 18 / 7.
  const auto item = folded->item({1, 2, 1}, {3, 0, 0});
  REQUIRE(item.has_value());
  CHECK(item->column == 3);
  CHECK(item->row == 4);
  CHECK(item->layer == 2);
  CHECK_FALSE(folded->item({2, 3, 1}, {0, 0, 0}).has_value());   // tile 42
  CHECK_FALSE(folded->item({0, 0, 1}, {36, 0, 0}).has_value());  // tile 25, column 100
  CHECK(folded->item({0, 0, 1}, {35, 0, 0}).has_value());
  CHECK(folded->decoding(writer) ==
        "  uint tile = (gl_WorkGroupID.z * 5u + gl_WorkGroupID.y) * 5u + gl_WorkGroupID.x;\n"
        "  if (tile >= 42u) return;\n"
        "  int column = int(tile % 2u * 64u + gl_LocalInvocationID.x);\n"
        "  int row = int(tile / 2u % 7u * 1u + gl_LocalInvocationID.y);\n"
        "  int layer = int(tile / 2u / 7u);\n"
        "  if (column >= 100) return;\n");
}

TEST_CASE("dynamic_shaders: a family whose text would be wrong gets an error, and the process goes on") {
  KernelWriter writer(Dialect::glsl, "a kernel");
  CHECK_THROWS_WITH(writer.load("input", "0"), Catch::Contains("'a kernel'") && Catch::Contains("binding input"));
  std::vector<NumberTable> tables;
  KernelWriter any({Dialect::glsl, &tables}, "any shape");
  CHECK(any.number("width", 7) == any.number("width", 7));
  CHECK_THROWS_WITH(any.number("width", 8), Catch::Contains("'any shape'") && Catch::Contains("width"));
}

}  // namespace kiln::dynamic_shaders
