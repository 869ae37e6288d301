#include "dynamic_shaders/families/family_check.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "conformance/plan_runner.hpp"
#include "conformance/reference.hpp"
#include "dynamic_shaders/families/shuffled_groups.hpp"
#include "support/plugin_under_test.hpp"
#include "support/test_length.hpp"

namespace kiln::dynamic_shaders {
namespace {

struct Owned {
  Owned() {
    auto opened = opengl.driver().open("opengl:0");
    if (opened) {
      device = std::move(*opened);
    } else {
      absent = opened.error().message;
    }
  }

  support::PluginUnderTest opengl{"opengl"};
  std::shared_ptr<Device> device;
  std::string absent;
};

float fraction_of(std::uint64_t bits) {
  return static_cast<float>(static_cast<std::int64_t>(bits >> 40) - (1 << 23)) / static_cast<float>(1 << 23);
}

std::vector<std::vector<float>> values_for(const KernelPlan& plan, std::uint64_t seed, bool integers) {
  Dice dice(seed);
  std::vector<std::vector<float>> tensors;
  for (const TensorDecl& decl : plan.tensors) {
    std::vector<float>& tensor = tensors.emplace_back(decl.bytes / sizeof(float));
    if (decl.role == TensorRole::output) continue;
    for (float& value : tensor) {
      value = fraction_of(dice.next());
      if (integers) value = std::floor(value * 4.5F + 0.5F);
    }
  }
  return tensors;
}

}  // namespace

Device* device_under_test() {
  static Owned owned;  // complete only after EGL is open, hence destroyed before EGL's own exit handlers run
  if (owned.device == nullptr) {
    REQUIRE_FALSE(owned.absent.empty());
    WARN("skipped: " << owned.absent);
  }
  return owned.device.get();
}

std::size_t shapes_wanted() { return test::is_long() ? 300 : test::is_sanitized ? 3 : 16; }

std::uint64_t Dice::next() {  // splitmix64
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t bits = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

GemmSpec draw_any_product(Dice& dice) {
  GemmSpec spec;
  spec.m = 1 + static_cast<std::int64_t>(dice.next() % 70);
  spec.n = 1 + static_cast<std::int64_t>(dice.next() % 70);
  spec.k = 1 + static_cast<std::int64_t>(dice.next() % 140);
  spec.bias = dice.one_of({Bias::none, Bias::per_channel});
  spec.activation = dice.one_of({Activation::none, Activation::relu});
  return spec;
}

void check_plan(const KernelSpec& spec, const KernelPlan& plan, std::uint64_t seed) {
  const Status sound = validate(plan);
  CHECK(sound.text() == "ok");
  if (!sound.ok()) return;
  for (const bool integers : {false, true}) {
    INFO((integers ? "integers" : "fractions"));
    auto tensors = values_for(plan, seed, integers);
    const KernelPlan run = integers ? shuffled(plan, seed) : plan;
    const conformance::PlanOutcome outcome = conformance::run_plan(*device_under_test(), run, tensors);
    CHECK(outcome.status.text() == "ok");
    CHECK(outcome.damage == "");
    if (!outcome.status.ok()) return;
    const conformance::Expected expected = conformance::expected_of(spec, tensors);
    const bool exact = integers && conformance::exact_in_integers(spec);
    CHECK(conformance::first_difference(exact ? conformance::exactly(expected) : expected, tensors.back()) == "");
  }
}

}  // namespace kiln::dynamic_shaders
