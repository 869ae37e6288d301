// What the cost model takes from a device: the same figures as ever from a host and from a GPU that no table knows, and
// from an RDNA target the waves that hide each other's loads.
#include <array>
#include <catch2/catch.hpp>

#include "dynamic_shaders/sample_specs.hpp"
#include "dynamic_shaders/space/cost_model.hpp"
#include "dynamic_shaders/space/variant_space.hpp"

namespace kiln::dynamic_shaders {
namespace {

DeviceInfo device_of(DeviceKind kind, std::uint32_t simd_lanes, const char* isa = nullptr) {
  DeviceInfo device = sample_device();
  device.kind = kind;
  device.simd_lanes = simd_lanes;
  device.max_bindings = 16;
  device.max_shared_bytes = 32768;
  device.max_texel_bindings = 32, device.max_image_bindings = 8;
  device.max_view_texels = 1u << 27;
  if (isa != nullptr) device.device_identity = {{"isa", isa}};
  return device;
}

MachineModel model_of_target(const char* isa) { return model_of(device_of(DeviceKind::gpu, 32, isa)); }

constexpr std::size_t points = 11;

// One point of each family.
std::array<double, points> costs_on(const DeviceInfo& device) {
  Conv2dSpec winograd = resnet_layer(), depthwise = resnet_layer();
  winograd.accuracy = Accuracy::winograd;
  depthwise.groups = 64;
  Conv2dSpec small = depthwise;
  small.h = small.w = 8;
  const auto cost = [&](const Conv2dSpec& spec, const char* variant) {
    INFO(variant);
    const auto run = predicted_run(spec, device, variant);
    REQUIRE(run.has_value());
    return *run;
  };
  GemmSpec product;
  product.m = product.n = product.k = 256;
  const MachineModel model = model_of(device);
  return {cost(resnet_layer(), "direct/plain"),
          cost(resnet_layer(),
               "direct/blocked:lanes=channels,k=4,x=8,y=4,packing=pixels,view=texels,rows=unrolled,border=padded,"
               "workgroup=16"),
          cost(resnet_layer(),
               "direct/blocked:lanes=places,k=8,x=7,y=2,packing=channels,view=image,rows=looped,border=guarded,"
               "workgroup=64"),
          cost(winograd,
               "winograd/f4:lanes=channels,k=8,x=12,y=1,packing=plane,view=texels,rows=looped,border=padded,"
               "workgroup=8"),
          cost(depthwise, "depthwise/blocked:x=8,y=4,view=texels"),
          cost(depthwise, "depthwise/bands:rows=2,view=texels"),
          cost(small, "depthwise/planes:planes=1,view=storage"),
          cost(resnet_layer(), "implicit/registers:k=8,pixels=2,lanes_k=4,lanes_p=16,depth=4"),
          cost(resnet_layer(), "implicit/shared:k=4,pixels=4,lanes_k=8,lanes_p=16,depth=8"),
          predict_gemm(product, {8, 2, 16, View::texels}, model).run(),
          predict_gemm_plain(product, model).run()};
}

void check_costs(const std::array<double, points>& costs, const std::array<double, points>& expected) {
  for (std::size_t i = 0; i < points; ++i) {
    INFO("point " << i);
    CHECK(costs[i] == Approx(expected[i]).epsilon(1e-12));
  }
}

// 1024 blocks of 4 x 4 a plane: a workgroup of 64 and one of 1024 lanes alike have no lane to spare.
ConvShape wide_shape() {
  Conv2dSpec spec = resnet_layer();
  spec.n = 64;
  spec.h = spec.w = 128;
  return shape_of(spec);
}
Blocking block_of(std::int64_t k, std::int64_t x, std::int64_t y, std::int64_t workgroup) {
  return {Lanes::places, k, x, y, Packing::pixels, View::storage, Rows::looped, Border::padded, workgroup};
}

}  // namespace

TEST_CASE("cost model: llvmpipe's figures and those of a GPU that no table knows are what they were") {
  check_costs(costs_on(device_of(DeviceKind::software, 8)),
              {699743686.4, 13412709.12, 25555288.076694217, 8395747.968, 939523.84, 946835.2, 249415.68, 146300399.36,
               215505647.36, 2706108.16, 102020345.6});
  check_costs(costs_on(device_of(DeviceKind::software, 16)),
              {755517320.96, 13363308.16, 19131370.1871074364, 15131906.688, 960660.48, 809991.36, 268003.84,
               146285346.56, 199064226.56, 3511709.44, 109923331.84});
  check_costs(costs_on(device_of(DeviceKind::gpu, 32)), {61485600, 213777472, 187169856, 35832825.6, 1494560, 4644384,
                                                         2133536, 74010144, 51891744, 56249888, 8949280});
}

TEST_CASE("cost model: a device that does not tell its lanes has 8 of a host or 32 of a GPU") {
  CHECK(model_of(device_of(DeviceKind::software, 0)).lanes == 8);
  CHECK(model_of(device_of(DeviceKind::gpu, 0)).lanes == 32);
  CHECK(model_of(device_of(DeviceKind::software, 4)).lanes == 4);
  CHECK(model_of(device_of(DeviceKind::gpu, 4)).lanes == 4);
}

TEST_CASE("cost model: build cost counts programs and unrolled terms, and is higher with images") {
  Conv2dSpec small = resnet_layer(), tiled = resnet_layer(), pointwise = resnet_layer();
  small.h = small.w = 8;
  tiled.accuracy = Accuracy::winograd;
  pointwise.r = pointwise.s = 1, pointwise.pad_y = pointwise.pad_x = 0;
  const auto quarter = winograd_shape(tiled, 4), half = winograd_shape(tiled, 2);
  REQUIRE(quarter.has_value());
  REQUIRE(half.has_value());
  const Blocking unrolled{Lanes::channels, 4, 8, 4, Packing::pixels, View::texels, Rows::unrolled, Border::padded, 16};
  const Blocking looped{Lanes::places, 8, 7, 2, Packing::channels, View::image, Rows::looped, Border::guarded, 64};
  const Blocking plane{Lanes::channels, 8, 12, 1, Packing::plane, View::texels, Rows::looped, Border::padded, 8};
  const Blocking rounds{Lanes::channels, 8, 8, 1, Packing::plane, View::texels, Rows::unrolled, Border::padded, 8};
  GemmSpec even, odd, deep;
  even.m = even.n = even.k = 256, odd.m = odd.n = odd.k = 255;
  deep.m = deep.n = 64, deep.k = 480001;
  const GemmTile tile{8, 4, 8, 16, 8};
  const ConvShape shape = shape_of(resnet_layer());
  // Programs, the terms of one step of theirs, and how often an image's terms count.
  const auto check_builds = [&](const MachineModel& model, double program, double term, double image) {
    CHECK(predict_plain(shape, model).build == Approx(program));
    CHECK(predict(shape, unrolled, model).build == Approx(3 * program + 1152 * term));
    CHECK(predict(shape, looped, model).build == Approx(3 * program + 1344 * term * image));
    CHECK(predict(shape_of(pointwise), rounds, model).build == Approx(2 * program + 256 * term));
    CHECK(predict_winograd(tiled, *quarter, plane, model).build == Approx(4 * program + (96 + 36 * 60) * term));
    CHECK(predict_winograd(tiled, *half, plane, model).build == Approx(4 * program + (96 + 16 * 60) * term));
    CHECK(predict_depthwise(small, {1, 0, 0, 0, View::storage}, model).build == Approx(program + 576 * term));
    CHECK(predict_depthwise(small, {0, 2, 0, 0, View::texels}, model).build == Approx(program + 144 * term));
    CHECK(predict_depthwise(small, {0, 0, 8, 4, View::image}, model).build == Approx(program + 288 * term * image));
    CHECK(predict_implicit(small, {Staging::registers, 8, 2, 4, 16, 4}, model).build ==
          Approx(2 * program + 64 * term));
    CHECK(predict_implicit(small, {Staging::shared, 4, 4, 8, 16, 8}, model).build == Approx(2 * program + 128 * term));
    CHECK(predict_gemm_plain(even, model).build == Approx(program));
    CHECK(predict_gemm(even, {8, 2, 16, View::texels}, model).build == Approx(program + 256 * term));
    CHECK(predict_gemm(even, {8, 2, 16, View::image}, model).build == Approx(program + 256 * term * image));
    CHECK(predict_gemm(odd, {8, 2, 16, View::texels}, model).build == Approx(2 * program + 64 * term));
    CHECK(predict_gemm_shared(even, tile, model).build == Approx(program + 256 * term));
    CHECK(predict_gemm_shared(deep, tile, model).build == Approx(2 * program + 512 * term));
  };
  check_builds(model_of(device_of(DeviceKind::software, 8)), 2e8, 7e5, 2);
  check_builds(model_of(device_of(DeviceKind::software, 16)), 2e8, 7e5, 2);
  check_builds(model_of(device_of(DeviceKind::gpu, 32)), 1e8, 2e5, 1);
}

TEST_CASE("cost model: only the instruction set of a device with a table of its own changes its figures") {
  CHECK(costs_on(device_of(DeviceKind::software, 8, "gfx1100")) == costs_on(device_of(DeviceKind::software, 8)));
  CHECK(costs_on(device_of(DeviceKind::gpu, 32, "gfx900")) == costs_on(device_of(DeviceKind::gpu, 32)));
  CHECK(costs_on(device_of(DeviceKind::gpu, 32, "gfx1100")) != costs_on(device_of(DeviceKind::gpu, 32)));
  DeviceInfo named = device_of(DeviceKind::gpu, 32);
  named.name = "AMD gfx1100", named.device_identity = {{"vendor", "gfx1100"}};
  CHECK(costs_on(named) == costs_on(device_of(DeviceKind::gpu, 32)));
}

TEST_CASE("cost model: an RDNA target's model has its wave, its SIMD's pace and its registers") {
  const MachineModel narrow = model_of_target("gfx1100");
  REQUIRE(narrow.rdna.has_value());
  CHECK(narrow.rdna->target == "gfx1100");
  CHECK(narrow.wave == rdna::Wave::w32);
  CHECK(narrow.lanes == 32);
  CHECK(narrow.term == 1);  // clocks of 32 multiply-adds on a SIMD of 32 lanes
  const MachineModel wide = model_of(device_of(DeviceKind::gpu, 64, "gfx1030"));
  CHECK(wide.wave == rdna::Wave::w64);
  CHECK(wide.lanes == 64);
  CHECK(wide.term == 2);
  CHECK_FALSE(model_of(device_of(DeviceKind::gpu, 32)).rdna.has_value());
}

TEST_CASE("cost model: a wave waits longer the fewer share its SIMD, by registers and by LDS") {
  const MachineModel model = model_of_target("gfx1100");
  const auto waves = [&](double held, std::int64_t workgroup, std::int64_t shared) {
    return model.latency / waited(model, held, workgroup, shared);
  };
  CHECK(waves(56, 64, 0) == Approx(16));  // 96 registers with the 40 of its own
  CHECK(waves(57, 64, 0) == Approx(12));
  CHECK(waves(152, 64, 0) == Approx(8));
  CHECK(waves(216, 64, 0) == Approx(5));
  CHECK(waves(1000, 64, 0) == Approx(5));  // the rest is spilled
  CHECK(waves(1, 64, 8 * 1024) == Approx(8));
  CHECK(waves(1, 64, 32 * 1024) == Approx(2));
  CHECK(waves(1, 256, 32 * 1024) == Approx(8));
  CHECK(waves(1, 64, 64 * 1024 + 1) == Approx(0.25));  // fits nowhere
  CHECK(waited(model_of(device_of(DeviceKind::gpu, 32)), 216, 64, 65536) == 0);
}

TEST_CASE("cost model: a depthwise lane waits once, for its rows, weights and outputs") {
  MachineModel waiting = model_of_target("gfx1100");
  waiting.wanted_vectors = 1;
  MachineModel ready = waiting;
  ready.latency = 0;
  Conv2dSpec spec;
  spec.c = spec.k = spec.groups = 32, spec.h = 8, spec.w = 16;
  // Of a launch of so many vectors, whose kernel leaves room for so many waves.
  const auto waits = [&](std::int64_t taps, const Depthwise& choice, double vectors, double waves) {
    spec.r = spec.s = taps, spec.pad_y = spec.pad_x = taps / 2;
    INFO(depthwise_variant(choice) << " of " << taps << " x " << taps << " taps");
    const double more = predict_depthwise(spec, choice, waiting).main - predict_depthwise(spec, choice, ready).main;
    CHECK(more == Approx(vectors * 375 / waves));
  };
  // 101 registers, of them 40 of its own: 3 rows of 16 floats, 9 weights, 4 outputs.
  waits(3, {1, 0, 0, 0, View::storage}, 1, 12);
  waits(3, {0, 8, 0, 0, View::storage}, 1, 12);
  waits(3, {0, 2, 0, 0, View::storage}, 4, 12);
  waits(3, {0, 0, 8, 8, View::storage}, 2, 16);   // 89: 3 rows of the 3 texels that 10 floats lie in
  waits(3, {0, 0, 16, 8, View::storage}, 1, 12);  // 113: of 5
  waits(3, {0, 0, 28, 8, View::storage}, 1, 9);   // 149: of 8
  waits(5, {1, 0, 0, 0, View::storage}, 1, 9);    // 149: 5 rows of 16 floats, 25 weights
}

TEST_CASE("cost model: of two points that differ in nothing else, the one that keeps more waves is cheaper") {
  // gfx1101 and gfx1102 differ in their registers alone: 1536 and 1024 a SIMD.
  const MachineModel many = model_of_target("gfx1101"), few = model_of_target("gfx1102");
  const auto run = [](const Blocking& block, const MachineModel& model) {
    return predict(wide_shape(), block, model).run();
  };
  CHECK(run(block_of(4, 2, 1, 64), many) == run(block_of(4, 2, 1, 64), few));  // 64 registers: 16 waves of either
  CHECK(run(block_of(8, 4, 4, 64), many) < run(block_of(8, 4, 4, 64), few));
  MachineModel halved = many;
  halved.rdna->vgprs /= 2;
  CHECK(run(block_of(8, 4, 4, 64), many) < run(block_of(8, 4, 4, 64), halved));

  // A workgroup of 1024 lanes is 32 waves: the registers leave room for one such group, and for waves that fill none.
  MachineModel unhindered = many;
  unhindered.latency = 0;
  CHECK(run(block_of(4, 4, 4, 64), unhindered) == run(block_of(4, 4, 4, 1024), unhindered));
  CHECK(waited(many, 90, 64) < waited(many, 90, 1024));
  CHECK(run(block_of(4, 4, 4, 64), many) < run(block_of(4, 4, 4, 1024), many));
}

TEST_CASE("cost model: a tile whose shared memory leaves room for few workgroups is dearer") {
  MachineModel model = model_of_target("gfx1100"), scarce = model;
  scarce.rdna->lds_bytes /= 4;
  const ImplicitTile large{Staging::shared, 4, 4, 8, 16, 32}, small{Staging::shared, 4, 4, 8, 16, 2};
  const ImplicitTile none{Staging::registers, 4, 4, 8, 16, 32};
  REQUIRE(shared_bytes(large) == 12 * 1024);
  const auto run = [](const ImplicitTile& tile, const MachineModel& of) {
    return predict_implicit(resnet_layer(), tile, of).run();
  };
  CHECK(run(large, model) < run(large, scarce));
  CHECK(run(small, model) == run(small, scarce));
  CHECK(run(none, model) == run(none, scarce));
  GemmSpec product;
  product.m = product.n = product.k = 4096;
  MachineModel bare = model;
  bare.rdna->vgprs /= 2;
  CHECK(predict_gemm(product, {16, 1, 64, View::storage}, model).run() <
        predict_gemm(product, {16, 1, 64, View::storage}, bare).run());
}

}  // namespace kiln::dynamic_shaders
