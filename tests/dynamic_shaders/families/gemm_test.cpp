#include "dynamic_shaders/families/product/gemm_blocked.hpp"

#include <catch2/catch.hpp>

#include "dynamic_shaders/families/family_check.hpp"

namespace kiln::dynamic_shaders {
namespace {

GemmSpec draw_product(Dice& dice) {
  GemmSpec spec;
  spec.m = dice.one_of({1, 2, 5, 16, 17, 33, 64});
  spec.n = dice.one_of({1, 3, 4, 31, 32, 64, 100});
  spec.k = dice.one_of({1, 4, 7, 16, 63, 64, 129});
  spec.bias = dice.one_of({Bias::none, Bias::per_channel});
  spec.activation = dice.one_of({Activation::none, Activation::relu});
  return spec;
}

GemmBlocking draw_blocking(Dice& dice) {
  return {dice.one_of({1, 2, 3, 4, 8, 16}), dice.one_of({1, 2, 4}), dice.one_of({1, 8, 16, 32}),
          dice.one_of({View::storage, View::texels, View::image})};
}

}  // namespace

TEST_CASE("gemm/blocked: random products are right, whatever the block leaves over") {
  if (device_under_test() == nullptr) return;
  const DeviceInfo& info = device_under_test()->info();
  Dice dice(90);
  for (std::size_t done = 0, attempt = 0; done < shapes_wanted(); ++attempt) {
    REQUIRE(attempt < 100 * shapes_wanted());
    const GemmSpec spec = draw_product(dice);
    const GemmBlocking blocking = draw_blocking(dice);
    if (!check(spec, blocking, info).ok()) continue;
    INFO(canonical_text(spec) << " by " << gemm_variant(blocking));
    CHECK(gemm_blocking_of(gemm_variant(blocking)) == blocking);
    const auto plan = gemm_blocked(spec, blocking, info, Dialect::glsl);
    INFO((plan ? std::string() : plan.error().text()));
    REQUIRE(plan.has_value());
    check_plan(spec, *plan, 9000 + done++);
  }
}

}  // namespace kiln::dynamic_shaders
