// Sizes, costs and names of layers, against counts made one by one.
#include <kiln/operation.hpp>

#include "contract/operations.hpp"

#include <catch2/catch.hpp>

#include <limits>
#include <string>
#include <utility>

using namespace kiln;

namespace {

// The taps along one axis that an output reads, by those of them inside the input.
double counted_ratio(std::int64_t in, std::int64_t taps, std::int64_t stride, std::int64_t pad, std::int64_t dilation) {
  std::int64_t all = 0, inside = 0;
  for (std::int64_t first = -pad; first + (taps - 1) * dilation < in + pad; first += stride) {
    for (std::int64_t tap = 0; tap < taps; ++tap, ++all) {
      const std::int64_t at = first + tap * dilation;
      inside += at >= 0 && at < in ? 1 : 0;
    }
  }
  return static_cast<double>(all) / static_cast<double>(std::max<std::int64_t>(inside, 1));
}

Conv2dSpec one_pixel() {
  Conv2dSpec spec;
  spec.c = spec.h = spec.w = spec.k = spec.r = spec.s = 1;
  return spec;
}

Conv2dSpec conv_along_y(std::int64_t in, std::int64_t taps, std::int64_t stride, std::int64_t pad,
                        std::int64_t dilation) {
  Conv2dSpec spec = one_pixel();
  spec.h = in, spec.r = taps, spec.stride_y = stride, spec.pad_y = pad, spec.dilation_y = dilation;
  return spec;
}

}  // namespace

TEST_CASE("layer costs: what may be left out are the taps in the padding, along both axes", "[contract]") {
  for (const std::int64_t in : {1, 2, 5, 9}) {
    for (const std::int64_t taps : {1, 2, 3, 5}) {
      for (const std::int64_t stride : {1, 2, 3}) {
        for (const std::int64_t pad : {0, 1, 4}) {
          for (const std::int64_t dilation : {1, 2}) {
            Conv2dSpec tall = conv_along_y(in, taps, stride, pad, dilation);
            if (!validate(tall).ok()) continue;
            Conv2dSpec wide = tall;
            std::swap(wide.h, wide.w), std::swap(wide.r, wide.s), std::swap(wide.stride_y, wide.stride_x);
            std::swap(wide.pad_y, wide.pad_x), std::swap(wide.dilation_y, wide.dilation_x);
            const double expected = counted_ratio(in, taps, stride, pad, dilation);
            const double found = operation_of(tall).saving(tall), turned = operation_of(wide).saving(wide);
            if (found != Approx(expected) || turned != Approx(expected)) {
              FAIL(canonical_text(tall) << ": " << found << " and " << turned << ", expected " << expected);
            }
            Pool2dSpec pool;
            pool.c = pool.w = pool.s = 1;
            pool.h = in, pool.r = taps, pool.stride_y = stride, pool.pad_y = pad;
            if (dilation != 1 || !validate(pool).ok()) continue;
            if (operation_of(pool).saving(pool) != Approx(expected)) FAIL(canonical_text(pool));
          }
        }
      }
    }
  }
}

TEST_CASE("layer costs: Winograd's algorithm saves at windows of 3 x 3 with stride 1", "[contract]") {
  Conv2dSpec spec = one_pixel();
  spec.h = spec.w = 8, spec.r = spec.s = 3;
  const auto saving = [](const Conv2dSpec& of) { return operation_of(of).saving(of); };
  CHECK(saving(spec) == 1);
  spec.accuracy = Accuracy::winograd;
  CHECK(saving(spec) == 4);
  for (std::int64_t Conv2dSpec::*field :
       {&Conv2dSpec::stride_y, &Conv2dSpec::stride_x, &Conv2dSpec::r, &Conv2dSpec::s}) {
    Conv2dSpec other = spec;
    other.*field = 2;
    CHECK(saving(other) == 1);
  }
}

TEST_CASE("layer costs: a chain may leave out as much as its steps do at most", "[contract]") {
  Conv2dSpec conv = one_pixel();
  conv.h = conv.w = 8, conv.r = conv.s = 3, conv.accuracy = Accuracy::winograd;
  AddSpec add;
  add.shape = {1, 1, 6, 6};
  ChainSpec chain;
  chain.steps = {{add, {}}, {conv, {}}, {add, {}}};
  CHECK(operation_of(chain).saving(chain) == 4);
  CHECK(flops(chain) == 2 * 36 * 9 + 2 * 36);
  chain.steps = {{add, {}}};
  CHECK(operation_of(chain).saving(chain) == 1);
}

TEST_CASE("layer costs: the extent of an output is 0 where there is none", "[contract]") {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  struct Case {
    std::int64_t in, pad, dilation, taps, stride, expected;
  };
  const Case cases[] = {{5, 0, 1, 3, 1, 3},   {5, 0, 1, 5, 1, 1}, {5, 0, 1, 6, 1, 0},    {5, 0, 2, 3, 1, 1},
                        {5, 0, 3, 3, 1, 0},   {5, 1, 3, 3, 1, 1}, {7, 0, 1, 2, 2, 3},    {8, 0, 1, 2, 2, 4},
                        {1, 0, 1, 1, 1, 1},   {0, 1, 1, 1, 1, 0}, {1, -1, 1, 1, 1, 0},   {1, 0, 0, 1, 1, 0},
                        {1, 0, 1, 0, 1, 0},   {1, 0, 1, 1, 0, 0}, {1, huge, 1, 1, 1, 0}, {huge, 1, 1, 1, 1, 0},
                        {1, 0, huge, 3, 1, 0}};
  for (const Case& each : cases) {
    CAPTURE(each.in, each.pad, each.dilation, each.taps, each.stride);
    CHECK(out_extent(each.in, each.pad, each.dilation, each.taps, each.stride) == each.expected);
  }
}

TEST_CASE("layer costs: bytes and products of extents do not overflow", "[contract]") {
  CHECK(float_bytes_of({}) == 4);
  CHECK(float_bytes_of({2, 3}) == 24);
  CHECK(float_bytes_of({2, 0, 3}) == 0);
  CHECK(float_bytes_of({-1}) == 0);
  CHECK(float_bytes_of({std::int64_t{1} << 61}) == std::uint64_t{1} << 63);
  CHECK(float_bytes_of({std::int64_t{1} << 62}) == std::numeric_limits<std::uint64_t>::max());
  CHECK(float_bytes_of({std::int64_t{1} << 62, 1}) == std::numeric_limits<std::uint64_t>::max());
  CHECK(product({3, 5}) == 15);
  CHECK(product({3, 0}) == 0);
  CHECK(product({3, -2}) == 0);
  CHECK(product({}) == 1);
}

TEST_CASE("layer costs: a matrix may have more dimensions, whose first is its rows", "[contract]") {
  CHECK(fits_operand({4, 6}, {4, 6}));
  CHECK(fits_operand({4, 2, 3}, {4, 6}));
  CHECK(fits_operand({4, 1, 2, 3}, {4, 6}));
  CHECK_FALSE(fits_operand({6, 4}, {4, 6}));
  CHECK_FALSE(fits_operand({4, 7}, {4, 6}));
  CHECK_FALSE(fits_operand({2, 2, 6}, {4, 6}));
  CHECK_FALSE(fits_operand({24}, {4, 6}));
  CHECK_FALSE(fits_operand({4}, {4, 1}));
  CHECK_FALSE(fits_operand({4, 6}, {4, 2, 3}));
  CHECK(fits_operand({5}, {5}));
}

TEST_CASE("layer costs: families are shapes whose time depends on FLOPs in the same way", "[contract]") {
  const auto family = [](const KernelSpec& spec) { return operation_of(spec).family(spec); };
  Conv2dSpec conv;
  conv.c = 4, conv.k = 8, conv.h = conv.w = 9, conv.r = 3, conv.s = 5;
  CHECK(family(conv) == "3x5 dense direct f32");
  conv.groups = 2;
  CHECK(family(conv) == "3x5 grouped direct f32");
  conv.groups = 4, conv.accuracy = Accuracy::winograd;
  CHECK(family(conv) == "3x5 depthwise winograd f32");
  CHECK(family(GemmSpec{8, 9, 1}) == "thin f32");
  CHECK(family(GemmSpec{9, 8, 1}) == "thin f32");
  CHECK(family(GemmSpec{9, 9, 1}) == "full f32");
  Pool2dSpec pool;
  pool.h = 9, pool.w = 7, pool.r = 9, pool.s = 7, pool.kind = PoolKind::average;
  CHECK(family(pool) == "average global f32");
  pool.s = 6;
  CHECK(family(pool) == "average window f32");
  pool.r = 8, pool.s = 7, pool.kind = PoolKind::maximum;
  CHECK(family(pool) == "max window f32");
  CHECK(family(AddSpec{{2, 3}}) == "elements f32");
  CHECK(family(SoftmaxSpec{{2, 3}}) == "rows f32");
  CHECK(family(ActivationSpec{{2, 3}}) == "elements f32");
}

TEST_CASE("layer costs: shapes in words leave out what is usual", "[contract]") {
  const auto shape = [](const KernelSpec& spec) { return operation_of(spec).shape(spec); };
  Conv2dSpec conv;
  conv.n = 2, conv.c = 4, conv.h = 9, conv.w = 11, conv.k = 8, conv.r = 3, conv.s = 5;
  CHECK(shape(conv) == "2x4x9x11 k8 3x5");
  conv.stride_x = 2, conv.pad_y = 1, conv.dilation_y = conv.dilation_x = 2, conv.groups = 4;
  conv.activation = Activation::relu6;
  CHECK(shape(conv) == "2x4x9x11 k8 3x5 stride 1x2 pad 1x0 dilation 2 groups 4 relu6");
  conv.stride_y = 2, conv.pad_x = 1, conv.dilation_x = 1;
  CHECK(shape(conv) == "2x4x9x11 k8 3x5 stride 2 pad 1 dilation 2x1 groups 4 relu6");
  Pool2dSpec pool;
  pool.n = 2, pool.c = 4, pool.h = 9, pool.w = 11, pool.r = 3, pool.s = 5;
  CHECK(shape(pool) == "2x4x9x11 max 3x5");
  pool.stride_y = pool.stride_x = 2, pool.pad_y = pool.pad_x = 1, pool.kind = PoolKind::average;
  CHECK(shape(pool) == "2x4x9x11 average 3x5 stride 2 pad 1");
  pool.stride_y = 1, pool.pad_x = 0;
  CHECK(shape(pool) == "2x4x9x11 average 3x5 stride 1x2 pad 1x0");
  GemmSpec gemm{5, 6, 7};
  gemm.activation = Activation::relu;
  CHECK(shape(gemm) == "m5 n6 k7 relu");
  AddSpec add;
  add.shape = {2, 3};
  CHECK(shape(add) == "2x3");
  add.activation = Activation::relu;
  CHECK(shape(add) == "2x3 relu");
  SoftmaxSpec softmax;
  softmax.shape = {4, 10};
  CHECK(shape(softmax) == "4x10");
  ActivationSpec activation;
  activation.shape = {7};
  activation.activation = Activation::relu6;
  CHECK(shape(activation) == "7 relu6");
}

TEST_CASE("layer specs: extents and tensors are bounded", "[contract]") {
  constexpr std::int64_t most = 1 << 20;
  for (std::int64_t GemmSpec::*field : {&GemmSpec::m, &GemmSpec::n, &GemmSpec::k}) {
    GemmSpec spec{1, 1, 1};
    spec.*field = most;
    CHECK(validate(spec).text() == "ok");
    spec.*field = most + 1;
    CHECK_THAT(validate(spec).text(), Catch::Contains(" = 1048577: expected 1 to 1048576"));
    spec.*field = 0;
    CHECK_THAT(validate(spec).text(), Catch::Contains(" = 0: expected 1 to 1048576"));
  }
  const std::int64_t half = 1 << 18;  // 2^36 elements with another 2^18
  for (int of = 0; of < 3; ++of) {
    const std::string tensor(1, "abc"[of]);
    GemmSpec spec{of == 1 ? 1 : half, of == 0 ? 1 : half, of == 2 ? 1 : half};
    CHECK(validate(spec).text() == "ok");
    (of == 1 ? spec.n : spec.m) += 1;
    const Shape shape = of == 0 ? Shape{half + 1, half} : of == 1 ? Shape{half, half + 1} : Shape{half + 1, half};
    CHECK(validate(spec).text() ==
          "invalid_argument: gemm: " + tensor + " " + to_string(shape) + ": more than 2^36 elements");
  }
  const Extents shapes[] = {{1}, {most}, {1, 1, 1, most}, {1 << 9, 1 << 9, 1 << 9, 1 << 9}};
  for (const Extents& shape : shapes) {
    CHECK(validate(AddSpec{shape}).text() == "ok");
    CHECK(validate(SoftmaxSpec{shape}).text() == "ok");
    ActivationSpec activation;
    activation.shape = shape;
    CHECK(validate(activation).text() == "ok");
  }
  const std::pair<Extents, std::string> wrong[] = {
      {{}, "shape [0, 0, 0, 0]: expected one to four dimensions, then only zeros"},
      {{0, 1, 1, 1}, "shape [0, 1, 1, 1]: expected one to four dimensions, then only zeros"},
      {{2, 2, 0, 1}, "shape [2, 2, 0, 1]: expected one to four dimensions, then only zeros"},
      {{most + 1}, "shape[0] = 1048577: expected 1 to 1048576"},
      {{1, 1, 1, -5}, "shape[3] = -5: expected 1 to 1048576"},
      {{(1 << 9) + 1, 1 << 9, 1 << 9, 1 << 9}, "shape [513, 512, 512, 512]: more than 2^36 elements"}};
  for (const auto& [shape, why] : wrong) {
    CHECK(validate(AddSpec{shape}).text() == "invalid_argument: add: " + why);
    CHECK(validate(SoftmaxSpec{shape}).text() == "invalid_argument: softmax: " + why);
  }
}

TEST_CASE("layer specs: an activation that nobody knows is refused by its number", "[contract]") {
  AddSpec add;
  add.shape = {1};
  add.activation = static_cast<Activation>(4);
  CHECK(validate(add).text() == "invalid_argument: add: activation 4: expected none, relu or relu6");
  ActivationSpec activation;
  activation.shape = {1};
  for (const int value : {0, 1, 4}) {
    activation.activation = static_cast<Activation>(value);
    CHECK(validate(activation).text() ==
          "invalid_argument: activation: activation " + std::to_string(value) + ": expected relu or relu6");
  }
  Pool2dSpec pool;
  pool.c = pool.h = pool.w = pool.r = pool.s = 1;
  pool.kind = static_cast<PoolKind>(3);
  CHECK(validate(pool).text() == "invalid_argument: pool2d: pool 3: expected max or average");
  GemmSpec gemm{1, 1, 1};
  gemm.activation = static_cast<Activation>(4);
  CHECK(validate(gemm).text() == "invalid_argument: gemm: bias and activation must be set");
  gemm.activation = Activation::relu;
  CHECK(validate(gemm).ok());
  gemm.bias = static_cast<Bias>(3);
  CHECK(validate(gemm).text() == "invalid_argument: gemm: bias and activation must be set");
}
