// References of every layer by its spec, the error that a chain carries on, and what is refused.
#include "reference/operation_reference.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace kiln;

namespace {

using Numbers = std::vector<double>;
constexpr double epsilon_f32 = 0x1p-23;  // of a float

std::shared_ptr<HostTensor> floats_in(const Shape& shape, const std::vector<float>& values) {
  auto made = HostTensor::create(DType::f32, shape).value();
  REQUIRE(made->as<float>().size() == values.size());
  std::ranges::copy(values, made->as<float>().begin());
  return made;
}

Conv2dSpec conv_of_one_tap() {
  Conv2dSpec spec;
  spec.c = 1, spec.h = 2, spec.w = 2, spec.k = 1, spec.r = 1, spec.s = 1;
  return spec;
}

GemmSpec gemm_of_two() {
  GemmSpec spec;
  spec.m = spec.n = spec.k = 2;
  return spec;
}

Pool2dSpec pool_of_two(PoolKind kind) {
  Pool2dSpec spec;
  spec.c = 1, spec.h = 2, spec.w = 2, spec.r = 2, spec.s = 2, spec.kind = kind;
  return spec;
}

reference::LayerInputs layer_inputs(std::vector<std::span<const double>> inputs,
                                    std::vector<std::span<const float>> constants = {}) {
  return {std::move(inputs), std::move(constants)};
}

double logistic_of(double x) { return 1 / (1 + std::exp(-x)); }

struct Expectation {
  KernelSpec spec;
  std::vector<std::shared_ptr<HostTensor>> operands;
  Numbers value, magnitude;
};

Result<reference::Expected> expected_from(const KernelSpec& spec,
                                          const std::vector<std::shared_ptr<HostTensor>>& operands) {
  std::vector<const HostTensor*> pointers;
  for (const auto& operand : operands) pointers.push_back(operand.get());
  return reference::expect(spec, pointers);
}

}  // namespace

TEST_CASE("reference evaluate: every layer reads doubles, constants are floats", "[reference]") {
  const Numbers x{1, -2, 3, 4 + 0x1p-40}, y{10, 20, 30, 40};  // a float does not hold the last of x
  const std::vector<float> two{2}, one{1}, matrix{5, 6, 7, 8}, row{100, -200};
  using reference::evaluate;

  CHECK(evaluate(conv_of_one_tap(), layer_inputs({x}, {two})).value == Numbers{2, -4, 6, 8 + 0x1p-39});
  Conv2dSpec conv = conv_of_one_tap();
  conv.bias = Bias::per_channel, conv.activation = Activation::relu;
  CHECK(evaluate(conv, layer_inputs({x}, {two, one})).value == Numbers{3, 0, 7, 9 + 0x1p-39});
  CHECK(evaluate(conv, layer_inputs({x}, {two, one})).magnitude == Numbers{3, 5, 7, 9 + 0x1p-39});

  CHECK(evaluate(gemm_of_two(), layer_inputs({x}, {matrix})).value == Numbers{-9, -10, 43 + 7 * 0x1p-40, 50 + 0x1p-37});
  GemmSpec gemm = gemm_of_two();
  gemm.bias = Bias::per_channel;
  CHECK(evaluate(gemm, layer_inputs({y}, {matrix, row})).value == Numbers{290, 20, 530, 300});
  CHECK(evaluate(gemm, layer_inputs({y}, {matrix, row})).magnitude == Numbers{290, 420, 530, 700});

  CHECK(evaluate(pool_of_two(PoolKind::maximum), layer_inputs({x})).value == Numbers{4 + 0x1p-40});
  CHECK(evaluate(pool_of_two(PoolKind::average), layer_inputs({y})).value == Numbers{25});
  AddSpec add;
  add.shape = {4};
  CHECK(evaluate(add, layer_inputs({x, y})).value == Numbers{11, 18, 33, 44 + 0x1p-40});
  SoftmaxSpec softmax;
  softmax.shape = {2, 2};
  const Numbers apart{0, 2, 5, 5};
  const Numbers shares = evaluate(softmax, layer_inputs({apart})).value;
  REQUIRE(shares.size() == 4);
  CHECK(shares[0] == Approx(logistic_of(-2)).epsilon(1e-14));
  CHECK(shares[1] == Approx(logistic_of(2)).epsilon(1e-14));
  CHECK(shares[2] == 0.5);
  ActivationSpec rectifier;
  rectifier.shape = {4}, rectifier.activation = Activation::relu;
  CHECK(evaluate(rectifier, layer_inputs({x})).value == Numbers{1, 0, 3, 4 + 0x1p-40});
  CHECK(evaluate(UserKernelSpec{}, {}).value.empty());
}

TEST_CASE("reference chain: each layer adds its roundings to the error before", "[reference]") {
  Conv2dSpec conv;
  conv.c = 8, conv.h = 9, conv.w = 9, conv.k = 4, conv.r = 3, conv.s = 2, conv.groups = 2;
  GemmSpec gemm = gemm_of_two();
  gemm.k = 5;
  Pool2dSpec average = pool_of_two(PoolKind::average);
  average.s = 3, average.w = 3;
  ActivationSpec rectifier;
  rectifier.shape = {4}, rectifier.activation = Activation::relu;
  AddSpec add;
  add.shape = {4};
  const std::pair<KernelSpec, double> roundings[] = {
      {conv, 26},     // 4 channels of 6 taps, and 2
      {gemm, 7},      // 5 products, and 2
      {average, 10},  // 6 elements, and 4
      {pool_of_two(PoolKind::maximum), 0},
      {add, 2},
      {rectifier, 0},
      {UserKernelSpec{}, 0},
  };
  for (const double before : {0.0, 0.125}) {
    for (const auto& [spec, count] : roundings)
      CHECK(reference::chain_error(spec, {}, before) == before + count * epsilon_f32);
  }
}

TEST_CASE("reference chain: softmax turns an absolute error into one of the odds", "[reference]") {
  SoftmaxSpec softmax;
  softmax.shape = {1, 2};
  const Numbers apart{0.5, -1.5}, equal{0, 0};
  CHECK(reference::chain_error(softmax, layer_inputs({apart}), 0) == Approx(12 * epsilon_f32).epsilon(1e-12));
  CHECK(reference::chain_error(softmax, layer_inputs({equal}), 0.5) == Approx(12 * epsilon_f32).epsilon(1e-12));
  // The odds of {0.5, -1.5} are e^2. Each input may be off by 0.1 of the largest, 1.5: the odds by the factor e^0.3.
  const double change = std::max(logistic_of(2) - logistic_of(1.7), logistic_of(-1.7) - logistic_of(-2));
  CHECK(reference::chain_error(softmax, layer_inputs({apart}), 0.1) ==
        Approx(change / logistic_of(2) + 12 * epsilon_f32).epsilon(1e-9));
  const Numbers near{2.5, 3};  // of e^0.5 each may be off by the factor e^0.6: beyond even odds
  const double across = std::max(logistic_of(0.5) - logistic_of(-0.1), logistic_of(1.1) - logistic_of(0.5));
  CHECK(reference::chain_error(softmax, layer_inputs({near}), 0.1) ==
        Approx(across / logistic_of(0.5) + 12 * epsilon_f32).epsilon(1e-9));
}

TEST_CASE("reference expect: every layer of fp32 tensors", "[reference]") {
  const auto x = floats_in({1, 1, 2, 2}, {1, -2, 3, 4});
  const auto y = floats_in({1, 1, 2, 2}, {10, 20, 30, 40});
  const auto a = floats_in({2, 2}, {1, -2, 3, 4}), b = floats_in({2, 2}, {5, 6, 7, 8});
  Conv2dSpec conv = conv_of_one_tap(), biased = conv;
  biased.bias = Bias::per_channel;
  GemmSpec gemm = gemm_of_two(), with_row = gemm;
  with_row.bias = Bias::per_channel;
  AddSpec add;
  add.shape = {1, 1, 2, 2};
  ActivationSpec rectifier;
  rectifier.shape = {2, 2}, rectifier.activation = Activation::relu;
  const auto tap = floats_in({1, 1, 1, 1}, {2});
  const Expectation layers[] = {
      {conv, {x, tap}, {2, -4, 6, 8}, {2, 4, 6, 8}},
      {biased, {x, tap, floats_in({1}, {1})}, {3, -3, 7, 9}, {3, 5, 7, 9}},
      {gemm, {a, b}, {-9, -10, 43, 50}, {19, 22, 43, 50}},
      {with_row, {a, b, floats_in({2}, {100, -200})}, {91, -210, 143, -150}, {119, 222, 143, 250}},
      {pool_of_two(PoolKind::maximum), {x}, {4}, {4}},
      {pool_of_two(PoolKind::average), {x}, {1.5}, {2.5}},
      {add, {x, y}, {11, 18, 33, 44}, {11, 22, 33, 44}},
      {rectifier, {a}, {1, 0, 3, 4}, {1, 2, 3, 4}},
  };
  for (const Expectation& layer : layers) {
    INFO(canonical_text(layer.spec));
    const auto expected = expected_from(layer.spec, layer.operands);
    REQUIRE(expected);
    CHECK(expected->reference.value == layer.value);
    CHECK(expected->reference.magnitude == layer.magnitude);
    CHECK(expected->allowance.empty());
  }
  // Two smallest normal numbers may be flushed to zero where a layer has no products; else two a product.
  constexpr double flushed = 2.350988701644575e-38;
  CHECK(expected_from(add, {x, y})->underflow == flushed);
  CHECK(expected_from(rectifier, {a})->underflow == flushed);
  CHECK(expected_from(gemm, {a, b})->underflow == 2 * flushed);
  CHECK(expected_from(add, {x, y})->bound == Approx(1.1920930398368226e-07).epsilon(1e-14));
  CHECK(expected_from(rectifier, {a})->bound == 0);
  CHECK(expected_from(pool_of_two(PoolKind::maximum), {x})->bound == 0);
  CHECK(expected_from(gemm, {a, b})->bound == Approx(3 * 0x1p-24).epsilon(1e-6));
  CHECK(expected_from(with_row, {a, b, floats_in({2}, {0, 0})})->bound == Approx(4 * 0x1p-24).epsilon(1e-6));
}

TEST_CASE("reference expect: operands that are not the spec's are refused", "[reference]") {
  const auto x = floats_in({1, 1, 2, 2}, {1, -2, 3, 4}), shorter = floats_in({3}, {1, 2, 3});
  const auto integers = HostTensor::create(DType::i32, {1, 1, 2, 2}).value();
  const auto doubles = HostTensor::create(DType::f64, {1, 1, 1, 2}).value();  // as many bytes
  AddSpec add;
  add.shape = {1, 1, 2, 2};
  GemmSpec biased = gemm_of_two();
  biased.bias = Bias::per_channel;
  Pool2dSpec zero = pool_of_two(PoolKind::maximum);
  zero.stride_x = 0;
  Pool2dSpec wide = pool_of_two(PoolKind::average);
  wide.h = wide.w = wide.r = wide.s = 4096;
  SoftmaxSpec row;
  row.shape = {1 << 20, 1};
  struct Refused {
    KernelSpec spec;
    std::vector<std::shared_ptr<HostTensor>> operands;
    StatusCode code;
    const char* message;
  };
  const Refused all[] = {
      {add, {x}, StatusCode::invalid_argument, "reference: 1 operands, expected 2 for add"},
      {add, {x, x, x}, StatusCode::invalid_argument, "reference: 3 operands, expected 2 for add"},
      {add, {x, shorter}, StatusCode::invalid_argument, "f32 [3], expected f32 [1, 1, 2, 2]"},
      {add, {integers, x}, StatusCode::invalid_argument, "i32 [1, 1, 2, 2], expected f32 [1, 1, 2, 2]"},
      {add, {x, doubles}, StatusCode::invalid_argument, "f64 [1, 1, 1, 2], expected f32 [1, 1, 2, 2]"},
      {pool_of_two(PoolKind::maximum), {x, x}, StatusCode::invalid_argument, "2 operands, expected 1"},
      {pool_of_two(PoolKind::maximum), {shorter}, StatusCode::invalid_argument, "f32 [3], expected f32"},
      {gemm_of_two(), {x, x, x}, StatusCode::invalid_argument, "3 operands, expected 2"},
      {biased, {x, x}, StatusCode::invalid_argument, "2 operands, expected 3"},
      {gemm_of_two(), {x, shorter}, StatusCode::invalid_argument, "3 elements, expected 4"},
      {gemm_of_two(), {shorter, x}, StatusCode::invalid_argument, "3 elements, expected 4"},
      {conv_of_one_tap(), {integers, x}, StatusCode::invalid_argument, "input: dtype i32, expected f32"},
      {zero, {x}, StatusCode::invalid_argument, "stride"},
      {wide, {shorter}, StatusCode::unsupported, "no error bound exists for pool2d"},
      {row, {shorter}, StatusCode::invalid_argument, "f32 [3], expected f32"},
  };
  for (const Refused& one : all) {
    INFO(canonical_text(one.spec) << ": " << one.message);
    const auto expected = expected_from(one.spec, one.operands);
    REQUIRE_FALSE(expected);
    CHECK(expected.error().code == one.code);
    CHECK_THAT(expected.error().message, Catch::Contains(one.message));
  }
}
