// Which points of a small product a space has, and of which variants the model says nothing.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/families/gemm.hpp"
#include "dynamic_shaders/space/variant_space.hpp"
#include "dynamic_shaders/space_samples.hpp"

namespace kiln::dynamic_shaders {
namespace {

DeviceInfo viewless_sharing_device() {
  DeviceInfo device = sharing_device();
  device.max_texel_bindings = device.max_image_bindings = 0;
  return device;
}

// Of the space of a product, those of a family, by what stands behind its name.
std::set<std::string> points_of(const std::string& family, std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmSpec spec;
  spec.m = m, spec.n = n, spec.k = k;
  std::set<std::string> points;
  for (const Candidate& each : gemm_space(spec, viewless_sharing_device())) {
    if (each.variant.starts_with(family)) points.insert(each.variant.substr(family.size()));
  }
  return points;
}

using Points = std::set<std::string>;

}  // namespace

TEST_CASE("space: tiles through shared memory reach less than twice as far as the product") {
  const std::string shared = "gemm/shared:";
  const Points narrow = {"rows=4,columns=2,lanes_r=4,lanes_c=16,depth=8"};
  const Points deep = {"rows=4,columns=2,lanes_r=4,lanes_c=16,depth=8",
                       "rows=4,columns=2,lanes_r=4,lanes_c=16,depth=16"};
  CHECK(points_of(shared, 9, 17, 5) == narrow);  // 16 rows, 32 columns, 8 depths
  CHECK(points_of(shared, 9, 17, 8) == narrow);
  CHECK(points_of(shared, 9, 17, 9) == deep);
  CHECK(points_of(shared, 9, 17, 4).empty());
  CHECK(points_of(shared, 9, 16, 9).empty());
  CHECK(points_of(shared, 8, 17, 9).empty());
  CHECK(points_of(shared, 17, 17, 8) ==
        Points{"rows=4,columns=2,lanes_r=4,lanes_c=16,depth=8", "rows=8,columns=2,lanes_r=4,lanes_c=16,depth=8",
               "rows=4,columns=2,lanes_r=8,lanes_c=8,depth=8", "rows=4,columns=4,lanes_r=8,lanes_c=8,depth=8"});
  CHECK(points_of(shared, 33, 17, 8).contains("rows=4,columns=2,lanes_r=16,lanes_c=16,depth=8"));
  CHECK_FALSE(points_of(shared, 32, 17, 8).contains("rows=4,columns=2,lanes_r=16,lanes_c=16,depth=8"));
}

TEST_CASE("space: rows of a block are no more than the product's, of each of these numbers") {
  const auto rows_of = [](std::int64_t m) {
    std::string found;
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32}) {
      const std::string point = "rows=" + std::to_string(rows) + ",quads=1,view=storage,workgroup=8";
      if (points_of("gemm/blocked:", m, 4, 4).contains(point)) found += std::to_string(rows) + " ";
    }
    return found;
  };
  CHECK(rows_of(1) == "1 ");
  CHECK(rows_of(5) == "1 2 4 ");
  CHECK(rows_of(6) == "1 2 4 6 ");
  CHECK(rows_of(23) == "1 2 4 6 8 12 16 ");
  CHECK(rows_of(24) == "1 2 4 6 8 12 16 24 ");
  CHECK(rows_of(100) == "1 2 4 6 8 12 16 24 ");
}

TEST_CASE("space: a workgroup of more than eight lanes reaches less than twice as far as the product's columns") {
  const auto blocks = [](std::int64_t n) {
    const std::string family = "gemm/blocked:rows=1,quads=";
    std::string found;
    for (const std::string& point : points_of(family, 1, n, 4)) {
      found += point.substr(0, 1) + "x" + point.substr(point.rfind('=') + 1) + " ";
    }
    return found;
  };
  CHECK(blocks(4) == "1x8 2x8 4x8 ");
  CHECK(blocks(32) == "1x8 2x8 4x8 ");  // 8 quads
  CHECK(blocks(33) == "1x16 1x8 2x8 4x8 ");
  CHECK(blocks(64) == "1x16 1x8 2x8 4x8 ");
  CHECK(blocks(65) == "1x16 1x32 1x8 2x16 2x8 4x8 ");
  CHECK(blocks(132) == "1x16 1x32 1x64 1x8 2x16 2x32 2x8 4x16 4x8 ");
}

TEST_CASE("space: a large block has 256 outputs, and not more") {
  const Points points = points_of("gemm/blocked:", 64, 64, 64);
  CHECK(points.contains("rows=16,quads=4,view=storage,workgroup=8"));
  CHECK(points.contains("rows=24,quads=2,view=storage,workgroup=8"));
  CHECK_FALSE(points.contains("rows=24,quads=4,view=storage,workgroup=8"));
}

TEST_CASE("space: products of transformed tiles are points where the tiles of the outputs fit too") {
  Conv2dSpec spec = resnet_layer();
  spec.accuracy = Accuracy::winograd;
  spec.k = 128;  // outputs of 225792 texels in tiles of 4 and of 401408 in tiles of 2, inputs of half of that
  DeviceInfo device = viewing_device();
  const auto views = [&](const std::string& family) {
    std::set<std::string> found;
    for (const Candidate& each : conv_space(spec, device)) {
      if (!each.variant.starts_with(family)) continue;
      const auto blocking = blocking_of(each.variant.substr(family.size()));
      REQUIRE(blocking.has_value());
      CHECK(blocking->packing == Packing::plane);
      found.insert(std::string(to_string(blocking->view)));
    }
    return found;
  };
  device.max_view_texels = 225792;
  CHECK(views("winograd/f4:").contains("texels"));
  CHECK(views("winograd/f2:") == std::set<std::string>{"storage"});
  device.max_view_texels = 225791;
  CHECK(views("winograd/f4:") == std::set<std::string>{"storage"});
}

TEST_CASE("space: the model says nothing of a block that does not fit, nor of a spec with too many tensors") {
  const Conv2dSpec spec = resnet_layer();
  DeviceInfo device = viewing_device();
  Blocking good = good_blocking(), odd = good_blocking();
  odd.x = 7;  // no multiple of four pixels
  CHECK(predicted_run(spec, device, "direct/blocked:" + to_text(good)).has_value());
  CHECK_FALSE(predicted_run(spec, device, "direct/blocked:" + to_text(odd)).has_value());
  Conv2dSpec biased = spec;
  biased.bias = Bias::per_channel;
  device.max_bindings = 4;
  CHECK(predicted_run(biased, device, "direct/blocked:" + to_text(good)).has_value());
  device.max_bindings = 3;
  CHECK_FALSE(predicted_run(biased, device, "direct/blocked:" + to_text(good)).has_value());
  CHECK(predicted_run(biased, device, "direct/plain").has_value());
  CHECK(predicted_run(spec, device, "direct/blocked:" + to_text(good)).has_value());
  Conv2dSpec tiled = spec;
  tiled.accuracy = Accuracy::winograd, tiled.k = 128;
  const std::string quarter =
      "winograd/f4:lanes=channels,k=8,x=12,y=1,packing=plane,view=texels,rows=looped,border=padded,workgroup=8";
  device = viewing_device();
  device.max_view_texels = 225792;
  CHECK(predicted_run(tiled, device, quarter).has_value());
  device.max_view_texels = 225791;
  CHECK_FALSE(predicted_run(tiled, device, quarter).has_value());
  const Conv2dSpec separate = layer(8, 8, 3, 1, 8);
  device = viewing_device();
  device.max_texel_bindings = 0;
  CHECK(predicted_run(separate, device, "depthwise/blocked:x=4,y=2,view=storage").has_value());
  CHECK_FALSE(predicted_run(separate, device, "depthwise/blocked:x=4,y=2,view=texels").has_value());
}

TEST_CASE("space: only a kernel of one tap takes four steps a round") {
  const auto round_steps = [](std::int64_t r, std::int64_t s, Rows rows) {
    Conv2dSpec spec = layer(8, 8, 1);
    spec.r = r, spec.s = s;
    Blocking blocking = good_blocking();
    blocking.rows = rows;
    return extents_of(shape_of(spec), blocking).round_steps;
  };
  CHECK(round_steps(1, 1, Rows::unrolled) == 4);
  CHECK(round_steps(1, 1, Rows::looped) == 1);
  CHECK(round_steps(1, 3, Rows::unrolled) == 1);
  CHECK(round_steps(3, 1, Rows::unrolled) == 1);
  CHECK(round_steps(3, 3, Rows::unrolled) == 1);
}

TEST_CASE("space: outputs are stored by fours where rows, or whole blocks of rows, are a multiple of four") {
  const auto wide = [](std::int64_t out_w, std::int64_t out_h, std::int64_t x, std::int64_t y) {
    Conv2dSpec spec = layer(8, 1, 3);
    spec.h = out_h, spec.w = out_w;
    const Blocking blocking{Lanes::channels, 4, x, y, Packing::channels, View::storage, Rows::looped,
                            Border::padded,  8};
    return extents_of(shape_of(spec), blocking).wide_stores;
  };
  CHECK(wide(8, 3, 4, 1));
  CHECK_FALSE(wide(8, 3, 6, 2));
  CHECK_FALSE(wide(6, 3, 4, 2));
  CHECK(wide(6, 4, 6, 2));        // 12 outputs of 24
  CHECK_FALSE(wide(6, 4, 6, 1));  // 6
  CHECK_FALSE(wide(6, 4, 7, 4));  // wider than a row
  CHECK_FALSE(wide(6, 3, 6, 2));  // the last rows are no block
  CHECK_FALSE(wide(6, 5, 6, 5));  // 30
  CHECK(wide(7, 4, 7, 4));
  CHECK_FALSE(wide(7, 6, 7, 2));  // 42 outputs a plane
}

}  // namespace kiln::dynamic_shaders
