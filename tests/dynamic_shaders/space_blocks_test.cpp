#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/sample_specs.hpp"
#include "dynamic_shaders/space/variant_space.hpp"

// Which blocks, workgroups and forms of direct/blocked a space has.
namespace kiln::dynamic_shaders {
namespace {

// One lane a workgroup, and no views: few points for a block, so that no space of a small layer is cut short.
DeviceInfo narrow_device() {
  DeviceInfo device = viewing_device();
  device.max_texel_bindings = device.max_image_bindings = 0;
  device.max_workgroup = {1, 1, 1}, device.max_workgroup_lanes = 1;
  return device;
}

// Three taps in a row, for a result of this size.
Conv2dSpec row_kernel(std::int64_t width, std::int64_t height, std::int64_t filters = 4) {
  Conv2dSpec spec;
  spec.c = 8, spec.k = filters;
  spec.r = 1, spec.s = 3;
  spec.h = height, spec.w = width + 2;
  return spec;
}

// Of direct/blocked, in the whole space.
std::vector<Blocking> blockings_of(const Conv2dSpec& spec, const DeviceInfo& device) {
  const std::string family = "direct/blocked:";
  const std::vector<Candidate> space = conv_space(spec, device);
  CHECK(space.size() < most_candidates);
  std::vector<Blocking> blockings;
  for (const Candidate& candidate : space) {
    if (!candidate.variant.starts_with(family)) continue;
    const auto blocking = blocking_of(candidate.variant.substr(family.size()));
    REQUIRE(blocking.has_value());
    blockings.push_back(*blocking);
  }
  return blockings;
}

}  // namespace

TEST_CASE("space: the blocks of a plane are not much larger than it, nor small on a large one, nor uneven") {
  struct Plane {
    std::int64_t width, height;
    std::string blocks;  // "1: 4 7, 2: 4": by their heights, the widths
  };
  const std::vector<Plane> planes = {
      {9, 1, "1: 4 7 8 12 14"},                            // less than 12 + 4 wide
      {29, 1, "1: 4 7 8 12 14 16 20 24 28 32"},            // 32 + 4
      {6, 3, "1: 1 2 4 6 7, 2: 1 2 4 6 7, 3: 1 2 4 6 7"},  // at most one wider than the plane, none higher
      {8, 8, "1: 1 2 4 6 7 8, 2: 1 2 4 6 7 8, 3: 1 2 4 6 7 8, 4: 1 2 4 6 7 8, 5: 1 2 4 6 7 8, 7: 1 2 4 6 7 8"},
      // With a side of nine, eight outputs at the least.
      {9, 7, "1: 8, 2: 4 6 7 8, 3: 4 6 7 8, 4: 2 4 6 7 8, 5: 2 4 6 7 8, 7: 2 4 6 7 8"},
      {7, 9, "1: 8, 2: 4 6 7 8, 3: 4 6 7 8, 4: 2 4 6 7 8, 5: 2 4 6 7 8, 7: 2 4 6 7 8"},
      {13, 5, "1: 8 14, 5: 2 4 7 8"},  // 65 outputs: at most a quarter more are computed
      // Five rows make 15 of 12, which is a quarter more, and leave no room for columns in excess.
      {16, 12, "1: 8 16, 2: 4 6 8 16, 3: 4 6 8 16, 4: 2 4 6 8, 5: 2 4 8, 7: 2 4 8"},
      {28, 28,  // 56 outputs at the most: 8 of 7, 14 of 4, 28 of 2
       "1: 8 14 16 28, 2: 4 6 7 8 14 16 28, 3: 4 6 7 8 14 16, 4: 2 4 6 7 8 14, 5: 2 4 6 7 8, 7: 2 4 6 7 8"},
  };
  for (const Plane& plane : planes) {
    CAPTURE(plane.width, plane.height);
    std::map<std::int64_t, std::set<std::int64_t>> widths;
    for (const Blocking& blocking : blockings_of(row_kernel(plane.width, plane.height), narrow_device())) {
      widths[blocking.y].insert(blocking.x);
    }
    std::string blocks;
    for (const auto& [height, all] : widths) {
      blocks += (blocks.empty() ? "" : ", ") + std::to_string(height) + ":";
      for (const std::int64_t width : all) blocks += " " + std::to_string(width);
    }
    CHECK(blocks == plane.blocks);
  }
}

TEST_CASE("space: a workgroup over channels is no larger than they need, one over places has 16 or 64 lanes") {
  struct Sizes {
    std::int64_t filters, k;
    std::vector<std::int64_t> workgroups;
  };
  const std::vector<Sizes> all = {
      {4, 4, {1}},
      {4, 8, {1}},
      {32, 4, {8}},
      {32, 8, {4}},
      {36, 4, {8, 9}},
      {36, 8, {5}},
      {72, 4, {8, 16, 18}},
      {256, 4, {8, 16, 32, 64}},
      {256, 8, {8, 16, 32}},
      {260, 4, {8, 16, 32, 64}},
      {260, 8, {8, 16, 32, 33}},
  };
  DeviceInfo device = viewing_device();
  device.max_texel_bindings = device.max_image_bindings = 0;
  for (const Sizes& sizes : all) {
    CAPTURE(sizes.filters, sizes.k);
    std::vector<std::int64_t> over_channels, over_places;
    for (const Blocking& blocking : blockings_of(row_kernel(1, 1, sizes.filters), device)) {
      if (blocking.k != sizes.k || blocking.x != 4 || blocking.packing != Packing::channels) continue;
      CHECK(blocking.lanes != Lanes::groups);
      (blocking.lanes == Lanes::channels ? over_channels : over_places).push_back(blocking.workgroup);
    }
    std::sort(over_channels.begin(), over_channels.end());
    std::sort(over_places.begin(), over_places.end());
    CHECK(over_channels == sizes.workgroups);
    CHECK(over_places == std::vector<std::int64_t>{16, 64});
  }
}

TEST_CASE("space: what a block may be follows from the kernel and its border") {
  struct Kernel {
    std::int64_t r, s, pad_y, pad_x;
    std::set<std::int64_t> channels;
    std::string forms;
  };
  const std::string padded = "looped padded, unrolled padded";
  const std::string either = "looped guarded, looped padded, unrolled guarded, unrolled padded";
  const std::vector<Kernel> kernels = {
      {3, 3, 0, 0, {4, 8}, padded},     {3, 3, 1, 0, {4, 8}, either},          {3, 3, 0, 1, {4, 8}, either},
      {1, 1, 0, 0, {4, 8, 16}, padded}, {1, 3, 0, 0, {4, 8}, "looped padded"}, {3, 1, 0, 0, {4, 8}, padded},
  };
  for (const Kernel& kernel : kernels) {
    CAPTURE(kernel.r, kernel.s, kernel.pad_y, kernel.pad_x);
    Conv2dSpec spec;
    spec.c = 8, spec.k = 4, spec.h = spec.w = 6;
    spec.r = kernel.r, spec.s = kernel.s, spec.pad_y = kernel.pad_y, spec.pad_x = kernel.pad_x;
    std::set<std::int64_t> channels;
    std::set<std::string> forms;
    for (const Blocking& blocking : blockings_of(spec, narrow_device())) {
      channels.insert(blocking.k);
      forms.insert(std::string(blocking.rows == Rows::unrolled ? "unrolled " : "looped ") +
                   (blocking.border == Border::guarded ? "guarded" : "padded"));
    }
    CHECK(channels == kernel.channels);
    std::string text;
    for (const std::string& form : forms) text += (text.empty() ? "" : ", ") + form;
    CHECK(text == kernel.forms);
  }
}

}  // namespace kiln::dynamic_shaders
