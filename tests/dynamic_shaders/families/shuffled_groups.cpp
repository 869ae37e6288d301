#include "dynamic_shaders/families/shuffled_groups.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <string>

#include "conformance/plan_runner.hpp"
#include "dynamic_shaders/families/family_check.hpp"

namespace kiln::dynamic_shaders {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::uint32_t groups_of(const Pass& pass) { return pass.grid[0] * pass.grid[1] * pass.grid[2]; }

std::string in_glsl(const GroupOrder& order, const std::array<std::uint32_t, 3>& grid) {
  const auto number = [](std::uint32_t value) { return std::to_string(value) + "u"; };
  const std::string x = number(grid[0]), y = number(grid[1]);
  return "uvec3 order_group() {\n  uint at = (gl_WorkGroupID.z * " + y + " + gl_WorkGroupID.y) * " + x +
         " + gl_WorkGroupID.x;\n  at = (" + number(order.factor) + " * at + " + number(order.shift) + ") % " +
         number(order.groups) + ";\n  return uvec3(at % " + x + ", at / " + x + " % " + y + ", at / " + x + " / " + y +
         ");\n}\nuvec3 order_lane() { return order_group() * gl_WorkGroupSize + gl_LocalInvocationID; }\n";
}

// y[i] = x[i] + y[i - 1], a lane a group: right only where groups run one after the other, from the first to the last.
KernelPlan leaning_plan(std::uint32_t count) {
  KernelPlan plan;
  plan.variant = "leaning";
  plan.tensors = {{"x", TensorRole::input, count * sizeof(float)}, {"y", TensorRole::output, count * sizeof(float)}};
  Pass& pass = plan.passes.emplace_back();
  pass.source.dialect = Dialect::glsl;
  pass.source.text =
      "#version 430\nlayout(local_size_x = 1) in;\n"
      "layout(std430, binding = 0) readonly buffer Of_x { float x[]; };\n"
      "layout(std430, binding = 1) buffer Of_y { float y[]; };\n"
      "void main() {\n  int i = int(gl_WorkGroupID.x);\n  y[i] = x[i] + (i > 0 ? y[i - 1] : 0.0);\n}\n";
  pass.source.bindings = {Access::read, Access::read_write};
  pass.source.workgroup = {1, 1, 1};
  pass.bindings = {{BindingSource::tensor, 0}, {BindingSource::tensor, 1}};
  pass.grid = {count, 1, 1};
  return plan;
}

}  // namespace

GroupOrder group_order(std::uint32_t groups, std::uint64_t seed) noexcept {
  GroupOrder order;
  order.groups = groups;
  if (groups < 2) return order;
  Dice dice(seed);
  const std::uint32_t most = std::min(groups - 1, UINT32_MAX / groups - 1);
  order.factor = 1 + static_cast<std::uint32_t>(dice.next() % most);
  while (std::gcd(order.factor, groups) != 1) order.factor = order.factor % most + 1;  // 1 always will do
  order.shift = 1 + static_cast<std::uint32_t>(dice.next() % (groups - 1));
  if (order.at(1) == 1) order.shift = order.shift % (groups - 1) + 1;
  return order;
}

GroupOrder reversed_order(std::uint32_t groups) noexcept { return {groups, groups - 1, groups - 1}; }

Pass reordered(Pass pass, const GroupOrder& order) {
  std::string& text = pass.source.text;
  replace_all(text, "gl_WorkGroupID", "order_group()");
  replace_all(text, "gl_GlobalInvocationID", "order_lane()");
  const std::size_t body = text.find("void main()");
  REQUIRE(body != std::string::npos);
  text.insert(body, in_glsl(order, pass.grid));
  return pass;
}

KernelPlan shuffled(KernelPlan plan, std::uint64_t seed) {
  for (Pass& pass : plan.passes) pass = reordered(std::move(pass), group_order(groups_of(pass), ++seed));
  for (Pass& pass : plan.prepare) pass = reordered(std::move(pass), group_order(groups_of(pass), ++seed));
  return plan;
}

TEST_CASE("shuffled groups: every group's work is done once, by another") {
  for (const std::uint32_t groups : {1u, 2u, 3u, 4u, 64u, 1001u, 65536u, 100000u}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      INFO(groups << " groups, seed " << seed);
      const GroupOrder order = group_order(groups, seed);
      std::vector<bool> done(groups);
      for (std::uint32_t i = 0; i < groups; ++i) done[order.at(i)] = true;
      CHECK(std::ranges::count(done, true) == groups);
      CHECK(std::uint64_t{order.factor} * (groups - 1) + order.shift <= UINT32_MAX);
      if (groups > 1) CHECK(order.at(0) != 0);
      if (groups > 2) CHECK(order.at(1) != 1);
    }
  }
}

TEST_CASE("shuffled groups: a kernel that leans on the order of its groups is found out") {
  if (device_under_test() == nullptr) return;
  constexpr std::uint32_t count = 4096;
  KernelPlan plan = leaning_plan(count);
  plan.passes[0] = reordered(std::move(plan.passes[0]), reversed_order(count));
  std::vector<std::vector<float>> tensors{std::vector<float>(count, 1.0F), {}};
  const conformance::PlanOutcome outcome = conformance::run_plan(*device_under_test(), plan, tensors);
  REQUIRE(outcome.status.text() == "ok");
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < count; ++i) wrong += tensors[1][i] != static_cast<float>(i + 1);
  CHECK(wrong > count / 2);
}

}  // namespace kiln::dynamic_shaders
