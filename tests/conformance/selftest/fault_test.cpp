#include <catch2/catch.hpp>

#include "conformance/checks.hpp"
#include "conformance/plan_runner.hpp"
#include "conformance/reference.hpp"
#include "conformance/selftest/host_device.hpp"

namespace kiln::conformance {
namespace {

struct Seen {
  std::string damage, difference;
};

Seen seen_with(Fault fault, Memory memory) {
  WorkCounters counters;
  HostDevice device(counters, fault);
  const KernelPlan plan = plan_for(small_conv());
  auto tensors = random_tensors(plan.tensors, 71);
  const PlanOutcome outcome = run_plan(device, plan, tensors, memory);
  REQUIRE(outcome.status.ok());
  // What the input was, the runner was told; it is the given one that the result is judged by.
  return {outcome.damage, first_difference(expected_of(small_conv(), tensors), tensors.back())};
}

}  // namespace

TEST_CASE("the plan runner sees planted faults") {
  for (const Memory memory : {Memory::devices, Memory::hosts}) {
    const Seen none = seen_with(Fault::none, memory);
    CHECK(none.damage == "");
    CHECK(none.difference == "");
    CHECK_THAT(seen_with(Fault::skips_last_element, memory).difference, Catch::Contains("nan"));
    CHECK_THAT(seen_with(Fault::writes_behind_output, memory).damage, Catch::Contains("behind output"));
    CHECK_THAT(seen_with(Fault::writes_input, memory).damage, Catch::Contains("input, which is read-only"));
    CHECK_THAT(seen_with(Fault::rounds_badly, memory).difference, Catch::StartsWith("element "));
  }
}

TEST_CASE("Winograd's allowance is given where the spec allows it and an algorithm exists, and there alone") {
  Conv2dSpec spec = small_conv();
  spec.r = spec.s = 3, spec.stride_y = spec.stride_x = spec.dilation_y = spec.dilation_x = 1;
  const auto bounds_of = [](const Conv2dSpec& of) {
    return expected_of(of, random_tensors(plan_for(of).tensors, 72)).bounds;
  };
  const std::vector<double> direct = bounds_of(spec);
  CHECK(exact_in_integers(spec));
  spec.accuracy = Accuracy::winograd;
  const std::vector<double> allowed = bounds_of(spec);
  CHECK_FALSE(exact_in_integers(spec));
  REQUIRE(allowed.size() == direct.size());
  bool wider = false;
  for (std::size_t i = 0; i < direct.size(); ++i) {
    CHECK(allowed[i] >= direct[i]);
    wider = wider || allowed[i] > direct[i];
  }
  CHECK(wider);
  spec.stride_y = spec.stride_x = 2;
  CHECK(exact_in_integers(spec));
}

}  // namespace kiln::conformance
