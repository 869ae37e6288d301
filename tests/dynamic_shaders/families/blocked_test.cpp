#include <catch2/catch.hpp>
#include <optional>

#include "dynamic_shaders/families/direct.hpp"
#include "dynamic_shaders/families/family_check.hpp"
#include "support/conv_cases.hpp"
#include "support/test_length.hpp"

namespace kiln::dynamic_shaders {
namespace {

// Small blocks: what is checked is where values come from and go to, and that does not depend on the size.
Blocking draw(Dice& dice) {
  Blocking b;
  b.lanes = dice.one_of({Lanes::channels, Lanes::places, Lanes::groups});
  b.k = dice.one_of({4, 4, 8});
  b.x = dice.one_of({1, 2, 3, 4, 4, 7, 8});
  b.y = dice.one_of({1, 1, 2, 3});
  b.packing = dice.one_of({Packing::channels, Packing::channels, Packing::pixels, Packing::plane});
  b.view = dice.one_of({View::storage, View::texels, View::texels, View::image});
  b.rows = dice.one_of({Rows::looped, Rows::unrolled});
  b.border = dice.one_of({Border::padded, Border::padded, Border::guarded});
  b.workgroup = dice.one_of({1, 3, 8, 16});
  return b;
}

bool quick_to_build(const ConvShape& shape, const Blocking& b) {
  const std::int64_t terms =
      b.k * b.x * b.y * shape.s * (b.rows == Rows::unrolled ? shape.r : 1) * (b.packing == Packing::channels ? 4 : 1);
  return terms <= (test::is_long() ? 2048 : 640);
}

// Absent: the kernel is too large to be unrolled by any of them.
std::optional<Blocking> draw_fitting(Dice& dice, const ConvShape& shape, const DeviceInfo& device) {
  for (int attempt = 0; attempt < 2000; ++attempt) {
    const Blocking b = draw(dice);
    if (quick_to_build(shape, b) && check(shape, b, device).ok()) return b;
  }
  return std::nullopt;
}

void check_blocking(const Conv2dSpec& spec, const Blocking& blocking, std::uint64_t seed) {
  INFO(canonical_text(spec) << " by " << to_text(blocking));
  auto plan = direct_blocked(spec, blocking, device_under_test()->info(), Dialect::glsl);
  INFO((plan ? std::string() : plan.error().text()));
  REQUIRE(plan.has_value());
  check_plan(spec, *plan, seed);
}

}  // namespace

TEST_CASE("direct/blocked: random shapes by random blockings are right") {
  if (device_under_test() == nullptr) return;
  Dice dice(50);
  std::uint64_t seed = 5000;
  std::size_t done = 0;
  for (const Conv2dSpec& spec : support::random_cases(2 * shapes_wanted(), 51, 1 << 18)) {
    if (done == shapes_wanted()) break;
    const auto blocking = draw_fitting(dice, shape_of(spec), device_under_test()->info());
    if (!blocking) continue;
    check_blocking(spec, *blocking, ++seed);
    ++done;
  }
  CHECK(done == shapes_wanted());
}

TEST_CASE("direct/blocked: 1x1 kernels are right as products of matrices") {
  if (device_under_test() == nullptr) return;
  Dice dice(60);
  const std::size_t shapes = test::is_long() ? 100 : 8;
  for (std::size_t i = 0; i < shapes; ++i) {
    Conv2dSpec spec;
    spec.n = dice.one_of({1, 1, 3});
    spec.groups = dice.one_of({1, 1, 2});
    spec.c = spec.groups * dice.one_of({1, 5, 16, 33});
    spec.k = spec.groups * dice.one_of({3, 8, 20});
    spec.h = dice.one_of({4, 7, 8});
    spec.w = dice.one_of({4, 6, 7, 8});
    spec.r = spec.s = 1;
    spec.stride_y = spec.stride_x = dice.one_of({1, 1, 2});
    spec.bias = dice.one_of({Bias::none, Bias::per_channel});
    spec.activation = dice.one_of({Activation::none, Activation::relu});
    const auto drawn = draw_fitting(dice, shape_of(spec), device_under_test()->info());
    REQUIRE(drawn.has_value());
    Blocking b = *drawn;
    if (spec.c / spec.groups == 16 && i % 2 == 0) b.rows = Rows::unrolled;  // four channels a round
    Blocking in_place = b;
    in_place.packing = Packing::plane, in_place.border = Border::padded, in_place.x = 4;
    if (check(shape_of(spec), in_place, device_under_test()->info()).ok()) b = in_place;
    check_blocking(spec, b, 6000 + i);
  }
}

TEST_CASE("direct/blocked: the layer that every network has, by the blocking that serves it") {
  if (device_under_test() == nullptr) return;
  Conv2dSpec spec;
  spec.c = 24, spec.k = 40, spec.h = spec.w = 16, spec.r = spec.s = 3, spec.pad_y = spec.pad_x = 1;
  spec.bias = Bias::per_channel, spec.activation = Activation::relu;
  check_blocking(spec, {Lanes::channels, 4, 8, 4, Packing::pixels, View::texels, Rows::unrolled, Border::padded, 10},
                 1);
  check_blocking(spec, {Lanes::channels, 4, 7, 4, Packing::channels, View::image, Rows::looped, Border::padded, 8}, 2);
  check_blocking(spec, {Lanes::places, 8, 16, 1, Packing::channels, View::storage, Rows::looped, Border::guarded, 16},
                 3);
}

}  // namespace kiln::dynamic_shaders
