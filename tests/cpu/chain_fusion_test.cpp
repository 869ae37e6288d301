// Which additions become part of a convolution.
#include "onednn/chain_plan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace kiln;
using namespace kiln::cpu;

namespace {

// input → conv a → conv b → add(b, a) → conv c. Tensors: 0 input, 1 a, 2 b, 3 sum, 4 result, 5 weights of all three.
struct Residual {
  Residual() {
    const Shape shape{1, 8, 4, 4};
    Conv2dSpec conv;
    conv.n = 1, conv.c = conv.k = 8, conv.h = conv.w = 4, conv.r = conv.s = 1;
    AddSpec add;
    add.shape = {1, 8, 4, 4};
    spec.tensors = {{shape, TensorRole::input},          {shape}, {shape}, {shape}, {shape, TensorRole::output},
                    {{8, 8, 1, 1}, TensorRole::constant}};
    spec.steps = {{conv, {0, 5, 1}}, {conv, {1, 5, 2}}, {add, {2, 1, 3}}, {conv, {3, 5, 4}}};
  }
  Conv2dSpec& conv(std::size_t step) { return std::get<Conv2dSpec>(spec.steps[step].layer); }
  std::vector<std::optional<FusedAdd>> fused() const { return fused_adds_of(spec); }

  ChainSpec spec;
};

bool none(const std::vector<std::optional<FusedAdd>>& fused) {
  return std::ranges::none_of(fused, [](const auto& each) { return each.has_value(); });
}

}  // namespace

TEST_CASE("chain fusion: a convolution adds a tensor that is computed before it and read no more", "[chain]") {
  Residual chain;
  chain.spec.steps[1].tensors = {0, 5, 2};  // b reads the input, so a is only added
  const std::vector<std::optional<FusedAdd>> expected{std::nullopt, FusedAdd{2, 1}, std::nullopt, std::nullopt};
  CHECK(chain.fused() == expected);
  chain.spec.steps[2].tensors = {1, 2, 3};  // the other operand first
  CHECK(chain.fused() == expected);
}

TEST_CASE("chain fusion: what is read otherwise, or is not the chain's own, is not overwritten", "[chain]") {
  CHECK(none(Residual().fused()));  // b's convolution reads a
  const auto with = [](const auto& change) {
    Residual chain;
    chain.spec.steps[1].tensors = {0, 5, 2};
    change(chain);
    return chain.fused();
  };
  CHECK(none(with([](Residual& chain) { chain.conv(1).activation = Activation::relu; })));
  CHECK(none(with([](Residual& chain) { chain.spec.tensors[1].role = TensorRole::output; })));
  CHECK(none(with([](Residual& chain) { chain.spec.tensors[2].role = TensorRole::output; })));
  CHECK(none(with([](Residual& chain) { chain.spec.steps[3].tensors[0] = 1; })));       // a is read later
  CHECK(none(with([](Residual& chain) { chain.spec.steps[3].tensors[0] = 2; })));       // b's result is read too
  CHECK(none(with([](Residual& chain) { chain.spec.steps[2].tensors = {2, 2, 3}; })));  // added to itself
  CHECK(none(with([](Residual& chain) { chain.spec.steps[2].tensors = {2, 0, 3}; })));  // the chain's input
  CHECK(none(with([](Residual& chain) { chain.spec.tensors[3].shape = {1, 128}; })));   // the sum is a view
}
