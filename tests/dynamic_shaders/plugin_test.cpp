#include <catch2/catch.hpp>

#include "dynamic_shaders/sample_specs.hpp"
#include "support/plugin_under_test.hpp"

namespace kiln::dynamic_shaders {

TEST_CASE("dynamic_shaders: the plugin registers its generator and nothing else") {
  support::PluginUnderTest plugin("dynamic_shaders");
  CHECK(plugin.registry().drivers().empty());
  const auto generators = plugin.registry().generators("dynamic_shaders");
  REQUIRE(generators.has_value());
  REQUIRE(generators->size() == 1);
  CHECK(generators->front()->plugin == "dynamic_shaders");
  CHECK(generators->front()->dialects == std::vector<Dialect>{Dialect::glsl, Dialect::opencl_c, Dialect::code_object});
  const auto generator = generators->front()->make({});
  REQUIRE(generator.has_value());
  REQUIRE((*generator)->dialects().size() == 3);
  CHECK((*generator)->dialects().front() == Dialect::glsl);
  const auto plan = (*generator)->generate(small_gemm(), sample_device(), Dialect::glsl);
  REQUIRE(plan.has_value());
  CHECK(plan->variant == "gemm/plain");
}

}  // namespace kiln::dynamic_shaders
