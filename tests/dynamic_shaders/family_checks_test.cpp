// What each family takes of a shape and a device, on both sides of each bound, and what is said beyond it.
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/depthwise.hpp"
#include "dynamic_shaders/families/gemm.hpp"
#include "dynamic_shaders/families/implicit.hpp"
#include "dynamic_shaders/families/winograd.hpp"
#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/space_samples.hpp"

namespace kiln::dynamic_shaders {
namespace {

// "ok", or why not, which is always that the device or the shape does not support it.
std::string answer_of(const Status& status) {
  if (status.ok()) return "ok";
  CHECK(status.code == StatusCode::unsupported);
  return status.message;
}

std::string blocked_answer(const Conv2dSpec& spec, const Blocking& blocking,
                           const DeviceInfo& device = viewing_device()) {
  return answer_of(check(shape_of(spec), blocking, device));
}

Blocking stored(Blocking blocking) {
  blocking.view = View::storage;
  return blocking;
}

GemmSpec product_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmSpec spec;
  spec.m = m, spec.n = n, spec.k = k;
  return spec;
}

constexpr GemmBlocking stored_rows{8, 2, 16, View::storage};

std::string product_answer(const GemmSpec& spec, const GemmBlocking& blocking = stored_rows,
                           const DeviceInfo& device = viewing_device()) {
  return answer_of(check(spec, blocking, device));
}

}  // namespace

TEST_CASE("blocking: no parameter may be missing") {
  using Change = std::function<void(Blocking&)>;
  const Change changes[] = {[](Blocking& b) { b.lanes = Lanes::invalid; }, [](Blocking& b) { b.view = View::invalid; },
                            [](Blocking& b) { b.packing = Packing::invalid; },
                            [](Blocking& b) { b.rows = Rows::invalid; },
                            [](Blocking& b) { b.border = Border::invalid; }};
  for (const Change& change : changes) {
    Blocking blocking = good_blocking();
    change(blocking);
    CHECK(blocked_answer(resnet_layer(), blocking) == "blocking: a parameter is missing");
  }
}

TEST_CASE("blocking: a view needs three bindings, four with a bias") {
  Conv2dSpec biased = resnet_layer();
  biased.bias = Bias::per_channel;
  Blocking image = good_blocking();
  image.view = View::image;
  DeviceInfo device = viewing_device();
  const std::string no_texels = "blocking: the device has no texel buffers";
  const std::string no_images = "blocking: the device has no image buffers";
  device.max_texel_bindings = 3, device.max_image_bindings = 2;
  CHECK(blocked_answer(resnet_layer(), good_blocking(), device) == "ok");
  CHECK(blocked_answer(biased, good_blocking(), device) == no_texels);
  CHECK(blocked_answer(resnet_layer(), image, device) == no_images);
  device.max_texel_bindings = 2, device.max_image_bindings = 3;
  CHECK(blocked_answer(resnet_layer(), good_blocking(), device) == no_texels);
  CHECK(blocked_answer(resnet_layer(), image, device) == "ok");
  CHECK(blocked_answer(biased, image, device) == no_images);
  device.max_texel_bindings = device.max_image_bindings = 4;
  CHECK(blocked_answer(biased, good_blocking(), device) == "ok");
  CHECK(blocked_answer(biased, image, device) == "ok");
  device.max_texel_bindings = device.max_image_bindings = 0;
  CHECK(blocked_answer(biased, stored(good_blocking()), device) == "ok");
}

TEST_CASE("blocking: activations and weights fit the device's views and buffers") {
  Conv2dSpec wide = resnet_layer();
  wide.k = 512;  // 64 * 9 * 128 texels of weights, 64 * 58 * 15 of activations
  Conv2dSpec two = resnet_layer();
  two.n = 2;
  DeviceInfo device = viewing_device();
  device.max_view_texels = 73728;
  CHECK(blocked_answer(wide, good_blocking(), device) == "ok");
  CHECK(blocked_answer(two, good_blocking(), device) ==
        "blocking: 111360 texels in a view, the device takes at most 73728");
  device.max_view_texels = 73727;
  CHECK(blocked_answer(wide, good_blocking(), device) ==
        "blocking: 73728 texels in a view, the device takes at most 73727");
  CHECK(blocked_answer(wide, stored(good_blocking()), device) == "ok");
  device.max_view_texels = 111360;
  CHECK(blocked_answer(two, good_blocking(), device) == "ok");
  device.max_buffer_bytes = 1179648;
  CHECK(blocked_answer(wide, stored(good_blocking()), device) == "ok");
  device.max_buffer_bytes = 1179647;
  CHECK(blocked_answer(wide, stored(good_blocking()), device) ==
        "blocking: 1179648 bytes, the device's buffers have at most 1179647");
  CHECK(blocked_answer(two, stored(good_blocking()), device) ==
        "blocking: 1781760 bytes, the device's buffers have at most 1179647");
}

TEST_CASE("blocking: an index reaches a quarter of 2^31 texels") {
  Conv2dSpec many = resnet_layer();
  many.n = 9642;  // of 55680 texels each
  CHECK(blocked_answer(many, stored(good_blocking())) == "ok");
  many.n = 9643;
  CHECK(blocked_answer(many, stored(good_blocking())) == "blocking: 536922240 texels, an index reaches 536870911");
}

TEST_CASE("blocking: no lane goes round more than 60000 times, all its loops together") {
  Conv2dSpec deep = resnet_layer();
  Blocking looped = good_blocking();
  looped.rows = Rows::looped;
  const std::string refused = "blocking: more rounds of a loop than 60000";
  deep.c = 60000;
  CHECK(blocked_answer(deep, good_blocking()) == "ok");
  deep.c = 60001;
  CHECK(blocked_answer(deep, good_blocking()) == refused);
  deep.c = 15000;  // three rows and the loop over channels
  CHECK(blocked_answer(deep, looped) == "ok");
  deep.c = 15001;
  CHECK(blocked_answer(deep, looped) == refused);
}

TEST_CASE("blocking: at most 8192 terms are unrolled") {
  Conv2dSpec row = layer(16, 56, 1);
  row.pad_x = 0, row.s = 8;
  Blocking channels = good_blocking();
  channels.k = 8, channels.packing = Packing::channels, channels.rows = Rows::looped;
  CHECK(blocked_answer(row, channels) == "ok");  // 4 channels, 256 outputs, 8 taps
  row.s = 9;
  CHECK(blocked_answer(row, channels) == "blocking: 9216 terms unrolled, at most 8192");
}

TEST_CASE("blocking: what the shape has nothing for is refused") {
  const Blocking plane{Lanes::channels, 4, 4, 1, Packing::plane, View::storage, Rows::looped, Border::padded, 8};
  Blocking rounds = plane, tall = plane, grouped = stored(good_blocking());
  rounds.rows = Rows::unrolled;
  tall.y = 2;
  grouped.lanes = Lanes::groups;
  CHECK(blocked_answer(layer(8, 6, 1), rounds) == "ok");
  CHECK(blocked_answer(layer(6, 6, 1), rounds) ==
        "blocking: rows unrolled, a 1x1 kernel: 6 steps over the channels are not a multiple of 4");
  CHECK(blocked_answer(layer(8, 6, 1), tall) == "blocking: one row of outputs: y must be 1");
  CHECK(blocked_answer(resnet_layer(), grouped) == "blocking: lanes over groups: there is one group");
  CHECK(blocked_answer(layer(64, 56, 3, 1, 2), grouped) == "ok");
  const std::string no_plane =
      "blocking: packing plane: only for 1x1 kernels of stride 1 on planes of a multiple of four pixels";
  Conv2dSpec down = layer(8, 8, 1), across = down, odd = layer(8, 6, 1);
  down.stride_y = 2, across.stride_x = 2, odd.h = 5;
  CHECK(blocked_answer(layer(8, 8, 1), plane) == "ok");
  CHECK(blocked_answer(down, plane) == no_plane);
  CHECK(blocked_answer(across, plane) == no_plane);
  CHECK(blocked_answer(odd, plane) == no_plane);  // 30 pixels
  CHECK(blocked_answer(layer(8, 8, 3), plane) == no_plane);
}

TEST_CASE("gemm/blocked: outputs and lanes of a block at their bounds") {
  const GemmSpec spec = product_of(64, 64, 64);
  const std::string range = "gemm/blocked: rows 1 to 64, quads 1 to 16";
  const auto block = [&](std::int64_t rows, std::int64_t quads, std::int64_t workgroup = 16) {
    return product_answer(spec, {rows, quads, workgroup, View::storage});
  };
  CHECK(block(1, 1) == "ok");
  CHECK(block(64, 1) == "ok");
  CHECK(block(4, 16) == "ok");
  CHECK(block(65, 1) == range);
  CHECK(block(0, 1) == range);
  CHECK(block(1, 17) == range);
  CHECK(block(1, 0) == range);
  CHECK(block(5, 13) == "gemm/blocked: 260 outputs a lane, at most 256");
  CHECK(block(8, 2, 1) == "ok");
  CHECK(block(8, 2, 1024) == "ok");
  CHECK(block(8, 2, 0) == "gemm/blocked: a workgroup of 0 lanes, the device takes at most 1024");
  CHECK(block(8, 2, 1025) == "gemm/blocked: a workgroup of 1025 lanes, the device takes at most 1024");
  DeviceInfo narrow = viewing_device();
  narrow.max_workgroup[0] = 16;
  CHECK(product_answer(spec, {8, 2, 16, View::storage}, narrow) == "ok");
  CHECK(product_answer(spec, {8, 2, 17, View::storage}, narrow) ==
        "gemm/blocked: a workgroup of 17 lanes, the device takes at most 16");
}

TEST_CASE("gemm/blocked: rounds of the loop, four depths each where the depth allows it") {
  const std::string refused = "gemm/blocked: more rounds of a loop than 60000";
  CHECK(product_answer(product_of(64, 64, 59999)) == "ok");
  CHECK(product_answer(product_of(64, 64, 60001)) == refused);
  CHECK(product_answer(product_of(64, 64, 60004)) == "ok");
  CHECK(product_answer(product_of(64, 64, 240000)) == "ok");
  CHECK(product_answer(product_of(64, 64, 240004)) == refused);
}

TEST_CASE("gemm/blocked: every index stays within 32 bits, those beyond the edges too") {
  const std::string refused = "gemm/blocked: an index beyond 32 bits";
  CHECK(product_answer(product_of(35783, 8, 60000)) == "ok");  // 8 rows more: 35791 of 60000
  CHECK(product_answer(product_of(35784, 8, 60000)) == refused);
  CHECK(product_answer(product_of(8, 35660, 60000)) == "ok");  // 32 quads more: 8947 of 60000
  CHECK(product_answer(product_of(8, 35664, 60000)) == refused);
  CHECK(product_answer(product_of(46333, 46340, 4)) == "ok");  // 46341 of 46340
  CHECK(product_answer(product_of(46334, 46340, 4)) == refused);
}

TEST_CASE("gemm/blocked: a padded second factor fits a buffer") {
  DeviceInfo device = viewing_device();
  device.max_buffer_bytes = 3200;
  CHECK(product_answer(product_of(8, 6, 100), stored_rows, device) == "ok");  // 100 depths of two texels
  device.max_buffer_bytes = 3199;
  CHECK(product_answer(product_of(8, 6, 100), stored_rows, device) ==
        "gemm/blocked: the padded factor is larger than the device's buffers");
  CHECK(product_answer(product_of(8, 8, 100), stored_rows, device) == "ok");  // read in place
}

TEST_CASE("gemm/blocked: a view needs four bindings, and holds either factor") {
  DeviceInfo device = viewing_device();
  const auto view = [&](View each, std::int64_t m, std::int64_t n) {
    return answer_of(check_view(product_of(m, n, 16), each, device));
  };
  device.max_texel_bindings = 4, device.max_image_bindings = 3;
  CHECK(view(View::texels, 8, 8) == "ok");
  CHECK(view(View::image, 8, 8) == "gemm/blocked: the device has no image");
  device.max_texel_bindings = 3, device.max_image_bindings = 4;
  CHECK(view(View::texels, 8, 8) == "gemm/blocked: the device has no texels");
  CHECK(view(View::image, 8, 8) == "ok");
  CHECK(view(View::storage, 8, 8) == "ok");
  device = viewing_device();
  device.max_view_texels = 48;
  CHECK(view(View::texels, 12, 8) == "ok");  // 12 rows of 4 texels, 16 depths of 2
  CHECK(view(View::texels, 8, 12) == "ok");  // 16 depths of 3
  CHECK(view(View::texels, 13, 8) == "gemm/blocked: 52 texels in a view, the device takes at most 48");
  CHECK(view(View::texels, 8, 13) == "gemm/blocked: 64 texels in a view, the device takes at most 48");
  CHECK(view(View::storage, 8, 13) == "ok");
}

TEST_CASE("gemm/shared: what is reckoned beyond the edges stays within 32 bits") {
  const GemmTile tile{8, 4, 8, 16, 8};  // 64 x 64, 128 lanes
  CHECK(shared_bytes(tile) == 4224);
  CHECK(shared_bytes(GemmTile{4, 1, 4, 8, 8}) == 896);
  const auto answer = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return answer_of(check(product_of(m, n, k), tile, sharing_device()));
  };
  const std::string refused = "gemm/shared: an index beyond 32 bits";
  CHECK(answer(45765, 46276, 4) == "ok");  // 576 rows more, 64 columns, 16 depths
  CHECK(answer(45766, 46276, 4) == refused);
  CHECK(answer(45765, 1, 46324) == "ok");
  CHECK(answer(45766, 1, 46324) == refused);
  CHECK(answer(1, 46276, 46325) == "ok");
  CHECK(answer(1, 46276, 46326) == refused);
  CHECK(passes_of(product_of(8, 8, 480000), tile) == 1);
  CHECK(passes_of(product_of(8, 8, 480001), tile) == 2);
}

TEST_CASE("implicit: rounds and texels of a tile at their bounds") {
  ImplicitTile tile{Staging::shared, 8, 4, 8, 8, 8};
  const auto answer = [&](const Conv2dSpec& spec) { return answer_of(check(spec, tile, sharing_device())); };
  Conv2dSpec point = layer(64, 8, 1), deep = layer(64, 8, 3);
  point.c = 479984;  // one row, one tap and 59998 steps
  CHECK(answer(point) == "ok");
  point.c = 479985;
  CHECK(answer(point) == "implicit: 60001 rounds of its loops, at most 60000");
  deep.c = 8 * 6665;  // three rows, nine taps and nine times 6665 steps
  CHECK(answer(deep) == "ok");
  deep.c = 8 * 6666;
  CHECK(answer(deep) == "implicit: 60006 rounds of its loops, at most 60000");
  point.c = 262136, point.k = 8192;
  CHECK(answer(point) == "ok");
  point.c = 262137;
  CHECK(answer(point) == "implicit: 536870912 texels, an index reaches 536870911");
  tile.staging = Staging::invalid;
  CHECK(answer(layer(64, 8, 1)) == "implicit: a parameter is missing");
}

TEST_CASE("winograd: the transformed tiles of outputs are counted where they are more than those of inputs") {
  Conv2dSpec spec = resnet_layer();
  spec.accuracy = Accuracy::winograd;
  spec.k = 128;  // 36 points of 49 quads: 225792 texels an image
  const Blocking blocking{Lanes::channels, 8, 12, 1, Packing::plane, View::storage, Rows::looped, Border::padded, 8};
  const auto answer = [&](std::int64_t images) {
    spec.n = images;
    return answer_of(check_winograd(spec, winograd_shape(spec, 4).value(), blocking, viewing_device()));
  };
  CHECK(answer(2377) == "ok");
  CHECK(answer(2378) ==
        "winograd: 536933376 texels of transformed tiles, expected at most 536870911 on device opengl:0");
}

TEST_CASE("depthwise: a view holds the input, and one binding of it is enough") {
  const Conv2dSpec spec = layer(8, 8, 3, 1, 8);  // 128 texels
  DeviceInfo device = viewing_device();
  const auto answer = [&](View view) { return answer_of(check(spec, Depthwise{0, 0, 4, 1, view}, device)); };
  const std::string no_texels = "depthwise: the device's texel buffers do not hold the input";
  const std::string no_images = "depthwise: the device's image buffers do not hold the input";
  device.max_texel_bindings = 1, device.max_image_bindings = 0;
  CHECK(answer(View::texels) == "ok");
  CHECK(answer(View::image) == no_images);
  device.max_texel_bindings = 0, device.max_image_bindings = 1;
  CHECK(answer(View::texels) == no_texels);
  CHECK(answer(View::image) == "ok");
  CHECK(answer(View::storage) == "ok");
  device.max_texel_bindings = 1;
  device.max_view_texels = 128;
  CHECK(answer(View::texels) == "ok");
  CHECK(answer(View::image) == "ok");
  device.max_view_texels = 127;
  CHECK(answer(View::texels) == no_texels);
  CHECK(answer(View::image) == no_images);
  CHECK(answer(View::storage) == "ok");
}

TEST_CASE("depthwise: whole planes have at most 4096 terms") {
  Conv2dSpec spec = layer(8, 31, 1, 1, 8);  // 16 rows of 16 outputs
  spec.w = 16, spec.r = 16;
  const Depthwise whole{1, 0, 0, 0, View::storage};
  CHECK(answer_of(check(spec, whole, viewing_device())) == "ok");
  spec.h = 32, spec.r = 17;
  CHECK(answer_of(check(spec, whole, viewing_device())) == "depthwise: planes too large to be unrolled");
}

TEST_CASE("depthwise: the space has blocks no wider than the result's whole texels, and no higher than it") {
  const auto blocks = [](std::int64_t height, std::int64_t width) {
    Conv2dSpec spec = layer(8, height, 3, 1, 8);
    spec.w = width;
    DeviceInfo device = viewing_device();
    device.max_texel_bindings = device.max_image_bindings = 0;
    std::string text;
    for (const Depthwise& each : depthwise_space(spec, device)) {
      if (each.x != 0) text += std::to_string(each.x) + "x" + std::to_string(each.y) + " ";
    }
    return text;
  };
  CHECK(blocks(1, 4) == "4x1 ");
  CHECK(blocks(2, 8) == "4x1 4x2 8x1 8x2 ");
  CHECK(blocks(3, 12) == "4x1 4x2 8x1 8x2 12x1 12x2 ");
  CHECK(blocks(4, 4) == "4x1 4x2 4x4 ");
  CHECK(blocks(8, 4) == "4x1 4x2 4x4 4x7 4x8 ");
}

TEST_CASE("families: planes and bands have no text for any shape, and an id that is none is told") {
  const DeviceInfo device = viewing_device();
  const auto refused = [&](const KernelSpec& spec, const std::string& variant) {
    const auto plan = Generator().generate_variant(spec, device, Dialect::glsl, variant);
    REQUIRE_FALSE(plan.has_value());
    return plan.error();
  };
  const Conv2dSpec separate = layer(8, 8, 3, 1, 8);
  for (const std::string variant :
       {"depthwise/planes:planes=1,view=storage@any", "depthwise/bands:rows=2,view=storage@any"}) {
    CHECK(refused(separate, variant).code == StatusCode::unsupported);
    CHECK(refused(separate, variant).message ==
          "depthwise: planes and bands are written for one shape: every index of theirs is a number");
  }
  Conv2dSpec tiled = resnet_layer();
  tiled.accuracy = Accuracy::winograd;
  const std::string rest =
      "lanes=channels,k=8,x=12,y=1,packing=plane,view=storage,rows=looped,border=padded,workgroup=8";
  for (const char* m : {"2:", "4:"}) {
    CHECK(Generator().generate_variant(tiled, device, Dialect::glsl, std::string("winograd/f") + m + rest).has_value());
  }
  for (const char* m : {"3:", "4;", "4", "", ":", "4:x"}) {
    const std::string variant = std::string("winograd/f") + m + rest;
    CHECK(refused(tiled, variant).code == StatusCode::not_found);
    CHECK(refused(tiled, variant).message == "conv2d: unknown variant '" + variant + "'");
  }
  for (const char* variant : {"winograd/f", "winograd/f4", "winograd/f4:"}) {
    CHECK(refused(tiled, variant).code == StatusCode::not_found);
  }
  CHECK(refused(small_gemm(), "gemm/blocked").message == "gemm: unknown variant 'gemm/blocked'");
}

}  // namespace kiln::dynamic_shaders
