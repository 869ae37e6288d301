#include "dynamic_shaders/families/winograd.hpp"

#include <catch2/catch.hpp>

#include "dynamic_shaders/families/family_check.hpp"

namespace kiln::dynamic_shaders {
namespace {

Conv2dSpec draw_winograd_shape(Dice& dice) {
  Conv2dSpec spec;
  spec.n = dice.one_of({1, 1, 2});
  spec.c = dice.one_of({1, 3, 8, 17});
  spec.k = dice.one_of({2, 5, 16, 33});
  spec.h = dice.one_of({4, 6, 7, 8, 13, 14, 16});
  spec.w = dice.one_of({3, 4, 6, 7, 8, 12, 14, 15, 16, 18, 20});
  spec.r = spec.s = 3;
  spec.pad_y = dice.one_of({0, 1, 1, 2});
  spec.pad_x = dice.one_of({0, 1, 1, 2});
  spec.bias = dice.one_of({Bias::none, Bias::per_channel});
  spec.activation = dice.one_of({Activation::none, Activation::relu});
  spec.accuracy = Accuracy::winograd;
  return spec;
}

Blocking draw_winograd_blocking(Dice& dice) {
  return {dice.one_of({Lanes::channels, Lanes::places, Lanes::groups}),
          dice.one_of<std::int64_t>({4, 8, 16}),
          dice.one_of<std::int64_t>({4, 8, 12}),
          1,
          Packing::plane,
          dice.one_of({View::storage, View::texels, View::texels, View::image}),
          dice.one_of({Rows::looped, Rows::unrolled}),
          Border::padded,
          dice.one_of<std::int64_t>({2, 8, 16})};
}

void check_winograd_family(std::int64_t m, std::uint64_t seed) {
  if (device_under_test() == nullptr) return;
  const DeviceInfo& info = device_under_test()->info();
  Dice dice(seed);
  for (std::size_t i = 0; i < shapes_wanted(); ++i) {
    const Conv2dSpec spec = draw_winograd_shape(dice);
    Blocking blocking = draw_winograd_blocking(dice);
    if (spec.c % 4 != 0) blocking.rows = Rows::looped;
    INFO(canonical_text(spec) << " by f" << m << " " << to_text(blocking));
    const auto plan = winograd(spec, m, blocking, info, Dialect::glsl);
    INFO((plan ? std::string() : plan.error().text()));
    REQUIRE(plan.has_value());
    CHECK(plan->passes.size() == 3);
    check_plan(spec, *plan, seed * 100 + i);
  }
}

}  // namespace

TEST_CASE("winograd/f2: random shapes are right within the error that is allowed") { check_winograd_family(2, 70); }
TEST_CASE("winograd/f4: random shapes are right within the error that is allowed") { check_winograd_family(4, 72); }

TEST_CASE("winograd: it is refused where the spec does not allow it or it does not exist") {
  if (device_under_test() == nullptr) return;
  Dice dice(71);
  const Conv2dSpec allowed = draw_winograd_shape(dice);
  std::vector<Conv2dSpec> others(5, allowed);
  others[0].accuracy = Accuracy::direct, others[1].stride_x = 2, others[2].dilation_y = 2, others[3].r = 2;
  others[4].c = others[4].k = others[4].groups = 2;
  for (const Conv2dSpec& spec : others) {
    INFO(canonical_text(spec));
    const auto plan = winograd(spec, 4, draw_winograd_blocking(dice), device_under_test()->info(), Dialect::glsl);
    REQUIRE_FALSE(plan.has_value());
    CHECK(plan.error().code == StatusCode::unsupported);
  }
}

}  // namespace kiln::dynamic_shaders
