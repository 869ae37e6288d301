// Every family of kernels in OpenCL C, run: compiled by this machine's clang, executed by the simulated chip, and each
// output compared with the double-precision reference.
#include <algorithm>
#include <catch2/catch.hpp>

#include "conformance/checks.hpp"
#include "conformance/plan_runner.hpp"
#include "conformance/reference.hpp"
#include "dynamic_shaders/family_plans.hpp"
#include "support/test_length.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using conformance::Values;

// Fractions within the derived bound, integers bit for bit where the spec allows no error of Winograd's.
void check_run(const KernelSpec& spec, const KernelPlan& plan, std::uint64_t seed, Values values) {
  auto tensors = conformance::random_tensors(plan.tensors, seed, values);
  const conformance::PlanOutcome outcome = conformance::run_plan(*conformance::subject().device, plan, tensors);
  CHECK(outcome.status.text() == "ok");
  CHECK(outcome.damage == "");
  if (!outcome.status.ok()) return;
  const conformance::Expected expected = conformance::expected_of(spec, tensors);
  const bool exact = values == Values::integers && conformance::exact_in_integers(spec);
  CHECK(conformance::first_difference(exact ? conformance::exactly(expected) : expected, tensors.back()) == "");
}

}  // namespace

TEST_CASE("device: every family's kernels compute what the reference does") {
  if (!conformance::present()) return;
  const DeviceInfo& info = conformance::subject().device->info();
  // The short form takes one shape of each variant, by turns, and another one on the other generation.
  constexpr std::size_t shapes = dynamic_shaders::shapes_of_variant;
  const std::size_t generation = info.name.find("gfx11") == std::string::npos ? 0 : 1;
  std::size_t number = 0;
  for (const dynamic_shaders::FamilySample& sample : dynamic_shaders::small_samples()) {
    const std::size_t variant = number / shapes, shape = number % shapes;
    ++number;
    if (!test::is_long() && shape != (variant + generation) % shapes) continue;
    INFO(canonical_text(sample.spec) << " by " << sample.variant);
    const KernelPlan plan = dynamic_shaders::plan_of_sample(sample, info, Dialect::opencl_c);
    check_run(sample.spec, plan, 5000 + number, number % 2 == 1 ? Values::integers : Values::fractions);
  }
}

}  // namespace kiln::amdgpu_pm4
