// Chains of layers on the CPU device: results against the double-precision chain, in the plans that the first run
// times.
#include <catch2/catch.hpp>

#include "conformance/checks.hpp"
#include "conformance/plan_runner.hpp"
#include "cpu/cpu_under_test.hpp"
#include "reference/operation_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kiln::cpu_test {
namespace {

// A chain that is built step by step.
class Network {
 public:
  explicit Network(const Shape& image) { last_ = tensor(image, TensorRole::input); }

  std::uint32_t last() const { return last_; }
  ChainSpec spec;

  std::uint32_t tensor(const Shape& shape, TensorRole role = TensorRole::invalid) {
    spec.tensors.push_back({shape, role});
    return static_cast<std::uint32_t>(spec.tensors.size() - 1);
  }

  std::uint32_t conv(std::int64_t k, std::int64_t r, std::int64_t stride, std::int64_t groups, Activation activation) {
    const Shape from = spec.tensors[last_].shape;
    Conv2dSpec layer;
    layer.n = from[0], layer.c = from[1], layer.h = from[2], layer.w = from[3];
    layer.k = k, layer.r = layer.s = r, layer.stride_y = layer.stride_x = stride, layer.pad_y = layer.pad_x = r / 2;
    layer.groups = groups, layer.activation = activation, layer.bias = Bias::per_channel;
    const std::uint32_t weights = tensor({k, layer.c / groups, r, r}, TensorRole::constant);
    const std::uint32_t bias = tensor({k}, TensorRole::constant);
    const std::uint32_t to = tensor({layer.n, k, layer.out_h(), layer.out_w()});
    spec.steps.push_back({layer, {last_, weights, bias, to}});
    return last_ = to;
  }

  std::uint32_t pool(PoolKind kind, std::int64_t window, std::int64_t stride, std::int64_t pad) {
    const Shape from = spec.tensors[last_].shape;
    Pool2dSpec layer;
    layer.n = from[0], layer.c = from[1], layer.h = from[2], layer.w = from[3];
    layer.r = window == 0 ? layer.h : window, layer.s = window == 0 ? layer.w : window;
    layer.stride_y = layer.stride_x = stride, layer.pad_y = layer.pad_x = pad, layer.kind = kind;
    const std::uint32_t to = tensor({layer.n, layer.c, layer.out_h(), layer.out_w()});
    spec.steps.push_back({layer, {last_, to}});
    return last_ = to;
  }

  std::uint32_t add(std::uint32_t other, Activation activation) {
    AddSpec layer;
    std::ranges::copy(spec.tensors[last_].shape, layer.shape.begin());
    layer.activation = activation;
    const std::uint32_t to = tensor(spec.tensors[last_].shape);
    spec.steps.push_back({layer, {last_, other, to}});
    return last_ = to;
  }

  // The last tensor, flattened by the layer, as a tensor of another shape.
  std::uint32_t activate(const Shape& shape) {
    ActivationSpec layer;
    layer.shape = {shape[0], 1};
    for (std::size_t i = 1; i < shape.size(); ++i) layer.shape[1] *= shape[i];
    layer.activation = Activation::relu;
    const std::uint32_t to = tensor(shape);
    spec.steps.push_back({layer, {last_, to}});
    return last_ = to;
  }

  std::uint32_t classes(std::int64_t n) {
    const Shape from = spec.tensors[last_].shape;
    GemmSpec layer{from[0], n, 1};
    for (std::size_t i = 1; i < from.size(); ++i) layer.k *= from[i];
    layer.bias = Bias::per_channel;
    const std::uint32_t weights = tensor({layer.k, n}, TensorRole::constant);
    const std::uint32_t bias = tensor({n}, TensorRole::constant);
    const std::uint32_t to = tensor({from[0], n});
    spec.steps.push_back({layer, {last_, weights, bias, to}});
    SoftmaxSpec softmax;
    softmax.shape = {from[0], n};
    last_ = tensor({from[0], n});
    spec.steps.push_back({softmax, {to, last_}});
    return last_;
  }

 private:
  std::uint32_t last_ = 0;
};

// Runs the chain and compares each result with the double-precision chain.
void check(const ChainSpec& spec, std::uint64_t seed) {
  REQUIRE(validate(KernelSpec(spec)).text() == "ok");
  const KernelPlan plan = conformance::plan_for(spec);
  auto given = conformance::random_tensors(plan.tensors, seed);
  // Weights as small as they are in a network, so that no result grows beyond the others.
  std::size_t at = 0;
  for (const ChainSpec::Tensor& tensor : spec.tensors) {
    if (tensor.role == TensorRole::invalid) continue;
    std::vector<float>& values = given[at++];
    if (tensor.role != TensorRole::constant || tensor.shape.size() == 1) continue;
    const double products = static_cast<double>(values.size()) /
                            static_cast<double>(tensor.shape.size() == 4 ? tensor.shape[0] : tensor.shape[1]);
    for (float& value : values) value *= static_cast<float>(std::sqrt(6 / products));
  }
  std::vector<std::vector<double>> wanted(spec.tensors.size());
  at = 0;
  for (std::size_t i = 0; i < spec.tensors.size(); ++i) {
    if (spec.tensors[i].role != TensorRole::invalid) wanted[i].assign(given[at].begin(), given[at].end()), ++at;
  }
  double bound = 0;
  for (const ChainSpec::Step& step : spec.steps) {
    const KernelSpec layer = kernel_spec_of(step.layer);
    reference::LayerInputs from;
    std::vector<std::vector<float>> constants;
    constants.reserve(2);
    for (std::size_t i = 0; i + 1 < step.tensors.size(); ++i) {
      const std::vector<double>& values = wanted[step.tensors[i]];
      if (spec.tensors[step.tensors[i]].role == TensorRole::constant) {
        from.constants.emplace_back(constants.emplace_back(values.begin(), values.end()));
      } else {
        from.inputs.emplace_back(values);
      }
    }
    bound = reference::chain_error(layer, from, bound);
    wanted[step.tensors.back()] = reference::evaluate(layer, from).value;
  }
  for (int run = 0; run < 2; ++run) {  // the run that chooses, and one that repeats
    auto tensors = given;
    const auto outcome = conformance::run_plan(*shared_cpu().device, plan, tensors);
    REQUIRE(outcome.status.text() == "ok");
    CHECK(outcome.damage == "");
    at = 0;
    for (std::size_t i = 0; i < spec.tensors.size(); ++i) {
      if (spec.tensors[i].role == TensorRole::invalid) continue;
      const std::vector<float>& found = tensors[at++];
      if (spec.tensors[i].role != TensorRole::output) continue;
      double largest = 0, worst = 0;
      for (std::size_t e = 0; e < found.size(); ++e) {
        largest = std::max(largest, std::abs(wanted[i][e]));
        const double error = std::abs(static_cast<double>(found[e]) - wanted[i][e]);
        worst = std::isfinite(error) ? std::max(worst, error) : std::numeric_limits<double>::infinity();
      }
      INFO("tensor " << i << " " << to_string(spec.tensors[i].shape));
      CHECK(largest > 0);
      CHECK(worst <= bound * largest);
    }
  }
}

Network blocks(std::int64_t n) {
  Network net({n, 3, 37, 29});
  net.conv(24, 3, 2, 1, Activation::relu6);
  const std::uint32_t shortcut = net.pool(PoolKind::maximum, 3, 1, 1);
  net.conv(48, 1, 1, 1, Activation::relu);
  net.conv(48, 3, 1, 48, Activation::relu6);
  net.conv(24, 1, 1, 1, Activation::none);
  net.add(shortcut, Activation::relu);
  return net;
}

}  // namespace

TEST_CASE("chain: a network is right, for one image and for several", "[chain]") {
  const std::int64_t n = GENERATE(1, 2, 5);
  Network net = blocks(n);
  net.conv(40, 1, 2, 1, Activation::none);
  net.pool(PoolKind::average, 0, 1, 0);
  net.spec.tensors[net.classes(19)].role = TensorRole::output;
  check(net.spec, 91);
}

TEST_CASE("chain: a tensor inside that is a result too comes out as NCHW", "[chain]") {
  Network net = blocks(1);
  net.spec.tensors[net.last()].role = TensorRole::output;
  net.conv(17, 3, 1, 1, Activation::relu);  // not whole blocks of channels
  net.spec.tensors[net.last()].role = TensorRole::output;
  net.pool(PoolKind::maximum, 2, 2, 0);
  net.spec.tensors[net.last()].role = TensorRole::output;
  check(net.spec, 92);
}

TEST_CASE("chain: an add that cannot be part of a convolution is right", "[chain]") {
  SECTION("what is added is read again later") {
    Network net = blocks(1);
    const std::uint32_t kept = net.last();
    net.conv(24, 3, 1, 1, Activation::none);
    net.add(kept, Activation::relu);
    net.add(kept, Activation::none);
    net.spec.tensors[net.last()].role = TensorRole::output;
    check(net.spec, 93);
  }
  SECTION("the convolution reads what is added") {
    Network net({1, 8, 12, 12});
    net.conv(16, 3, 1, 1, Activation::relu);
    const std::uint32_t kept = net.last();
    net.conv(16, 1, 1, 1, Activation::none);
    net.add(kept, Activation::relu6);
    net.spec.tensors[net.last()].role = TensorRole::output;
    check(net.spec, 94);
  }
  SECTION("the convolution's result is read twice") {
    Network net({1, 8, 12, 12});
    const std::uint32_t first = net.conv(16, 3, 1, 1, Activation::relu);
    net.conv(16, 3, 1, 1, Activation::none);
    const std::uint32_t both = net.last();
    net.add(first, Activation::none);
    net.add(both, Activation::none);
    net.spec.tensors[net.last()].role = TensorRole::output;
    check(net.spec, 95);
  }
  SECTION("an input of the chain is added") {
    Network net({1, 8, 12, 12});
    const std::uint32_t image = net.last();
    net.conv(8, 3, 1, 1, Activation::none);
    net.add(image, Activation::none);
    net.spec.tensors[net.last()].role = TensorRole::output;
    check(net.spec, 96);
  }
}

TEST_CASE("chain: views of another shape hold the same numbers in the same order", "[chain]") {
  Network net({1, 8, 12, 12});
  SECTION("an activation flattens, and a product reads it") {
    net.conv(16, 3, 2, 1, Activation::none);
    net.activate({1, 16 * 6 * 6});
    net.classes(20);
  }
  SECTION("an activation makes a pixel of it, and a convolution reads it") {
    net.conv(16, 3, 2, 1, Activation::none);
    net.activate({1, 16 * 6 * 6, 1, 1});
    net.conv(24, 1, 1, 1, Activation::none);
  }
  SECTION("an activation folds its channels, and a convolution reads it") {
    net.conv(16, 3, 2, 1, Activation::none);
    net.activate({1, 4, 12, 12});
    net.conv(24, 3, 1, 1, Activation::none);
  }
  SECTION("a sum of a view and what it views") {
    const std::uint32_t kept = net.conv(16, 3, 2, 1, Activation::none);
    net.activate({1, 16 * 6 * 6});
    AddSpec add;
    add.shape = {1, 16 * 6 * 6};
    const std::uint32_t sum = net.tensor({1, 16 * 6 * 6, 1, 1}, TensorRole::output);
    net.spec.steps.push_back({add, {kept, net.last(), sum}});
    return check(net.spec, 99);
  }
  net.spec.tensors[net.last()].role = TensorRole::output;
  check(net.spec, 98);
}

TEST_CASE("chain: grouped and large convolutions, and a product of several rows", "[chain]") {
  Network net({3, 12, 9, 11});
  net.conv(24, 3, 1, 4, Activation::relu);
  net.conv(64, 5, 2, 1, Activation::relu);
  net.spec.tensors[net.classes(130)].role = TensorRole::output;
  check(net.spec, 97);
}

}  // namespace kiln::cpu_test
