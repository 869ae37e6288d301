#include "dynamic_shaders/families/depthwise.hpp"

#include <catch2/catch.hpp>

#include "dynamic_shaders/families/family_check.hpp"

namespace kiln::dynamic_shaders {
namespace {

Conv2dSpec draw_depthwise_shape(Dice& dice) {
  Conv2dSpec spec;
  spec.n = dice.one_of({1, 1, 2});
  spec.c = spec.k = spec.groups = dice.one_of({4, 8, 20, 33});
  spec.h = dice.one_of({4, 6, 7, 8, 14});
  spec.w = dice.one_of({4, 7, 8, 12, 14, 16});
  spec.r = dice.one_of({1, 3, 3, 3, 5});
  spec.s = dice.one_of({1, 3, 3, 3, 5});
  spec.stride_y = dice.one_of({1, 1, 2});
  spec.stride_x = dice.one_of({1, 1, 2});
  spec.pad_y = dice.one_of({0, 1, 1, 2});
  spec.pad_x = dice.one_of({0, 1, 1, 3});
  spec.dilation_y = dice.one_of({1, 1, 2});
  spec.dilation_x = dice.one_of({1, 1, 2});
  spec.bias = dice.one_of({Bias::none, Bias::per_channel});
  spec.activation = dice.one_of({Activation::none, Activation::relu});
  return spec;
}

std::vector<Depthwise> choices_for(const Conv2dSpec& spec, const DeviceInfo& device, std::string_view family) {
  std::vector<Depthwise> some;
  for (const Depthwise& choice : depthwise_space(spec, device)) {
    if (depthwise_variant(choice).starts_with(family) && choice.x * choice.y <= 32) some.push_back(choice);
  }
  return some;
}

void check_depthwise(std::string_view family, std::uint64_t seed) {
  if (device_under_test() == nullptr) return;
  const DeviceInfo& info = device_under_test()->info();
  Dice dice(seed);
  for (std::size_t done = 0, attempt = 0; done < shapes_wanted(); ++attempt) {
    REQUIRE(attempt < 100 * shapes_wanted());
    const Conv2dSpec spec = draw_depthwise_shape(dice);
    if (!validate(KernelSpec(spec)).ok()) continue;
    const std::vector<Depthwise> choices = choices_for(spec, info, family);
    if (choices.empty()) continue;
    const Depthwise& choice = choices[dice.next() % choices.size()];
    INFO(canonical_text(spec) << " by " << depthwise_variant(choice));
    CHECK(depthwise_of(depthwise_variant(choice)) == choice);
    const auto plan = depthwise(spec, choice, info, Dialect::glsl);
    INFO((plan ? std::string() : plan.error().text()));
    REQUIRE(plan.has_value());
    check_plan(spec, *plan, seed * 100 + done++);
  }
}

}  // namespace

TEST_CASE("depthwise/planes: random shapes are right") { check_depthwise("depthwise/planes:", 80); }
TEST_CASE("depthwise/blocked: random shapes are right") { check_depthwise("depthwise/blocked:", 81); }
TEST_CASE("depthwise/bands: random shapes are right, also where rows begin within a texel") {
  check_depthwise("depthwise/bands:", 82);
}

}  // namespace kiln::dynamic_shaders
