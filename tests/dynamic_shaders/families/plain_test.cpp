#include <catch2/catch.hpp>

#include "dynamic_shaders/families/direct.hpp"
#include "dynamic_shaders/families/family_check.hpp"
#include "dynamic_shaders/families/gemm.hpp"
#include "support/conv_cases.hpp"

namespace kiln::dynamic_shaders {

TEST_CASE("direct/plain: random shapes are right") {
  if (device_under_test() == nullptr) return;
  std::uint64_t seed = 11000;
  for (const Conv2dSpec& spec : support::random_cases(shapes_wanted(), 110, 1 << 16)) {
    INFO(canonical_text(spec));
    const auto plan = direct_plain(spec, device_under_test()->info(), Dialect::glsl);
    REQUIRE(plan.has_value());
    check_plan(spec, *plan, ++seed);
  }
}

TEST_CASE("gemm/plain: random products are right") {
  if (device_under_test() == nullptr) return;
  Dice dice(120);
  for (std::size_t i = 0; i < shapes_wanted(); ++i) {
    const GemmSpec spec = draw_any_product(dice);
    INFO(canonical_text(spec));
    const auto plan = gemm_plain(spec, device_under_test()->info(), Dialect::glsl);
    REQUIRE(plan.has_value());
    check_plan(spec, *plan, 12000 + i);
  }
}

}  // namespace kiln::dynamic_shaders
