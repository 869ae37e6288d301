#include <catch2/catch.hpp>

#include "conformance/checks.hpp"
#include "conformance/compose_plans.hpp"
#include "conformance/plan_runner.hpp"
#include "conformance/reference.hpp"

namespace kiln::conformance {
namespace {

void check_runs(const KernelPlan& plan, std::vector<std::vector<float>>& tensors, Memory memory = Memory::devices) {
  INFO("plan " << plan.variant);
  const PlanOutcome outcome = run_plan(*subject().device, plan, tensors, memory);
  INFO(outcome.status.text());
  REQUIRE(outcome.status.ok());
  CHECK(outcome.damage == "");
}

void check_spec(const KernelSpec& spec, std::uint64_t seed) {
  INFO(canonical_text(spec));
  const KernelPlan plan = plan_for(spec);
  for (const Memory memory : {Memory::devices, Memory::hosts}) {
    if (memory == Memory::hosts && !subject().device->info().wraps_host_memory) continue;
    auto fractions = random_tensors(plan.tensors, seed);
    check_runs(plan, fractions, memory);
    CHECK(first_difference(expected_of(spec, fractions), fractions.back()) == "");
    auto integers = random_tensors(plan.tensors, seed, Values::integers);
    check_runs(plan, integers, memory);
    const Expected expected = expected_of(spec, integers);
    CHECK(first_difference(exact_in_integers(spec) ? exactly(expected) : expected, integers.back()) == "");
  }
}

GemmSpec gemm(std::int64_t m, std::int64_t n, std::int64_t k, Bias bias, Activation activation) {
  GemmSpec spec;
  spec.m = m, spec.n = n, spec.k = k, spec.bias = bias, spec.activation = activation;
  return spec;
}

Pass glsl_pass(std::string text, std::vector<Access> access, std::vector<Binding> bindings) {
  Pass pass;
  pass.source.dialect = Dialect::glsl;
  pass.source.text = std::move(text);
  pass.source.constants = {{"COUNT", "70"}};
  pass.source.bindings = std::move(access);
  pass.source.workgroup = {32, 1, 1};
  pass.bindings = std::move(bindings);
  pass.grid = {3, 1, 1};
  return pass;
}

constexpr const char* double_weights = R"(#version 430
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer Source { float weights[]; };
layout(std430, binding = 1) writeonly buffer Target { float packed_form[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < COUNT) packed_form[COUNT - 1 - i] = 2.0 * weights[i];
}
)";

constexpr const char* add_packed = R"(#version 430
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) readonly buffer Packed { float packed_form[]; };
layout(std430, binding = 2) writeonly buffer Y { float y[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < COUNT) y[i] = x[i] + packed_form[i];
}
)";

}  // namespace

TEST_CASE("conformance: a generated convolution is right", "[conformance][plan]") {
  if (!present()) return;
  Conv2dSpec spec = small_conv();
  check_spec(spec, 51);
  spec.bias = Bias::per_channel;
  check_spec(spec, 52);
  spec.activation = Activation::relu;
  check_spec(spec, 53);
  spec.stride_y = 2, spec.stride_x = 3, spec.pad_y = 0, spec.pad_x = 2, spec.dilation_x = 2;
  check_spec(spec, 54);
  spec.c = 6, spec.k = 9, spec.groups = 3;
  check_spec(spec, 55);
  spec.k = 6, spec.groups = 6;  // depthwise
  check_spec(spec, 56);
}

TEST_CASE("conformance: a generated matrix product is right", "[conformance][plan]") {
  if (!present()) return;
  check_spec(gemm(1, 1, 1, Bias::none, Activation::none), 57);
  check_spec(gemm(17, 33, 65, Bias::none, Activation::none), 58);
  check_spec(gemm(70, 3, 129, Bias::per_channel, Activation::none), 59);
  check_spec(gemm(5, 64, 7, Bias::per_channel, Activation::relu), 60);
}

TEST_CASE("conformance: a generated pooling is right", "[conformance][plan]") {
  if (!present()) return;
  Pool2dSpec spec;
  spec.n = 2, spec.c = 5, spec.h = 13, spec.w = 10, spec.r = 3, spec.s = 2;
  for (const PoolKind kind : {PoolKind::maximum, PoolKind::average}) {
    spec.kind = kind;
    check_spec(spec, 71);
    Pool2dSpec stepping = spec;
    stepping.stride_y = 2, stepping.stride_x = 3, stepping.pad_y = 2, stepping.pad_x = 1;
    check_spec(stepping, 72);
    Pool2dSpec whole = spec;
    whole.r = whole.h, whole.s = whole.w;
    check_spec(whole, 73);
  }
}

TEST_CASE("conformance: generated sums and activations are right", "[conformance][plan]") {
  if (!present()) return;
  for (const Activation activation : {Activation::none, Activation::relu, Activation::relu6}) {
    AddSpec add;
    add.shape = {2, 3, 5, 7}, add.activation = activation;
    check_spec(add, 74);
    add.shape = {4, 1000};
    check_spec(add, 75);
    if (activation == Activation::none) continue;
    ActivationSpec alone;
    alone.shape = {1, 6, 9, 8}, alone.activation = activation;
    check_spec(alone, 76);
  }
}

TEST_CASE("conformance: a generated softmax is right", "[conformance][plan]") {
  if (!present()) return;
  SoftmaxSpec spec;
  spec.shape = {1, 1000};
  check_spec(spec, 77);
  spec.shape = {2, 3, 4, 17};
  check_spec(spec, 78);
  spec.shape = {1};
  check_spec(spec, 79);
}

TEST_CASE("conformance: relu6 is fused into convolutions and products", "[conformance][plan]") {
  if (!present()) return;
  Conv2dSpec spec = small_conv();
  spec.activation = Activation::relu6, spec.bias = Bias::per_channel;
  check_spec(spec, 80);
  spec.c = spec.k = spec.groups = 6;  // depthwise
  check_spec(spec, 81);
  check_spec(gemm(5, 64, 70, Bias::per_channel, Activation::relu6), 82);
}

TEST_CASE("conformance: a plan made for a smaller device is right too", "[conformance][plan]") {
  if (!present()) return;
  // A generator that heeds these limits folds its launches; one that has no launch to shape does as always.
  DeviceInfo small = subject().device->info();
  small.max_grid = {5, 3, 40};
  small.max_workgroup = {8, 2, 1};
  small.max_workgroup_lanes = 16;
  Conv2dSpec spec = small_conv();
  spec.k = 11, spec.bias = Bias::per_channel;
  auto plan = subject().generator->generate(spec, small, subject().dialect);
  REQUIRE(plan.has_value());
  for (const Pass& pass : plan->passes) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      CHECK(pass.grid[axis] <= small.max_grid[axis]);
      CHECK(pass.source.workgroup[axis] <= small.max_workgroup[axis]);
    }
  }
  auto tensors = random_tensors(plan->tensors, 64);
  check_runs(*plan, tensors);
  CHECK(first_difference(expected_of(spec, tensors), tensors.back()) == "");
}

TEST_CASE("conformance: long sums are right", "[conformance][plan]") {
  if (!present()) return;
  // More terms than a software rasterizer lets a loop, or all loops of a lane together, go round.
  check_spec(gemm(2, 3, 150000, Bias::per_channel, Activation::none), 65);
  Conv2dSpec spec;
  spec.c = 70000, spec.h = 2, spec.w = 3, spec.k = 2, spec.r = 1, spec.s = 1;
  spec.bias = Bias::per_channel, spec.activation = Activation::relu;
  check_spec(spec, 66);
}

TEST_CASE("conformance: two convolutions through scratch are one plan", "[conformance][plan]") {
  if (!present()) return;
  const Conv2dSpec first = small_conv();
  Conv2dSpec second;
  second.n = first.n, second.c = first.k, second.h = first.out_h(), second.w = first.out_w();
  second.k = 4, second.r = 1, second.s = 3, second.activation = Activation::relu;
  const KernelPlan plan = compose(plan_for(first), plan_for(second));
  REQUIRE(validate(plan).ok());
  REQUIRE(plan.passes.size() >= 2);
  REQUIRE(plan.scratch.size() >= 1);
  auto tensors = random_tensors(plan.tensors, 61);
  check_runs(plan, tensors);

  // Each step is right when judged on what the step before answered: the first step alone, then the second on its
  // output.
  const KernelPlan alone = plan_for(first);
  std::vector<std::vector<float>> first_tensors{tensors[0], tensors[1], std::vector<float>(alone.tensors[2].bytes / 4)};
  check_runs(alone, first_tensors);
  CHECK(first_difference(expected_of(first, first_tensors), first_tensors.back()) == "");
  const std::vector<std::vector<float>> second_tensors{first_tensors.back(), tensors[2], tensors[3]};
  CHECK(first_difference(expected_of(second, second_tensors), tensors.back()) == "");
}

TEST_CASE("conformance: a plan packs its constant first", "[conformance][plan]") {
  if (!present()) return;
  if (subject().dialect != Dialect::glsl) {
    WARN("skipped: the packing plan is written in glsl, the device reads " << to_string(subject().dialect));
    return;
  }
  constexpr std::uint64_t count = 70;
  KernelPlan plan;
  plan.variant = "packs and adds";
  plan.tensors = {{"x", TensorRole::input, count * 4},
                  {"w", TensorRole::constant, count * 4},
                  {"y", TensorRole::output, count * 4}};
  plan.prepared = {{1, "reversed and doubled", count * 4}};
  plan.prepare = {glsl_pass(double_weights, {Access::read, Access::write},
                            {{BindingSource::tensor, 1}, {BindingSource::prepared, 0}})};
  plan.passes = {glsl_pass(add_packed, {Access::read, Access::read, Access::write},
                           {{BindingSource::tensor, 0}, {BindingSource::prepared, 0}, {BindingSource::tensor, 2}})};
  REQUIRE(validate(plan).ok());
  auto tensors = random_tensors(plan.tensors, 62);
  check_runs(plan, tensors);
  for (std::size_t i = 0; i < count; ++i) CHECK(tensors[2][i] == tensors[0][i] + 2 * tensors[1][count - 1 - i]);
}

TEST_CASE("conformance: an output that no pass writes stays poisoned", "[conformance][plan]") {
  if (!present()) return;
  if (subject().dialect != Dialect::glsl) {
    WARN("skipped: the lazy plan is written in glsl, the device reads " << to_string(subject().dialect));
    return;
  }
  // The checks above can fail: a kernel that leaves one element out is seen.
  const Conv2dSpec spec = small_conv();
  KernelPlan plan = plan_for(spec);
  auto tensors = random_tensors(plan.tensors, 63);
  plan.passes.back().source.text = std::string("#version 430\nlayout(local_size_x = 1) in;\nvoid main() {}\n");
  plan.passes.back().source.workgroup = {1, 1, 1};
  check_runs(plan, tensors);
  CHECK_THAT(first_difference(expected_of(spec, tensors), tensors.back()), Catch::StartsWith("element 0: nan"));
}

}  // namespace kiln::conformance
