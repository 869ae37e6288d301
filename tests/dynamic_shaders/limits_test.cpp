// What a shader must fit into, on both sides of each limit: bindings, buffers, indices, loops, grids and tiles.
#include "dynamic_shaders/limits.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/shared_tile.hpp"
#include "dynamic_shaders/lane_map.hpp"
#include "dynamic_shaders/sample_specs.hpp"

namespace kiln::dynamic_shaders {
namespace {

DeviceInfo limited_device() {
  DeviceInfo device = sample_device();
  device.max_bindings = 3;
  device.max_buffer_bytes = 4096;
  return device;
}

TensorDecl tensor_of(std::uint64_t bytes) { return {"x", TensorRole::input, bytes}; }

Pass pass_with(std::size_t bindings) {
  Pass pass;
  pass.bindings.resize(bindings);
  return pass;
}

// A device that launches one lane a workgroup.
DeviceInfo single_lane_device() {
  DeviceInfo device = sample_device();
  device.max_workgroup = {1, 1, 1}, device.max_workgroup_lanes = 1;
  return device;
}

}  // namespace

TEST_CASE("limits: as many tensors and bytes as the device takes, and no more") {
  const DeviceInfo device = limited_device();
  CHECK(check_limits({tensor_of(4), tensor_of(4), tensor_of(4)}, device).ok());
  const Status many = check_limits({tensor_of(4), tensor_of(4), tensor_of(4), tensor_of(4)}, device);
  CHECK(many.code == StatusCode::unsupported);
  CHECK(many.message == "device opengl:0: 4 bindings, expected at most 3");
  CHECK(check_limits({tensor_of(4096)}, device).ok());
  const Status large = check_limits({tensor_of(4), tensor_of(4097)}, device);
  CHECK(large.code == StatusCode::unsupported);
  CHECK(large.message == "device opengl:0: tensor x has 4097 bytes, expected at most 4096");
}

TEST_CASE("limits: a tensor has no more elements than an int counts, where the device tells no limit") {
  DeviceInfo device = limited_device();
  device.max_buffer_bytes = 0;
  CHECK(check_limits({tensor_of(8589934588)}, device).ok());  // 2^31 - 1 floats
  CHECK(check_limits({tensor_of(8589934591)}, device).ok());  // and three bytes
  const Status large = check_limits({tensor_of(8589934592)}, device);
  CHECK(large.code == StatusCode::unsupported);
  CHECK(large.message == "tensor x: 2147483648 elements, expected at most 2147483647");
}

TEST_CASE("limits: every pass of a plan binds what the device takes, the ones that prepare too") {
  KernelPlan plan;
  plan.variant = "direct/plain";
  plan.prepare = {pass_with(3)};
  plan.passes = {pass_with(3), pass_with(2)};
  CHECK(check_bindings(plan, limited_device()).ok());
  for (std::vector<Pass>* const passes : {&plan.prepare, &plan.passes}) {
    passes->push_back(pass_with(4));  // behind one that fits
    const Status many = check_bindings(plan, limited_device());
    CHECK(many.code == StatusCode::unsupported);
    CHECK(many.message == "plan direct/plain: a pass has 4 bindings, device opengl:0 takes at most 3");
    passes->pop_back();
  }
}

TEST_CASE("limits: a sum is split so that no pass goes round more than 60000 times") {
  const struct {
    std::int64_t terms, iterations, passes;
  } rows[] = {{0, 1, 0},      {1, 1, 1},      {59999, 1, 1}, {60000, 1, 1}, {60001, 1, 2},
              {120000, 1, 2}, {120001, 1, 3}, {30000, 2, 1}, {30001, 2, 2}, {1, 60000, 1},
              {2, 60000, 2},  {2, 30000, 1},  {2, 30001, 2}, {1, 60001, 0}, {7, 70000, 0}};
  for (const auto& row : rows) {
    CAPTURE(row.terms, row.iterations);
    CHECK(passes_for(row.terms, row.iterations) == row.passes);
  }
}

TEST_CASE("limits: the parts of a long sum follow one another, and only the last one ends it") {
  const std::vector<SumPart> one = parts_of(60000);
  REQUIRE(one.size() == 1);
  CHECK(one[0].first == 0);
  CHECK(one[0].last == 60000);
  CHECK(one[0].begins);
  CHECK(one[0].ends);
  const std::vector<SumPart> parts = parts_of(120001);
  REQUIRE(parts.size() == 3);
  const std::int64_t bounds[] = {0, 40000, 80000, 120001};
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(parts[i].first == bounds[i]);
    CHECK(parts[i].last == bounds[i + 1]);
    CHECK(parts[i].begins == (i == 0));
    CHECK(parts[i].ends == (i == 2));
  }
}

TEST_CASE("limits: a grid may be as large as the device's along each axis") {
  DeviceInfo device = sample_device();
  device.max_grid = {10, 20, 30};
  CHECK(check_grid({10, 20, 30}, device).ok());
  const struct {
    Triple grid;
    std::string_view message;
  } rows[] = {{{11, 20, 30}, "grid[0] = 11, device opengl:0 takes at most 10"},
              {{10, 21, 30}, "grid[1] = 21, device opengl:0 takes at most 20"},
              {{10, 20, 31}, "grid[2] = 31, device opengl:0 takes at most 30"},
              {{1, 1, 4294967297}, "grid[2] = 4294967297, device opengl:0 takes at most 30"}};
  for (const auto& row : rows) {
    const Status status = check_grid(row.grid, device);
    CHECK(status.code == StatusCode::unsupported);
    CHECK(status.message == row.message);
  }
}

TEST_CASE("limits: division rounds up, and down below zero") {
  CHECK(divide_up(0, 4) == 0);
  CHECK(divide_up(1, 4) == 1);
  CHECK(divide_up(4, 4) == 1);
  CHECK(divide_up(5, 4) == 2);
  CHECK(round_up(8, 4) == 8);
  CHECK(round_up(9, 4) == 12);
  CHECK(floor_divide(7, 4) == 1);
  CHECK(floor_divide(0, 4) == 0);
  CHECK(floor_divide(-1, 4) == -1);
  CHECK(floor_divide(-4, 4) == -1);
  CHECK(floor_divide(-5, 4) == -2);
}

TEST_CASE("limits: a tile of a product at each of its bounds") {
  DeviceInfo device = sample_device();
  device.max_workgroup_lanes = 512, device.max_workgroup = {256, 1, 1};
  device.max_shared_bytes = 1000;
  const TileExtents good{"rows", "columns", 8, 4, 8, 16, 8, 1000};
  const auto answer = [&](auto change) {
    TileExtents tile = good;
    change(tile);
    const Status status = check_tile("some", tile, device);
    CHECK((status.ok() || status.code == StatusCode::unsupported));
    return status.message;
  };
  for (const std::int64_t rows : {4, 8, 12, 16}) CHECK(answer([&](TileExtents& t) { t.rows = rows; }) == "");
  for (const std::int64_t rows : {-4, 0, 2, 6, 18, 20}) {
    CHECK(answer([&](TileExtents& t) { t.rows = rows; }) ==
          "some: rows = " + std::to_string(rows) + ", expected 4, 8, 12 or 16");
  }
  for (const std::int64_t columns : {1, 16}) CHECK(answer([&](TileExtents& t) { t.columns = columns; }) == "");
  for (const std::int64_t columns : {0, 17}) {
    CHECK(answer([&](TileExtents& t) { t.columns = columns; }) ==
          "some: columns = " + std::to_string(columns) + ", depth = 8, expected 1 to 16 and 1 to 32");
  }
  for (const std::int64_t depth : {1, 32}) CHECK(answer([&](TileExtents& t) { t.depth = depth; }) == "");
  for (const std::int64_t depth : {0, 33}) {
    CHECK(answer([&](TileExtents& t) { t.depth = depth; }) ==
          "some: columns = 4, depth = " + std::to_string(depth) + ", expected 1 to 16 and 1 to 32");
  }
  // The largest of each fit together: 256 outputs, 8192 terms.
  CHECK(answer([](TileExtents& t) { t.rows = t.columns = 16, t.depth = 32; }) == "");
  CHECK(answer([](TileExtents& t) { t.shared_bytes = 1001; }) ==
        "some: 1001 bytes of shared memory, the device has at most 1000");
}

TEST_CASE("limits: a tile's lanes are one at the least, and what the device takes in a row at the most") {
  DeviceInfo device = sample_device();
  device.max_workgroup_lanes = 512, device.max_workgroup = {256, 1, 1};
  const auto lanes = [&](std::int64_t rows, std::int64_t columns) {
    const Status status = check_tile("some", {"k", "pixels", 4, 1, rows, columns, 1, 0}, device);
    return status.ok() ? "ok" : status.message;
  };
  CHECK(lanes(1, 1) == "ok");
  CHECK(lanes(16, 16) == "ok");
  CHECK(lanes(1, 256) == "ok");
  CHECK(lanes(256, 1) == "ok");
  CHECK(lanes(17, 16) == "some: 17 x 16 lanes, the device takes at most 256");
  CHECK(lanes(1, 257) == "some: 1 x 257 lanes, the device takes at most 256");
  CHECK(lanes(257, 1) == "some: 257 x 1 lanes, the device takes at most 256");
  CHECK(lanes(0, 16) == "some: 0 x 16 lanes, the device takes at most 256");
  CHECK(lanes(16, 0) == "some: 16 x 0 lanes, the device takes at most 256");
  device.max_workgroup_lanes = 255;
  CHECK(lanes(255, 1) == "ok");
  CHECK(lanes(16, 16) == "some: 16 x 16 lanes, the device takes at most 255");
}

TEST_CASE("limits: only the round that reaches beyond the count is under a condition") {
  CHECK(within_count(0, 32, 32) == "");
  CHECK(within_count(64, 32, 96) == "");
  CHECK(within_count(64, 32, 95) == "if (lane + 64 < 95) ");
  CHECK(within_count(0, 32, 31) == "if (lane + 0 < 31) ");
}

TEST_CASE("limits: a pass of few lanes has smaller workgroups on a host, a vector at the least") {
  DeviceInfo device = sample_device();
  const struct {
    std::uint32_t simd;
    std::uint64_t lanes;
    std::uint32_t workgroup;
  } rows[] = {{0, 1, 8},     {0, 255, 8},   {4, 15, 8},    {8, 256, 16}, {8, 511, 16},  {8, 512, 32},
              {8, 1023, 32}, {8, 1024, 64}, {8, 4096, 64}, {9, 1, 16},   {16, 256, 16}, {16, 1, 16},
              {64, 1, 64},   {65, 1, 64},   {128, 1, 64},  {8, 0, 8},    {32, 512, 32}};
  for (const auto& row : rows) {
    CAPTURE(row.simd, row.lanes);
    device.kind = DeviceKind::software, device.simd_lanes = row.simd;
    CHECK(workgroup_for_few(row.lanes, device) == row.workgroup);
    device.kind = DeviceKind::gpu;
    CHECK(workgroup_for_few(row.lanes, device) == 64);
  }
}

TEST_CASE("limits: the number of a folded tile stays within 32 bits") {
  const DeviceInfo device = single_lane_device();
  const auto most = map_lanes({65536, 32768, 1}, device);  // 2^31 tiles
  REQUIRE(most.has_value());
  CHECK(most->folded);
  CHECK(most->grid == LaneMap::Triple{65535, 32769, 1});
  const auto beyond = map_lanes({65536, 32769, 1}, device);
  REQUIRE_FALSE(beyond.has_value());
  CHECK(beyond.error().code == StatusCode::unsupported);
  CHECK(beyond.error().message ==
        "device opengl:0: grid needs 65536 x 32769 x 1 workgroups, expected at most 65535 x 65535 x 65535");
  CHECK(map_lanes({65536, 16384, 2}, device).has_value());
  CHECK_FALSE(map_lanes({65536, 16385, 2}, device).has_value());
  // 2^64 tiles, which 64 bits do not hold.
  CHECK_FALSE(map_lanes({1u << 30, 1u << 30, 16}, device).has_value());
}

TEST_CASE("limits: a grid that fits is not folded, and one that is larger along one axis is") {
  DeviceInfo device = single_lane_device();
  device.max_grid = {10, 10, 10};
  const auto box = [&](std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    const auto map = map_lanes({x, y, z}, device);
    REQUIRE(map.has_value());
    return *map;
  };
  CHECK_FALSE(box(10, 10, 10).folded);
  CHECK(box(10, 10, 10).grid == LaneMap::Triple{10, 10, 10});
  CHECK(box(11, 1, 1).grid == LaneMap::Triple{6, 2, 1});
  CHECK(box(1, 11, 1).grid == LaneMap::Triple{6, 2, 1});
  CHECK(box(1, 1, 11).grid == LaneMap::Triple{6, 2, 1});
  CHECK(box(1, 1, 11).folded);
  CHECK(box(50, 20, 1).grid == LaneMap::Triple{10, 10, 10});
  CHECK_FALSE(map_lanes({77, 13, 1}, device).has_value());  // 1001
}

TEST_CASE("limits: a lane returns where the last workgroup of its row, or of its column, reaches beyond the box") {
  DeviceInfo device = sample_device();
  KernelWriter writer(Dialect::glsl, "");
  const auto decoding = [&](const LaneMap::Triple& most, const LaneMap::Triple& box) {
    device.max_workgroup = most;
    const auto map = map_lanes(box, device);
    REQUIRE(map.has_value());
    return map->decoding(writer);
  };
  const std::string places =
      "  int column = int(gl_GlobalInvocationID.x);\n"
      "  int row = int(gl_GlobalInvocationID.y);\n"
      "  int layer = int(gl_GlobalInvocationID.z);\n";
  CHECK(decoding({1, 1, 1}, {3, 3, 1}) == places);
  CHECK(decoding({2, 1, 1}, {4, 3, 1}) == places);
  CHECK(decoding({2, 1, 1}, {3, 3, 1}) == places + "  if (column >= 3) return;\n");
  CHECK(decoding({1, 2, 1}, {3, 4, 1}) == places);
  CHECK(decoding({1, 2, 1}, {3, 5, 1}) == places + "  if (row >= 5) return;\n");
  CHECK(decoding({2, 2, 1}, {3, 5, 1}) == places + "  if (column >= 3) return;\n  if (row >= 5) return;\n");
}

TEST_CASE("limits: a text for any shape checks its columns, unless a workgroup is one lane") {
  DeviceInfo device = sample_device();
  const auto decoding = [&](std::uint32_t most) {
    device.max_workgroup = {most, 1024, 1};
    std::vector<NumberTable> tables;
    const Form form(Dialect::glsl, &tables);
    const auto map = map_lanes({8, 5, 1}, device, form);
    REQUIRE(map.has_value());
    CHECK(map->workgroup == LaneMap::Triple{most, 1, 1});
    KernelWriter writer(form, "");
    return map->decoding(writer);
  };
  CHECK_THAT(decoding(2), Catch::EndsWith("  if (column >= n_columns) return;\n"));
  CHECK_THAT(decoding(1), !Catch::Contains("return"));
}

}  // namespace kiln::dynamic_shaders
