// Choices of the families: their ids and texts, read back and refused, and their limits.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/depthwise.hpp"
#include "dynamic_shaders/families/gemm.hpp"
#include "dynamic_shaders/families/implicit.hpp"
#include "dynamic_shaders/families/winograd.hpp"
#include "dynamic_shaders/space/variant_space.hpp"
#include "dynamic_shaders/space_samples.hpp"

namespace kiln::dynamic_shaders {

TEST_CASE("space: a blocking is read back from its text, and nothing else is") {
  const std::string text = to_text(good_blocking());
  CHECK(text == "lanes=channels,k=4,x=8,y=4,packing=pixels,view=texels,rows=unrolled,border=padded,workgroup=16");
  CHECK(blocking_of(text) == good_blocking());
  for (const std::string& bad : {std::string(), text + ",", text + ",z=1", text.substr(1),
                                 "lanes=channels,k=04" + text.substr(18), "lanes=channels,k=4,x=08" + text.substr(22),
                                 text.substr(0, text.size() - 2) + "x", std::string("lanes=warps") + text.substr(14)}) {
    INFO(bad);
    CHECK_FALSE(blocking_of(bad).has_value());
  }
}

TEST_CASE("space: a depthwise choice is read back from its id, and nothing else is") {
  for (const char* good : {"depthwise/planes:planes=4,view=texels", "depthwise/bands:rows=2,view=storage",
                           "depthwise/blocked:x=8,y=4,view=image"}) {
    INFO(good);
    const auto choice = depthwise_of(good);
    REQUIRE(choice.has_value());
    CHECK(depthwise_variant(*choice) == good);
  }
  for (const char* bad : {"depthwise/planes:planes=04,view=texels", "depthwise/bands:rows=02,view=texels",
                          "depthwise/bands:rows=0,view=texels", "depthwise/blocked:x=8,y=04,view=image",
                          "depthwise/blocked:x=8,y=4,view=invalid", "depthwise/blocked:x=8,y=4"}) {
    INFO(bad);
    CHECK_FALSE(depthwise_of(bad).has_value());
  }
  std::set<std::string> kinds;
  for (const Depthwise& choice : depthwise_space(layer(64, 56, 3, 1, 64), viewing_device())) {
    INFO(depthwise_variant(choice));
    CHECK(depthwise_of(depthwise_variant(choice)) == choice);
    kinds.insert(family_of(depthwise_variant(choice)));
  }
  for (const Depthwise& choice : depthwise_space(layer(64, 8, 3, 1, 64), viewing_device())) {
    INFO(depthwise_variant(choice));
    CHECK(depthwise_of(depthwise_variant(choice)) == choice);
    kinds.insert(family_of(depthwise_variant(choice)));
  }
  CHECK(kinds == std::set<std::string>{"depthwise/bands", "depthwise/blocked", "depthwise/planes"});
}

TEST_CASE("space: an implicit product's tile is read back from its text, and what does not hold is said") {
  DeviceInfo device = viewing_device();
  device.max_shared_bytes = 16384;
  const ImplicitTile good{Staging::shared, 8, 4, 8, 16, 8};
  const std::string text = implicit_variant(good);
  CHECK(text == "implicit/shared:k=8,pixels=4,lanes_k=8,lanes_p=16,depth=8");
  CHECK(implicit_of(text) == good);
  for (const std::string& bad :
       {std::string("implicit/shared:"), text + ",", text + "0x", text.substr(1),
        std::string("implicit/shared:k=08") + text.substr(19), std::string("implicit/lds") + text.substr(15)}) {
    INFO(bad);
    CHECK_FALSE(implicit_of(bad).has_value());
  }
  CHECK(shared_bytes(good) == 8 * (64 + 64) * 4);
  const auto why = [&](auto change) {
    ImplicitTile tile = good;
    change(tile);
    const Status status = check(resnet_layer(), tile, device);
    CHECK(status.code == StatusCode::unsupported);
    return status.message;
  };
  CHECK(check(resnet_layer(), good, device).ok());
  DeviceInfo narrow_grid = device;
  narrow_grid.max_grid = {48, 65535, 65535};  // 3136 pixels, 64 a workgroup
  CHECK_THAT(check(resnet_layer(), good, narrow_grid).message, Catch::Contains("grid[0] = 49"));
  CHECK_THAT(why([](ImplicitTile& t) { t.k = 6; }), Catch::Contains("k = 6"));
  CHECK_THAT(why([](ImplicitTile& t) { t.depth = 32, t.pixels = 16; }),
             Catch::Contains("bytes of shared memory, the device has at most 16384"));
  CHECK_THAT(why([](ImplicitTile& t) { t.lanes_k = 100; }), Catch::Contains("100 x 16 lanes"));
  CHECK_THAT(why([](ImplicitTile& t) { t.k = 16, t.pixels = 16, t.depth = 33; }), Catch::Contains("depth"));
  Conv2dSpec deep = resnet_layer();
  deep.c = 60000;
  CHECK(check(deep, good, device).message.find("rounds of its loops") != std::string::npos);
  // 9 taps, 64 channels and 16 quads of filters: 9216 texels.
  DeviceInfo small_buffers = device;
  small_buffers.max_buffer_bytes = 147456;
  CHECK(check(resnet_layer(), good, small_buffers).ok());
  small_buffers.max_buffer_bytes = 147455;
  CHECK_THAT(check(resnet_layer(), good, small_buffers).message,
             Catch::Contains("147456 bytes, the device's buffers have at most 147455"));
  deep.c = deep.k = 20000;
  CHECK_THAT(check(deep, good, device).message, Catch::Contains("901440000 texels, an index reaches 536870911"));
}

TEST_CASE("space: what does not hold of a product of transformed tiles is said") {
  Conv2dSpec spec = resnet_layer();
  spec.k = 128;
  spec.accuracy = Accuracy::winograd;
  const WinogradShape shape = winograd_shape(spec, 4).value();
  CHECK(shape.t == 6);
  CHECK(shape.tiles_x == 14);
  CHECK(shape.tiles_y == 14);
  CHECK(shape.quads == 49);
  const Blocking viewed{Lanes::channels, 8, 12, 1, Packing::plane, View::texels, Rows::looped, Border::padded, 8};
  Blocking stored = viewed, pixels = viewed, large = viewed;
  stored.view = View::storage;
  pixels.packing = Packing::pixels;
  large.workgroup = 2000;
  DeviceInfo device = viewing_device();
  CHECK(check_winograd(spec, shape, viewed, device).ok());
  CHECK(check_winograd(spec, shape, stored, device).ok());
  CHECK(check_winograd(spec, shape, pixels, device).message == "winograd: packing must be plane");
  CHECK_THAT(check_winograd(spec, shape, large, device).message, Catch::Contains("workgroup must be 1 to 1024"));
  // 36 points of 128 channels, 49 quads each.
  device.max_view_texels = 225792;
  CHECK(check_winograd(spec, shape, viewed, device).ok());
  device.max_view_texels = 225791;
  const Status many = check_winograd(spec, shape, viewed, device);
  CHECK(many.code == StatusCode::unsupported);
  CHECK(many.message == "winograd: 225792 texels of transformed tiles, expected at most 225791 on device opengl:0");
  CHECK(check_winograd(spec, shape, stored, device).ok());
  device.max_buffer_bytes = 225792 * 16;
  CHECK(check_winograd(spec, shape, stored, device).ok());
  device.max_buffer_bytes = 225792 * 16 - 1;
  CHECK(check_winograd(spec, shape, stored, device).message ==
        "winograd: 225792 texels of transformed tiles, expected at most 225791 on device opengl:0");
  spec.k = 32;  // the inputs are more than the outputs now
  CHECK(check_winograd(spec, winograd_shape(spec, 4).value(), stored, device).ok());
  device.max_buffer_bytes = 112895 * 16;
  CHECK_FALSE(check_winograd(spec, winograd_shape(spec, 4).value(), stored, device).ok());
}

TEST_CASE("space: winograd is for kernels of three by three that allow its error, and nothing else") {
  Conv2dSpec allowed = resnet_layer();
  allowed.accuracy = Accuracy::winograd;
  REQUIRE(winograd_shape(allowed, 2).has_value());
  CHECK(winograd_shape(allowed, 2)->t == 4);
  CHECK(winograd_shape(allowed, 2)->quads == 196);
  std::vector<Conv2dSpec> others(8, allowed);
  others[0].accuracy = Accuracy::direct;
  others[1].r = 5, others[2].s = 1;
  others[3].stride_y = 2, others[4].stride_x = 2;
  others[5].dilation_y = 2, others[6].dilation_x = 2;
  others[7].groups = 2;
  for (const Conv2dSpec& spec : others) {
    INFO(canonical_text(KernelSpec(spec)));
    CHECK_FALSE(winograd_shape(spec, 2).has_value());
  }
}

TEST_CASE("space: what does not hold is said") {
  const DeviceInfo device = viewing_device();
  const ConvShape shape = shape_of(resnet_layer());
  const auto why = [&](auto change) {
    Blocking b = good_blocking();
    change(b);
    const Status status = check(shape, b, device);
    CHECK(status.code == StatusCode::unsupported);
    return status.message;
  };
  CHECK(check(shape, good_blocking(), device).ok());
  CHECK_THAT(why([](Blocking& b) { b.k = 6; }), Catch::Contains("k = 6"));
  CHECK_THAT(why([](Blocking& b) { b.x = 7; }), Catch::Contains("multiple of four pixels"));
  CHECK_THAT(why([](Blocking& b) { b.packing = Packing::plane; }), Catch::Contains("1x1"));
  CHECK_THAT(why([](Blocking& b) { b.border = Border::guarded; }), Catch::Contains("packing channels"));
  CHECK_THAT(why([](Blocking& b) { b.k = 16, b.x = 16; }), Catch::Contains("1024 outputs a lane, at most 256"));
  for (const std::int64_t k : {-4, 0, 20}) {
    CHECK_THAT(why([k](Blocking& b) { b.k = k; }), Catch::Contains("k = " + std::to_string(k) + ", expected 4, 8, 12"));
  }
  for (const std::int64_t extent : {0, 65}) {
    CHECK_THAT(why([extent](Blocking& b) { b.x = extent; }), Catch::Contains("x and y must be 1 to 64"));
    CHECK_THAT(why([extent](Blocking& b) { b.y = extent; }), Catch::Contains("x and y must be 1 to 64"));
  }
  CHECK_THAT(why([](Blocking& b) { b.x = 13, b.y = 5; }), Catch::Contains("260 outputs a lane, at most 256"));
  for (const std::int64_t lanes : {0, 1025}) {
    CHECK_THAT(why([lanes](Blocking& b) { b.workgroup = lanes; }), Catch::Contains("workgroup must be 1 to 1024"));
  }
  // 9 taps of 4 channels for each of 256 outputs; a looped kernel unrolls one row of them.
  Blocking most = good_blocking();
  most.k = 8, most.packing = Packing::channels;
  CHECK_THAT(check(shape, most, device).message, Catch::Contains("9216 terms unrolled, at most 8192"));
  most.rows = Rows::looped;
  CHECK(check(shape, most, device).ok());
  most.workgroup = 1024;
  CHECK(check(shape, most, device).ok());
  // A workgroup of 16 lanes, on devices that take just these, and one fewer.
  DeviceInfo small = device;
  small.max_workgroup_lanes = small.max_workgroup[0] = 16;
  CHECK(check(shape, good_blocking(), small).ok());
  small.max_workgroup_lanes = 15;
  CHECK_THAT(check(shape, good_blocking(), small).message, Catch::Contains("16 lanes, the device takes at most 15"));
  small.max_workgroup_lanes = 16, small.max_workgroup[0] = 15;
  CHECK_THAT(check(shape, good_blocking(), small).message, Catch::Contains("16 lanes, the device takes at most 15"));
}

TEST_CASE("space: extents of a blocking, packed and launched") {
  const BlockedExtents pixels = extents_of(shape_of(resnet_layer()), good_blocking());
  CHECK(pixels.blocks_x == 7);
  CHECK(pixels.blocks_y == 14);
  CHECK(pixels.k_lanes == 16);
  CHECK(pixels.steps == 64);
  CHECK(pixels.step_c == 1);
  CHECK(pixels.round_steps == 1);
  CHECK(pixels.packed_h == 58);
  CHECK(pixels.packed_w == 15);
  CHECK(pixels.activation_texels == 64 * 58 * 15);
  CHECK(pixels.weight_texels == 64 * 9 * 16);
  CHECK(pixels.grid == Triple{98, 1, 1});
  CHECK(pixels.activation_box == Triple{58 * 15, 64, 1});
  CHECK(pixels.weight_box == Triple{16, 64 * 9, 1});
  CHECK(pixels.wide_stores);

  Conv2dSpec halved = layer(24, 6, 3, 2, 2);
  halved.n = 5;
  const Blocking by_places{Lanes::places, 8, 3, 2, Packing::channels, View::storage, Rows::looped, Border::guarded, 16};
  const BlockedExtents guarded = extents_of(shape_of(halved), by_places);
  CHECK(guarded.blocks_x == 1);
  CHECK(guarded.blocks_y == 2);
  CHECK(guarded.k_lanes == 2);  // 12 channels a group
  CHECK(guarded.steps == 3);
  CHECK(guarded.step_c == 4);
  CHECK(guarded.packed_h == 6);
  CHECK(guarded.packed_w == 6);
  CHECK(guarded.activation_texels == 2 * 3 * 36);
  CHECK(guarded.weight_texels == 2 * 3 * 4 * 9 * 2 * 2);
  CHECK(guarded.grid == Triple{1, 4, 5});
  CHECK(guarded.activation_box == Triple{36, 2 * 3, 5});
  CHECK(guarded.weight_box == Triple{4, 3 * 4 * 9, 2});
  CHECK_FALSE(guarded.wide_stores);

  const Blocking in_rounds{Lanes::channels, 4, 4, 1, Packing::plane, View::storage, Rows::unrolled, Border::padded, 8};
  const BlockedExtents plane = extents_of(shape_of(layer(8, 6, 1)), in_rounds);
  CHECK(plane.blocks_x == 9);
  CHECK(plane.blocks_y == 1);
  CHECK(plane.k_lanes == 8);  // 2 needed
  CHECK(plane.steps == 8);
  CHECK(plane.round_steps == 4);
  CHECK(plane.packed_h == 1);
  CHECK(plane.packed_w == 9);
  CHECK(plane.activation_texels == 8 * 9);
  CHECK(plane.weight_texels == 8 * 8);
  CHECK(plane.grid == Triple{9, 1, 1});
  CHECK(plane.weight_box == Triple{8, 8, 1});
  CHECK(plane.wide_stores);
}

TEST_CASE("space: limits of a depthwise choice") {
  const DeviceInfo device = viewing_device();
  const auto plane = [](std::int64_t h, std::int64_t w) {
    Conv2dSpec spec = layer(8, h, 3, 1, 8);
    spec.w = w;
    return spec;
  };
  const auto tall = [](std::int64_t h, std::int64_t w, std::int64_t taps) {  // a kernel of one column, no border
    Conv2dSpec spec = layer(8, h, 1, 1, 8);
    spec.w = w, spec.r = taps;
    return spec;
  };
  const auto fits = [&](const Conv2dSpec& spec, Depthwise choice) {
    choice.view = View::storage;
    return check(spec, choice, device).text();
  };
  const auto whole = [](std::int64_t planes) { return Depthwise{planes, 0, 0, 0, View::invalid}; };
  const auto band = [](std::int64_t rows) { return Depthwise{0, rows, 0, 0, View::invalid}; };
  const auto block = [](std::int64_t x, std::int64_t y) { return Depthwise{0, 0, x, y, View::invalid}; };

  Conv2dSpec doubled = plane(4, 4);
  doubled.k = 16;
  CHECK_THAT(fits(doubled, whole(1)), Catch::Contains("one output channel for each input channel"));

  CHECK(fits(plane(4, 4), whole(8)) == "ok");
  CHECK_THAT(fits(plane(4, 4), whole(3)), Catch::Contains("planes must divide the channels"));
  Conv2dSpec many = layer(16, 4, 3, 1, 16);
  CHECK_THAT(fits(many, whole(16)), Catch::Contains("planes must divide the channels"));
  CHECK(fits(plane(5, 5), whole(4)) == "ok");
  CHECK_THAT(fits(plane(5, 5), whole(2)), Catch::Contains("must be whole texels"));
  CHECK(fits(plane(16, 16), whole(1)) == "ok");  // 256 outputs
  CHECK_THAT(fits(plane(16, 17), whole(1)), Catch::Contains("planes too large to be unrolled"));
  Conv2dSpec halved = plane(32, 32);
  halved.stride_y = halved.stride_x = 2;
  CHECK(fits(halved, whole(1)) == "ok");  // of 1024 inputs
  halved.h = 34, halved.pad_y = 0;
  CHECK_THAT(fits(halved, whole(1)), Catch::Contains("planes too large to be unrolled"));  // 1088

  CHECK(fits(plane(8, 8), band(2)) == "ok");
  CHECK_THAT(fits(plane(8, 8), band(3)), Catch::Contains("rows must divide the result's rows"));
  CHECK_THAT(fits(plane(5, 5), band(5)), Catch::Contains("an input plane must be whole texels"));
  CHECK(fits(plane(4, 5), band(4)) == "ok");
  CHECK_THAT(fits(plane(4, 5), band(1)), Catch::Contains("a band must begin at a texel"));
  CHECK_THAT(fits(plane(4, 6), band(1)), Catch::Contains("a band must begin at a texel"));
  CHECK(fits(plane(4, 6), band(2)) == "ok");
  CHECK(fits(plane(8, 64), band(4)) == "ok");  // 256 outputs
  CHECK_THAT(fits(plane(8, 65), band(4)), Catch::Contains("a band too large to be unrolled"));
  CHECK(fits(tall(19, 64, 16), band(4)) == "ok");  // 4096 terms
  CHECK_THAT(fits(tall(20, 64, 17), band(4)), Catch::Contains("a band too large to be unrolled"));

  CHECK(fits(plane(8, 8), block(4, 1)) == "ok");
  for (const std::int64_t x : {-4, 0, 2, 6}) {
    CHECK_THAT(fits(plane(8, 8), block(x, 1)), Catch::Contains("x must be a multiple of 4"));
  }
  CHECK_THAT(fits(plane(8, 8), block(4, 0)), Catch::Contains("x must be a multiple of 4"));
  CHECK_THAT(fits(plane(8, 6), block(4, 1)), Catch::Contains("rows must be whole texels"));
  CHECK(fits(plane(16, 16), block(16, 8)) == "ok");
  CHECK_THAT(fits(plane(16, 16), block(16, 9)), Catch::Contains("a block too large to be unrolled"));
  CHECK(fits(tall(64, 32, 32), block(16, 8)) == "ok");  // 4096 terms
  CHECK_THAT(fits(tall(64, 32, 33), block(16, 8)), Catch::Contains("a block too large to be unrolled"));
}

TEST_CASE("space: the points of a row of four outputs, each once") {
  Conv2dSpec row = layer(8, 1, 1);
  row.k = 4, row.w = 4, row.s = 3, row.pad_x = 1;
  const std::vector<Candidate> space = conv_space(row, viewing_device());
  std::multiset<std::string> found, expected;
  for (const Candidate& candidate : space) {
    if (family_of(candidate.variant) == "direct/blocked") found.insert(candidate.variant);
  }
  for (const std::string blocks : {"k=4,x=4", "k=4,x=7", "k=8,x=4", "k=8,x=7"}) {
    for (const View view : {View::storage, View::texels, View::image}) {
      const auto add = [&](const std::string& lanes, const std::string& workgroup) {
        const auto with = [&](const std::string& packing, const std::string& border) {
          expected.insert("direct/blocked:lanes=" + lanes + "," + blocks + ",y=1,packing=" + packing + ",view=" +
                          std::string(to_string(view)) + ",rows=looped,border=" + border + ",workgroup=" + workgroup);
        };
        with("channels", "padded");
        with("channels", "guarded");
        if (blocks.ends_with('4')) with("pixels", "padded");
      };
      add("channels", "1");
      add("places", "16");
      add("places", "64");
    }
  }
  CHECK(space.size() < most_candidates);
  CHECK(found == expected);
}

TEST_CASE("space: a number is taken off the front of an id, and what is none is not") {
  const auto taken = [](std::string_view text) {
    std::int64_t number = -1;
    if (!take_number(text, "k=", number)) return std::string("none");
    return std::to_string(number) + " before '" + std::string(text) + "'";
  };
  CHECK(taken("k=7") == "7 before ''");
  CHECK(taken("k=12,x=4") == "12 before ',x=4'");
  CHECK(taken("k=-3x") == "-3 before 'x'");
  CHECK(taken("k=9223372036854775807") == "9223372036854775807 before ''");
  for (const char* none : {"", "k", "k=", "k=,x=4", "k=x", "k=+7", "k= 7", "k=-", "j=7", " k=7", "7",
                           "k=9223372036854775808", "k=-9223372036854775809"}) {
    INFO(none);
    CHECK(taken(none) == "none");
  }
}

TEST_CASE("space: tile sizes of an implicit product") {
  std::set<std::int64_t> channels, pixels;
  std::map<Staging, std::set<std::int64_t>> depths;
  std::map<Staging, std::set<std::pair<std::int64_t, std::int64_t>>> lanes;
  for (const ImplicitTile& tile : implicit_space(resnet_layer(), sharing_device())) {
    INFO(implicit_variant(tile));
    CHECK(implicit_of(implicit_variant(tile)) == tile);
    channels.insert(tile.k);
    pixels.insert(tile.pixels);
    depths[tile.staging].insert(tile.depth);
    lanes[tile.staging].insert({tile.lanes_k, tile.lanes_p});
  }
  CHECK(channels == std::set<std::int64_t>{4, 8});
  CHECK(pixels == std::set<std::int64_t>{1, 2, 4, 8});
  CHECK(depths[Staging::registers] == std::set<std::int64_t>{4});
  CHECK(depths[Staging::shared] == std::set<std::int64_t>{4, 8, 16});
  using Sides = std::set<std::pair<std::int64_t, std::int64_t>>;
  CHECK((lanes[Staging::registers] == Sides{{1, 16}, {1, 64}, {4, 16}, {8, 8}, {8, 16}, {16, 16}}));
  CHECK((lanes[Staging::shared] == Sides{{4, 16}, {8, 8}, {8, 16}, {16, 16}}));
}

TEST_CASE("space: a product's blocking is read back from its text, and what does not hold is said") {
  const GemmBlocking good{8, 2, 16, View::texels};
  const std::string text = gemm_variant(good);
  CHECK(text == "gemm/blocked:rows=8,quads=2,view=texels,workgroup=16");
  CHECK(gemm_blocking_of(text) == good);
  for (const std::string& bad : {std::string("gemm/blocked:"), text + ",", text + "x", text.substr(1),
                                 std::string("gemm/blocked:rows=8,quads=2,view=warps,workgroup=16"),
                                 std::string("gemm/blocked:rows=8,quads=2,workgroup=16")}) {
    INFO(bad);
    CHECK_FALSE(gemm_blocking_of(bad).has_value());
  }
  GemmSpec spec;
  spec.m = spec.n = spec.k = 64;
  const auto why = [&](const GemmBlocking& blocking) {
    const Status status = check(spec, blocking, viewing_device());
    CHECK(status.code == StatusCode::unsupported);
    return status.message;
  };
  CHECK(check(spec, good, viewing_device()).ok());
  CHECK_THAT(why({0, 1, 8, View::texels}), Catch::Contains("rows 1 to 64"));
  CHECK_THAT(why({64, 2, 8, View::texels}), Catch::Contains("512 outputs a lane, at most 256"));
  CHECK_THAT(why({1, 1, 100000, View::texels}), Catch::Contains("100000 lanes"));
  spec.k = 60001;
  CHECK_THAT(why(good), Catch::Contains("60000"));
}

}  // namespace kiln::dynamic_shaders
