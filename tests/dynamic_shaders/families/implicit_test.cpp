#include "dynamic_shaders/families/implicit.hpp"

#include <catch2/catch.hpp>

#include "dynamic_shaders/families/family_check.hpp"
#include "support/conv_cases.hpp"

namespace kiln::dynamic_shaders {
namespace {

ImplicitTile draw_tile(Dice& dice, Staging staging) {
  return {staging,
          dice.one_of({4, 4, 8}),
          dice.one_of({1, 2, 3, 4}),
          dice.one_of({1, 2, 3, 4, 8}),
          dice.one_of({1, 5, 8, 16}),
          dice.one_of({1, 2, 3, 4, 8})};
}

void check_family(Staging staging, std::uint64_t seed) {
  if (device_under_test() == nullptr) return;
  const DeviceInfo& info = device_under_test()->info();
  Dice dice(seed);
  std::size_t done = 0;
  for (const Conv2dSpec& spec : support::random_cases(2 * shapes_wanted(), seed, 1 << 16)) {
    if (done == shapes_wanted()) break;
    const ImplicitTile tile = draw_tile(dice, staging);
    if (!check(spec, tile, info).ok()) continue;
    INFO(canonical_text(spec) << " by " << implicit_variant(tile));
    CHECK(implicit_of(implicit_variant(tile)) == tile);
    const auto plan = implicit_product(spec, tile, info, Dialect::glsl);
    INFO((plan ? std::string() : plan.error().text()));
    REQUIRE(plan.has_value());
    check_plan(spec, *plan, seed * 100 + done++);
  }
  CHECK(done == shapes_wanted());
}

}  // namespace

TEST_CASE("implicit/registers: random shapes are right") { check_family(Staging::registers, 100); }
TEST_CASE("implicit/shared: random shapes are right") { check_family(Staging::shared, 101); }

}  // namespace kiln::dynamic_shaders
