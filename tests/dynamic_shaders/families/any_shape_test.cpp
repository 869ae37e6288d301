// Every family whose programs serve any shape: right on random shapes, and few programs for all of them.
#include <catch2/catch.hpp>

#include <set>
#include <string>

#include "dynamic_shaders/families/family_check.hpp"
#include "dynamic_shaders/generator.hpp"
#include "support/conv_cases.hpp"

namespace kiln::dynamic_shaders {
namespace {

using Texts = std::set<std::string>;

std::string blocked(const char* parameters) { return std::string("direct/blocked:") + parameters; }

// Absent: the variant does not fit the spec. Adds the texts of its programs.
std::optional<KernelPlan> plan_of(const KernelSpec& spec, const std::string& variant, Texts& texts) {
  Generator generator;
  auto plan = generator.generate_variant(spec, device_under_test()->info(), Dialect::glsl, variant + "@any");
  if (!plan) {
    INFO(plan.error().text());
    REQUIRE(plan.error().code == StatusCode::unsupported);
    return std::nullopt;
  }
  CHECK(plan->variant == variant + "@any");
  for (const std::vector<Pass>* passes : {&plan->prepare, &plan->passes}) {
    for (const Pass& pass : *passes) texts.insert(pass.source.text);
  }
  return std::move(*plan);
}

// `draw` answers a spec; those that the variant does not fit are passed over. The variant is one of `variants` that
// share a family's shapes.
template <class Draw>
void check_variant(const std::string& variant, std::size_t most_programs, std::uint64_t seed, const Draw& draw,
                   std::size_t variants = 1) {
  if (device_under_test() == nullptr) return;
  Texts texts;
  const std::size_t shapes = (shapes_wanted() + variants - 1) / variants;
  for (std::size_t done = 0, attempt = 0; done < shapes; ++attempt) {
    REQUIRE(attempt < 400 * shapes_wanted());
    const KernelSpec spec = draw();
    INFO(canonical_text(spec) << " by " << variant);
    const auto plan = plan_of(spec, variant, texts);
    if (!plan) continue;
    check_plan(spec, *plan, seed * 1000 + done++);
  }
  CHECK(texts.size() <= most_programs);
}

// Small shapes of all kinds; of kernels, strides and dilations those that networks have, for which the blocked kernels
// have programs of their own.
Conv2dSpec draw_conv(Dice& dice) {
  Conv2dSpec spec;
  spec.n = dice.one_of({1, 1, 2});
  spec.groups = dice.one_of({1, 1, 1, 2});
  spec.c = spec.groups * dice.one_of({1, 3, 4, 8, 13});
  spec.k = spec.groups * dice.one_of({1, 4, 6, 16, 20});
  spec.r = spec.s = dice.one_of({1, 3, 3, 3});
  spec.h = dice.one_of({5, 7, 8, 12, 14});
  spec.w = dice.one_of({5, 7, 8, 12, 13, 16});
  spec.stride_y = spec.stride_x = dice.one_of({1, 1, 2});
  spec.pad_y = dice.one_of({0, 1, 1, 2});
  spec.pad_x = dice.one_of({0, 1, 1, 3});
  spec.bias = dice.one_of({Bias::none, Bias::per_channel});
  spec.activation = dice.one_of({Activation::none, Activation::relu});
  return spec;
}

Conv2dSpec draw_depthwise(Dice& dice) {
  Conv2dSpec spec = draw_conv(dice);
  spec.c = spec.k = spec.groups = dice.one_of({4, 8, 20, 33});
  spec.w = dice.one_of({8, 12, 16});
  spec.pad_y = spec.pad_x = spec.r / 2;
  return spec;
}

Conv2dSpec draw_winograd(Dice& dice) {
  Conv2dSpec spec = draw_conv(dice);
  spec.c /= spec.groups, spec.k /= spec.groups, spec.groups = 1;
  spec.r = spec.s = 3, spec.stride_y = spec.stride_x = 1;
  spec.accuracy = Accuracy::winograd;
  return spec;
}

}  // namespace

// Of a text there are four, with and without bias and ReLU, of each kind that what follows multiplies.
constexpr std::size_t epilogues = 4;

TEST_CASE("any shape: direct/plain is right, by four programs") {
  std::size_t next = 0;
  const auto cases = support::random_cases(400, 210, 1 << 16);
  check_variant("direct/plain", epilogues, 210, [&] { return cases[next++ % cases.size()]; });
}

TEST_CASE("any shape: direct/blocked is right, by programs for each kind of kernel and of rows") {
  Dice dice(211);
  const auto draw = [&] { return draw_conv(dice); };
  // 3 kernels and strides of outputs stored one by one or four at a time; packing of inputs, in place or picked, and
  // of weights.
  const std::size_t most = 5 * epilogues * 2 + 4;
  check_variant(
      blocked("lanes=channels,k=8,x=4,y=2,packing=channels,view=texels,rows=looped,border=padded,workgroup=4"), most,
      211, draw, 4);
  check_variant(
      blocked("lanes=places,k=4,x=3,y=1,packing=channels,view=storage,rows=unrolled,border=guarded,workgroup=8"), most,
      212, draw, 4);
  check_variant(blocked("lanes=places,k=4,x=4,y=1,packing=pixels,view=texels,rows=looped,border=padded,workgroup=16"),
                most, 213, draw, 4);
  check_variant(blocked("lanes=channels,k=4,x=4,y=1,packing=plane,view=texels,rows=looped,border=padded,workgroup=8"),
                most, 214, draw, 4);
}

TEST_CASE("any shape: implicit products are right, by four programs and one that packs weights") {
  const auto cases = support::random_cases(400, 215, 1 << 16);
  for (const char* variant : {"implicit/registers:k=4,pixels=2,lanes_k=2,lanes_p=8,depth=2",
                              "implicit/shared:k=4,pixels=2,lanes_k=4,lanes_p=8,depth=4"}) {
    std::size_t next = 0;
    check_variant(
        variant, epilogues + 1, 215, [&] { return cases[next++ % cases.size()]; }, 2);
  }
}

TEST_CASE("any shape: depthwise/blocked is right; planes and bands are for one shape") {
  Dice dice(216);
  check_variant("depthwise/blocked:x=4,y=2,view=texels", 4 * epilogues, 216, [&] { return draw_depthwise(dice); });
  if (device_under_test() == nullptr) return;
  Conv2dSpec spec;
  spec.c = spec.k = spec.groups = 8, spec.h = spec.w = 8, spec.r = spec.s = 3, spec.pad_y = spec.pad_x = 1;
  Texts texts;
  CHECK(plan_of(spec, "depthwise/planes:planes=1,view=storage", texts) == std::nullopt);
  CHECK(plan_of(spec, "depthwise/bands:rows=2,view=storage", texts) == std::nullopt);
}

TEST_CASE("any shape: Winograd's are right within the error that is allowed") {
  Dice dice(217);
  const auto draw = [&] { return draw_winograd(dice); };
  const std::string products =
      "lanes=channels,k=4,x=8,y=1,packing=plane,view=texels,rows=looped,border=padded,workgroup=8";
  // Inputs by texels or one by one, weights, products, outputs stored one by one or four at a time.
  check_variant("winograd/f2:" + products, 2 + 1 + 2 + 2 * epilogues, 217, draw, 2);
  check_variant("winograd/f4:" + products, 2 + 1 + 2 + 2 * epilogues, 218, draw, 2);
}

TEST_CASE("any shape: products of matrices are right") {
  Dice dice(219);
  const auto draw = [&] { return draw_any_product(dice); };
  check_variant("gemm/plain", epilogues, 219, draw);
  // Depths and columns by fours or not.
  check_variant("gemm/blocked:rows=4,quads=2,view=texels,workgroup=8", 4 * epilogues + 1, 220, draw);
  check_variant("gemm/shared:rows=4,columns=2,lanes_r=2,lanes_c=8,depth=4", epilogues, 221, draw);
}

TEST_CASE("any shape: what stands in for a first call is right, and few programs serve every layer of a network") {
  if (device_under_test() == nullptr) return;
  const DeviceInfo& info = device_under_test()->info();
  Generator generator;
  std::set<std::string> texts;
  std::size_t layers = 0;
  for (const std::int64_t channels : {16, 24, 64}) {
    for (const std::int64_t extent : {7, 8, 14}) {
      for (const std::int64_t kernel : {1, 3}) {
        Conv2dSpec spec;
        spec.c = channels, spec.k = 2 * channels, spec.h = spec.w = extent;
        spec.r = spec.s = kernel, spec.pad_y = spec.pad_x = kernel / 2;
        INFO(canonical_text(spec));
        const auto plans = generator.generic_plans(spec, info, Dialect::glsl);
        REQUIRE(plans.size() == 2);  // a fast one, and the one that always fits
        check_plan(spec, plans.front(), 300 + layers++);
        for (const std::vector<Pass>* passes : {&plans.front().prepare, &plans.front().passes}) {
          for (const Pass& pass : *passes) texts.insert(pass.source.text);
        }
      }
    }
  }
  CHECK(layers == 18);
  CHECK(texts.size() <= 8);
}

}  // namespace kiln::dynamic_shaders
