// That what the space of variants holds compiles: on the machine's OpenGL device, for a small layer of each kind.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <utility>

#include "dynamic_shaders/families/family_check.hpp"
#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/space/variant_space.hpp"
#include "support/test_length.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr std::size_t long_text = 24 << 10;  // bytes: what is longer takes a compiler the longest

std::size_t points_wanted() { return test::is_long() ? most_candidates : test::is_sanitized ? 4 : 12; }

Conv2dSpec layer(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t groups) {
  Conv2dSpec spec;
  spec.c = spec.k = 16, spec.groups = groups;
  spec.h = spec.w = extent;
  spec.r = spec.s = kernel, spec.stride_y = spec.stride_x = stride;
  spec.pad_y = spec.pad_x = kernel / 2;
  spec.bias = Bias::per_channel, spec.activation = Activation::relu;
  return spec;
}

bool is_short(const KernelPlan& plan) {
  for (const std::vector<Pass>* passes : {&plan.prepare, &plan.passes}) {
    for (const Pass& pass : *passes) {
      if (pass.source.text.size() > long_text) return false;
    }
  }
  return true;
}

// Builds each program of the plan that is not in `built`.
void check_builds(const KernelPlan& plan, std::set<std::string>& built) {
  for (const std::vector<Pass>* passes : {&plan.prepare, &plan.passes}) {
    for (const Pass& pass : *passes) {
      if (!built.insert(pass.source.text).second) continue;
      const auto program = device_under_test()->build(pass.source);
      INFO((program ? std::string() : program.error().text()));
      CHECK(program.has_value());
    }
  }
}

// Points in a seeded order. In the short form those with long texts are passed over, but for one of each family.
void check_space(const Conv2dSpec& spec, std::uint64_t seed) {
  if (device_under_test() == nullptr) return;
  INFO(canonical_text(spec));
  const DeviceInfo& device = device_under_test()->info();
  std::vector<Candidate> points = conv_space(spec, device);
  const std::size_t wanted = std::min(points.size(), points_wanted());
  Dice dice(seed);
  for (std::size_t i = points.size(); i > 1; --i) std::swap(points[i - 1], points[dice.next() % i]);
  Generator generator;
  std::set<std::string> families, built;
  std::size_t done = 0;
  for (const Candidate& point : points) {
    INFO(point.variant);
    const bool first = families.insert(point.variant.substr(0, point.variant.find(':'))).second;
    if (!first && done >= wanted) continue;
    const auto plan = generator.generate_variant(spec, device, Dialect::glsl, point.variant);
    REQUIRE(plan.has_value());
    if (!first && !test::is_long() && !is_short(*plan)) continue;
    check_builds(*plan, built);
    ++done;
  }
  CHECK(done >= wanted);
  CHECK(families.size() >= 2);
}

}  // namespace

TEST_CASE("space: what it holds of a strided layer builds") { check_space(layer(14, 3, 2, 1), 70); }

TEST_CASE("space: what it holds of a grouped layer builds") { check_space(layer(14, 3, 1, 4), 71); }

TEST_CASE("space: what it holds of a 1x1 kernel builds") { check_space(layer(14, 1, 1, 1), 72); }

TEST_CASE("space: what it holds of a depthwise layer builds") { check_space(layer(16, 3, 1, 16), 73); }

TEST_CASE("space: what it holds of a layer that Winograd's algorithms may serve builds") {
  Conv2dSpec spec = layer(14, 3, 1, 1);
  spec.accuracy = Accuracy::winograd;
  check_space(spec, 74);
}

}  // namespace kiln::dynamic_shaders
