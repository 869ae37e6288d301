// References of pool2d, add, softmax and activation: values by hand, and wrong results that the bounds show.
#include "reference/layers.hpp"
#include "reference/operation_reference.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include <cmath>

using namespace kiln;

namespace {

using Numbers = std::vector<double>;

std::shared_ptr<HostTensor> tensor(const Shape& shape, const std::vector<float>& values) {
  auto made = HostTensor::create(DType::f32, shape).value();
  std::ranges::copy(values, made->as<float>().begin());
  return made;
}

reference::Comparison compared(const KernelSpec& spec, const std::vector<std::shared_ptr<HostTensor>>& operands,
                               const std::vector<float>& output) {
  std::vector<const HostTensor*> pointers;
  for (const auto& operand : operands) pointers.push_back(operand.get());
  const auto expected = reference::expect(spec, pointers);
  REQUIRE(expected);
  return reference::compare_expected(*expected, output).value();
}

Pool2dSpec pool(PoolKind kind) {
  Pool2dSpec spec;
  spec.c = 1, spec.h = 3, spec.w = 3, spec.r = 2, spec.s = 2;
  spec.kind = kind;
  return spec;
}

const Numbers nine{1, -2, 3, 4, 5, -6, 7, 8, -9};

}  // namespace

TEST_CASE("reference pool2d: maximum and average of each window, padding left out", "[reference]") {
  CHECK(reference::pool2d(pool(PoolKind::maximum), nine).value == Numbers{5, 5, 8, 8});
  CHECK(reference::pool2d(pool(PoolKind::average), nine).value == Numbers{2, 0, 6, -0.5});
  Pool2dSpec padded = pool(PoolKind::average);
  padded.stride_y = padded.stride_x = 2, padded.pad_y = padded.pad_x = 1;
  CHECK(reference::pool2d(padded, nine).value == Numbers{1, 0.5, 5.5, -0.5});
  padded.kind = PoolKind::maximum;
  CHECK(reference::pool2d(padded, Numbers{-1, -2, -3, -4, -5, -6, -7, -8, -9}).value == Numbers{-1, -2, -4, -5});
  Pool2dSpec whole = pool(PoolKind::average);
  whole.r = whole.s = 3;
  CHECK(reference::pool2d(whole, nine).value == Numbers{11.0 / 9});
}

TEST_CASE("reference pool2d: planes and images are apart", "[reference]") {
  Pool2dSpec spec = pool(PoolKind::maximum);
  spec.n = 2, spec.c = 2, spec.r = spec.s = 3;
  Numbers input;
  for (int i = 0; i < 36; ++i) input.push_back(i);
  CHECK(reference::pool2d(spec, input, 3).value == Numbers{8, 17, 26, 35});
}

TEST_CASE("reference add and activation: element by element", "[reference]") {
  AddSpec add;
  add.shape = {4};
  const Numbers a{1, -2, 3, 4}, b{10, -20, -3.5, 4};
  CHECK(reference::add(add, a, b).value == Numbers{11, -22, -0.5, 8});
  CHECK(reference::add(add, a, b).magnitude == Numbers{11, 22, 6.5, 8});
  add.activation = Activation::relu;
  CHECK(reference::add(add, a, b).value == Numbers{11, 0, 0, 8});
  add.activation = Activation::relu6;
  CHECK(reference::add(add, a, b).value == Numbers{6, 0, 0, 6});
  ActivationSpec alone;
  alone.shape = {4}, alone.activation = Activation::relu6;
  CHECK(reference::activation(alone, b).value == Numbers{6, 0, 0, 4});
  const Numbers unordered{std::numeric_limits<double>::quiet_NaN(), 7, -1, 2};
  for (const auto& [kind, third] : {std::pair(Activation::relu, 7.0), std::pair(Activation::relu6, 6.0)}) {
    alone.activation = kind;
    CHECK(reference::activation(alone, unordered).value == Numbers{0, third, 0, 2});  // max(x, 0) of a NaN is 0
  }
}

TEST_CASE("reference: finite results of what is infinite or no number are compared too", "[reference]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  SoftmaxSpec masked;
  masked.shape = {1, 4};
  const auto row = tensor({1, 4}, {0, 1, -infinity, 2});
  const std::vector<float> right{0.09003057f, 0.24472848f, 0, 0.66524094f};
  CHECK(compared(masked, {row}, right).within);
  for (std::size_t i = 0; i < right.size(); ++i) {
    std::vector<float> wrong = right;
    wrong[i] += 1e-4f;
    CHECK(compared(masked, {row}, wrong).worst_index == static_cast<std::int64_t>(i));
    CHECK_FALSE(compared(masked, {row}, wrong).within);
  }
  ActivationSpec relu6;
  relu6.shape = {4}, relu6.activation = Activation::relu6;
  const auto odd = tensor({4}, {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 2});
  CHECK(compared(relu6, {odd}, {6, 0, 0, 2}).within);
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<float> wrong{6, 0, 0, 2};
    wrong[i] = 5;
    CHECK_FALSE(compared(relu6, {odd}, wrong).within);
  }
}

TEST_CASE("reference softmax: rows add up to one", "[reference]") {
  SoftmaxSpec spec;
  spec.shape = {2, 2};
  const auto got = reference::softmax(spec, Numbers{0, std::log(2.0), 700, -700});
  CHECK(got.value[0] == Approx(1.0 / 3));
  CHECK(got.value[1] == Approx(2.0 / 3));
  CHECK(got.value[2] == 1);
  CHECK(got.value[3] < 1e-300);
}

TEST_CASE("reference conv2d and gemm: relu6", "[reference]") {
  GemmSpec gemm;
  gemm.m = 1, gemm.n = 3, gemm.k = 1, gemm.activation = Activation::relu6;
  const std::vector<float> b{-1, 2, 9};
  CHECK(reference::gemm(gemm, Numbers{1}, b, {}).value == Numbers{0, 2, 6});
}

TEST_CASE("compare: a result that is off by more than its bound is wrong", "[reference]") {
  const float one_up = std::nextafterf(5, 6);
  const auto input = tensor({1, 1, 3, 3}, {1, -2, 3, 4, 5, -6, 7, 8, -9});
  CHECK(compared(pool(PoolKind::maximum), {input}, {5, 5, 8, 8}).within);
  CHECK(compared(pool(PoolKind::maximum), {input}, {5, one_up, 8, 8}).wrong == 1);
  CHECK(compared(pool(PoolKind::average), {input}, {2, 0, 6, -0.5f}).within);
  CHECK(compared(pool(PoolKind::average), {input}, {2, 0, 6.00001f, -0.5f}).wrong == 1);
  AddSpec add;
  add.shape = {2};
  const auto a = tensor({2}, {1, 2}), b = tensor({2}, {3, 4});
  CHECK(compared(add, {a, b}, {4, 6}).within);
  CHECK(compared(add, {a, b}, {4, 6.00001f}).worst_index == 1);
  SoftmaxSpec softmax;
  softmax.shape = {2};
  const auto equal = tensor({2}, {3, 3});
  CHECK(compared(softmax, {equal}, {0.5f, 0.5000001f}).within);
  CHECK(compared(softmax, {equal}, {0.5f, 0.50001f}).wrong == 1);
}

TEST_CASE("compare: operands of another number, size or operation are refused", "[reference]") {
  AddSpec add;
  add.shape = {2};
  const auto a = tensor({2}, {1, 2}), c = tensor({3}, {1, 2, 3});
  const HostTensor* one[] = {a.get()};
  CHECK(reference::expect(add, one).error().code == StatusCode::invalid_argument);
  const HostTensor* two[] = {a.get(), c.get()};
  CHECK_THAT(reference::expect(add, two).error().message, Catch::Contains("b: f32 [3], expected f32 [2]"));
  CHECK(reference::expect(AddSpec{}, two).error().code == StatusCode::invalid_argument);
  ChainSpec chain;
  chain.tensors = {{{2}, TensorRole::input}, {{2}, TensorRole::output}};
  chain.steps = {{ActivationSpec{{2}}, {0, 1}}};
  CHECK_THAT(reference::expect(chain, one).error().message, Catch::Contains("chain has no reference"));
}
