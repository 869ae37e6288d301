#include <catch2/catch.hpp>

#include "cpu/cpu_under_test.hpp"

namespace kiln::cpu_test {

TEST_CASE("the library generator hands a spec through as one pass") {
  OpenedCpu& cpu = shared_cpu();
  Conv2dSpec spec;
  spec.c = 3, spec.h = 9, spec.w = 9, spec.k = 4, spec.r = 3, spec.s = 3;
  spec.bias = Bias::per_channel;
  const auto plan = cpu.generator->generate(spec, cpu.device->info(), Dialect::library);
  REQUIRE(plan.has_value());
  CHECK(validate(*plan).ok());
  CHECK(plan->variant == "onednn");
  CHECK(plan->tensors == tensors_of(spec));
  CHECK(plan->prepare.empty());
  REQUIRE(plan->passes.size() == 1);
  const KernelSource& source = plan->passes[0].source;
  CHECK(source.dialect == Dialect::library);
  CHECK(source.text == canonical_text(spec));
  CHECK(source.spec == KernelSpec(spec));
  CHECK(source.bindings == std::vector{Access::read, Access::read, Access::read, Access::write});
  for (std::uint32_t i = 0; i < 4; ++i) CHECK(plan->passes[0].bindings[i].index == i);
}

TEST_CASE("a user's kernel is unsupported, by the generator and by the device") {
  OpenedCpu& cpu = shared_cpu();
  UserKernelSpec kernel;
  kernel.path = "blur.comp";
  kernel.text = "void main() {}";
  kernel.dialect = Dialect::glsl;
  const auto plan = cpu.generator->generate(kernel, cpu.device->info(), Dialect::library);
  REQUIRE_FALSE(plan.has_value());
  CHECK(plan.error().code == StatusCode::unsupported);
  CHECK_THAT(plan.error().message, Catch::Contains("blur.comp"));
  const auto program = cpu.device->build(source_of(kernel));
  REQUIRE_FALSE(program.has_value());
  CHECK(program.error().code == StatusCode::unsupported);
  CHECK_THAT(program.error().message, Catch::Contains("blur.comp"));
}

TEST_CASE("the library generator writes no other dialect") {
  OpenedCpu& cpu = shared_cpu();
  CHECK(cpu.generator->dialects().size() == 1);
  const auto plan = cpu.generator->generate(GemmSpec{2, 2, 2}, cpu.device->info(), Dialect::glsl);
  REQUIRE_FALSE(plan.has_value());
  CHECK(plan.error().code == StatusCode::unsupported);
}

}  // namespace kiln::cpu_test
