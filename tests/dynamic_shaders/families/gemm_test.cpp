#include "dynamic_shaders/families/gemm.hpp"

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

GemmBlocking draw_gemm_blocking(Dice& dice) {
  return {dice.one_of({1, 2, 3, 4, 8, 16}), dice.one_of({1, 2, 4}), dice.one_of({1, 8, 16, 32}),
          dice.one_of({View::storage, View::texels, View::image})};
}

GemmTile draw_tile(Dice& dice) {
  return {dice.one_of({4, 4, 8, 12}), dice.one_of({1, 2, 3, 4}), dice.one_of({1, 2, 3, 4, 8}),
          dice.one_of({1, 5, 8, 16}), dice.one_of({1, 2, 3, 4, 8})};
}

}  // namespace

TEST_CASE("gemm/blocked: random products are right, whatever the block leaves over") {
  if (device_under_test() == nullptr) return;
  const DeviceInfo& info = device_under_test()->info();
  Dice dice(90);
  for (std::size_t done = 0, attempt = 0; done < shapes_wanted(); ++attempt) {
    REQUIRE(attempt < 100 * shapes_wanted());
    const GemmSpec spec = draw_product(dice);
    const GemmBlocking blocking = draw_gemm_blocking(dice);
    if (!check(spec, blocking, info).ok()) continue;
    INFO(canonical_text(spec) << " by " << gemm_variant(blocking));
    CHECK(gemm_blocking_of(gemm_variant(blocking)) == blocking);
    const auto plan = gemm_blocked(spec, blocking, info, Dialect::glsl);
    INFO((plan ? std::string() : plan.error().text()));
    REQUIRE(plan.has_value());
    check_plan(spec, *plan, 9000 + done++);
  }
}

TEST_CASE("gemm/shared: random products are right, whatever the tile leaves over") {
  if (device_under_test() == nullptr) return;
  const DeviceInfo& info = device_under_test()->info();
  Dice dice(91);
  for (std::size_t done = 0, attempt = 0; done < shapes_wanted(); ++attempt) {
    REQUIRE(attempt < 100 * shapes_wanted());
    const GemmSpec spec = draw_product(dice);
    const GemmTile tile = draw_tile(dice);
    if (!check(spec, tile, info).ok()) continue;
    INFO(canonical_text(spec) << " by " << gemm_tile_variant(tile));
    CHECK(gemm_tile_of(gemm_tile_variant(tile)) == tile);
    const auto plan = gemm_shared(spec, tile, info, Dialect::glsl);
    INFO((plan ? std::string() : plan.error().text()));
    REQUIRE(plan.has_value());
    check_plan(spec, *plan, 9100 + done++);
  }
}

TEST_CASE("gemm/shared: a sum of more rounds than a pass has goes on in the output") {
  if (device_under_test() == nullptr) return;
  GemmSpec spec;
  spec.m = 5, spec.n = 6, spec.k = 120001;
  spec.bias = Bias::per_channel, spec.activation = Activation::relu;
  const auto plan = gemm_shared(spec, {4, 1, 2, 4, 1}, device_under_test()->info(), Dialect::glsl);
  INFO((plan ? std::string() : plan.error().text()));
  REQUIRE(plan.has_value());
  REQUIRE(plan->passes.size() == 3);
  check_plan(spec, *plan, 9500);
}

}  // namespace kiln::dynamic_shaders
