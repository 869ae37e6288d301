#include <catch2/catch.hpp>
#include <limits>

#include "conformance/checks.hpp"
#include "conformance/plan_runner.hpp"
#include "conformance/reference.hpp"
#include "conformance/shape_budget.hpp"
#include "support/conv_cases.hpp"
#include "support/test_length.hpp"

namespace kiln::conformance {
namespace {

bool interpreted() { return subject().device->info().kind == DeviceKind::simulated; }

// Multiply-adds a layer. A software rasterizer computes some 10^9 a second, an interpreter of machine code 3 * 10^8.
double budget() {
  if (test::is_long()) return interpreted() ? 50e6 : std::numeric_limits<double>::infinity();
  return interpreted() ? 5e6 : 8e6;
}

constexpr std::int64_t random_budget = 1 << 20;

void check_values(const Conv2dSpec& spec, const KernelPlan& plan, std::uint64_t seed, Values values, Memory memory) {
  auto tensors = random_tensors(plan.tensors, seed, values);
  const PlanOutcome outcome = run_plan(*subject().device, plan, tensors, memory);
  CHECK(outcome.status.text() == "ok");
  CHECK(outcome.damage == "");
  if (!outcome.status.ok()) return;
  const Expected expected = expected_of(spec, tensors);
  CHECK(first_difference(values == Values::integers ? exactly(expected) : expected, tensors.back()) == "");
}

// On memory of both kinds in turn, where the device has both.
Memory memory_for(std::uint64_t seed) {
  return subject().device->info().wraps_host_memory && seed % 2 == 1 ? Memory::hosts : Memory::devices;
}

}  // namespace

TEST_CASE("conformance: every layer of the workload tables is right", "[conformance][conv]") {
  if (!present()) return;
  std::uint64_t seed = 1000;
  for (const char* table : {"mobilenet_v2", "prior_system", "resnet50", "vgg16"}) {
    for (const support::NamedConv& layer : support::workload_cases(table)) {
      Conv2dSpec spec = within_budget(layer.spec, budget());
      if (++seed % 3 == 0) spec.bias = Bias::per_channel, spec.activation = Activation::relu;
      INFO(table << " " << layer.name << ": " << canonical_text(spec));
      const KernelPlan plan = plan_for(spec);
      const bool has_both = test::is_long();
      if (has_both || seed % 2 == 0) check_values(spec, plan, seed, Values::fractions, memory_for(seed));
      if (has_both || seed % 2 == 1) check_values(spec, plan, seed, Values::integers, memory_for(seed));
    }
  }
}

TEST_CASE("conformance: random shapes are right", "[conformance][conv][unsanitized]") {
  if (!present()) return;
  std::uint64_t seed = 2000;
  const std::size_t shapes = test::is_long() ? 300 : interpreted() ? 60 : test::is_sanitized ? 20 : 300;
  for (const Conv2dSpec& spec : support::random_cases(shapes, 20, random_budget)) {
    INFO("shape " << ++seed - 2000 << ": " << canonical_text(spec));
    const KernelPlan plan = plan_for(spec);
    check_values(spec, plan, seed, Values::fractions, memory_for(seed));
    if (seed % 4 == 0) check_values(spec, plan, seed, Values::integers, memory_for(seed / 4));
  }
}

}  // namespace kiln::conformance
