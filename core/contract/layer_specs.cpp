// conv2d and gemm as operations.
#include "contract/operations.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace kiln {
namespace {

bool is_known(Bias bias) noexcept { return bias == Bias::none || bias == Bias::per_channel; }

std::int64_t group_channels(const Conv2dSpec& conv) noexcept { return conv.groups < 1 ? 0 : conv.c / conv.groups; }

// F(4, 3) does a quarter of the direct multiplications, F(2, 3) more of them.
double winograd_factor(const Conv2dSpec& conv) noexcept {
  const bool fits = conv.r == 3 && conv.s == 3 && conv.stride_y == 1 && conv.stride_x == 1;
  return conv.accuracy == Accuracy::winograd && fits ? 4 : 1;
}

// Along one axis: the taps that direct FLOPs count, by those that lie inside the input.
double left_out(std::int64_t in, std::int64_t out, std::int64_t taps, std::int64_t stride, std::int64_t pad,
                std::int64_t dilation) noexcept {
  std::int64_t inside = 0;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const std::int64_t offset = tap * dilation - pad;  // of the first output's tap
    const std::int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    const std::int64_t end = offset >= in ? 0 : std::min(out, (in - offset + stride - 1) / stride);
    inside += std::max<std::int64_t>(end - first, 0);
  }
  return static_cast<double>(out * taps) / static_cast<double>(std::max<std::int64_t>(inside, 1));
}

}  // namespace

std::int64_t Conv2dSpec::out_h() const noexcept { return out_extent(h, pad_y, dilation_y, r, stride_y); }
std::int64_t Conv2dSpec::out_w() const noexcept { return out_extent(w, pad_x, dilation_x, s, stride_x); }

Status check(const Conv2dSpec& spec) {
  const struct {
    std::string_view name;
    std::int64_t value, least;
  } fields[] = {{"n", spec.n, 1},
                {"c", spec.c, 1},
                {"h", spec.h, 1},
                {"w", spec.w, 1},
                {"k", spec.k, 1},
                {"r", spec.r, 1},
                {"s", spec.s, 1},
                {"stride (y)", spec.stride_y, 1},
                {"stride (x)", spec.stride_x, 1},
                {"pad (y)", spec.pad_y, 0},
                {"pad (x)", spec.pad_x, 0},
                {"dilation (y)", spec.dilation_y, 1},
                {"dilation (x)", spec.dilation_x, 1},
                {"groups", spec.groups, 1}};
  for (const auto& field : fields) {
    if (field.value < field.least || field.value > most_extent) {
      return out_of_range(field.name, field.value, field.least, most_extent);
    }
  }
  if (spec.c % spec.groups != 0 || spec.k % spec.groups != 0) {
    return invalid_argument("groups = " + std::to_string(spec.groups) + ": expected a divisor of c = " +
                            std::to_string(spec.c) + " and of k = " + std::to_string(spec.k));
  }
  const auto reach = [](std::int64_t taps, std::int64_t dilation) { return dilation * (taps - 1) + 1; };
  if (spec.h + 2 * spec.pad_y < reach(spec.r, spec.dilation_y)) {
    return invalid_argument("kernel height " + std::to_string(reach(spec.r, spec.dilation_y)) +
                            " (r with dilation): larger than the padded input height " +
                            std::to_string(spec.h + 2 * spec.pad_y));
  }
  if (spec.w + 2 * spec.pad_x < reach(spec.s, spec.dilation_x)) {
    return invalid_argument("kernel width " + std::to_string(reach(spec.s, spec.dilation_x)) +
                            " (s with dilation): larger than the padded input width " +
                            std::to_string(spec.w + 2 * spec.pad_x));
  }
  if (const Status status = check_elements("input", {spec.n, spec.c, spec.h, spec.w}); !status.ok()) return status;
  if (const Status status = check_elements("weights", {spec.k, spec.c / spec.groups, spec.r, spec.s}); !status.ok()) {
    return status;
  }
  if (const Status status = check_elements("output", {spec.n, spec.k, spec.out_h(), spec.out_w()}); !status.ok()) {
    return status;
  }
  const bool known_accuracy = spec.accuracy == Accuracy::direct || spec.accuracy == Accuracy::winograd;
  if (!is_known(spec.bias) || !is_known(spec.activation) || !known_accuracy) {
    return invalid_argument("bias, activation and accuracy must be set");
  }
  return check_dtype(spec.dtype);
}

std::vector<Operand> operands_of(const Conv2dSpec& spec) {
  std::vector<Operand> operands;
  operands.reserve(4);
  operands.push_back(operand("input", TensorRole::input, {spec.n, spec.c, spec.h, spec.w}));
  operands.push_back(operand("weights", TensorRole::constant, {spec.k, group_channels(spec), spec.r, spec.s}));
  if (spec.bias == Bias::per_channel) operands.push_back(operand("bias", TensorRole::constant, {spec.k}));
  operands.push_back(operand("output", TensorRole::output, {spec.n, spec.k, spec.out_h(), spec.out_w()}));
  return operands;
}

double flops_of(const Conv2dSpec& spec) noexcept {
  return 2 * product({spec.n, spec.k, spec.out_h(), spec.out_w(), group_channels(spec), spec.r, spec.s});
}

double saving_of(const Conv2dSpec& spec) noexcept {
  return winograd_factor(spec) * left_out(spec.h, spec.out_h(), spec.r, spec.stride_y, spec.pad_y, spec.dilation_y) *
         left_out(spec.w, spec.out_w(), spec.s, spec.stride_x, spec.pad_x, spec.dilation_x);
}

double saving_of(const Pool2dSpec& spec) noexcept {
  return left_out(spec.h, spec.out_h(), spec.r, spec.stride_y, spec.pad_y, 1) *
         left_out(spec.w, spec.out_w(), spec.s, spec.stride_x, spec.pad_x, 1);
}

std::string fields_of(const Conv2dSpec& spec) {
  FieldText fields;
  fields.number("n", spec.n).number("c", spec.c).number("h", spec.h).number("w", spec.w);
  fields.number("k", spec.k).number("r", spec.r).number("s", spec.s);
  fields.number("stride_y", spec.stride_y).number("stride_x", spec.stride_x);
  fields.number("pad_y", spec.pad_y).number("pad_x", spec.pad_x);
  fields.number("dilation_y", spec.dilation_y).number("dilation_x", spec.dilation_x);
  fields.number("groups", spec.groups);
  fields.word("dtype", to_string(spec.dtype)).word("layout", "nchw");
  fields.number("bias", spec.bias == Bias::per_channel).word("activation", to_string(spec.activation));
  fields.word("accuracy", to_string(spec.accuracy));
  return fields.take();
}

std::string shape_text(const Conv2dSpec& spec) {
  std::string text = times({spec.n, spec.c, spec.h, spec.w});
  text += " k" + std::to_string(spec.k) + " " + times({spec.r, spec.s});
  text += unless_usual("stride", spec.stride_y, spec.stride_x, 1);
  text += unless_usual("pad", spec.pad_y, spec.pad_x, 0);
  text += unless_usual("dilation", spec.dilation_y, spec.dilation_x, 1);
  if (spec.groups != 1) text += " groups " + std::to_string(spec.groups);
  return text + unless_none(spec.activation);
}

std::string family_of(const Conv2dSpec& spec) {
  std::string family = times({spec.r, spec.s});
  family += spec.groups == 1 ? " dense" : spec.groups == spec.c ? " depthwise" : " grouped";
  return family + " " + std::string(to_string(spec.accuracy)) + " " + std::string(to_string(spec.dtype));
}

Status check(const GemmSpec& spec) {
  const struct {
    std::string_view name;
    std::int64_t value;
  } fields[] = {{"m", spec.m}, {"n", spec.n}, {"k", spec.k}};
  for (const auto& field : fields) {
    if (field.value < 1 || field.value > most_extent) return out_of_range(field.name, field.value, 1, most_extent);
  }
  if (const Status status = check_elements("a", {spec.m, spec.k}); !status.ok()) return status;
  if (const Status status = check_elements("b", {spec.k, spec.n}); !status.ok()) return status;
  if (const Status status = check_elements("c", {spec.m, spec.n}); !status.ok()) return status;
  if (!is_known(spec.bias) || !is_known(spec.activation)) {
    return invalid_argument("bias and activation must be set");
  }
  return check_dtype(spec.dtype);
}

std::vector<Operand> operands_of(const GemmSpec& spec) {
  std::vector<Operand> operands;
  operands.reserve(4);
  operands.push_back(operand("a", TensorRole::input, {spec.m, spec.k}));
  operands.push_back(operand("b", TensorRole::constant, {spec.k, spec.n}));
  if (spec.bias == Bias::per_channel) operands.push_back(operand("bias", TensorRole::constant, {spec.n}));
  operands.push_back(operand("c", TensorRole::output, {spec.m, spec.n}));
  return operands;
}

double flops_of(const GemmSpec& spec) noexcept { return 2 * product({spec.m, spec.n, spec.k}); }

std::string fields_of(const GemmSpec& spec) {
  FieldText fields;
  fields.number("m", spec.m).number("n", spec.n).number("k", spec.k).word("dtype", to_string(spec.dtype));
  fields.number("bias", spec.bias == Bias::per_channel).word("activation", to_string(spec.activation));
  return fields.take();
}

std::string shape_text(const GemmSpec& spec) {
  return "m" + std::to_string(spec.m) + " n" + std::to_string(spec.n) + " k" + std::to_string(spec.k) +
         unless_none(spec.activation);
}

std::string family_of(const GemmSpec& spec) {
  constexpr std::int64_t thin = 8;  // so few rows or columns that it is bound by reading the matrix once
  return std::string(spec.m <= thin || spec.n <= thin ? "thin " : "full ") + std::string(to_string(spec.dtype));
}

// pool2d, add, softmax and activation as operations.

namespace {

double elements_of(const Extents& extents) noexcept {
  return product(std::span(extents.begin(), std::ranges::find(extents, 0)));
}

Status check_shape(const Extents& extents) {
  const auto* const end = std::ranges::find(extents, 0);
  const bool has_gap = std::any_of(end, extents.end(), [](std::int64_t extent) { return extent != 0; });
  if (end == extents.begin() || has_gap) {
    return invalid_argument("shape " + to_string(Shape(extents.begin(), extents.end())) +
                            ": expected one to four dimensions, then only zeros");
  }
  const Shape shape = shape_of(extents);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 1 || shape[i] > most_extent) {
      return out_of_range("shape[" + std::to_string(i) + "]", shape[i], 1, most_extent);
    }
  }
  return check_elements("shape", shape);
}

FieldText shape_fields(const Extents& extents) {
  FieldText fields;
  fields.word("shape", times(shape_of(extents)));
  return fields;
}

std::vector<Operand> one_input(const Extents& extents) {
  const Shape shape = shape_of(extents);
  return {operand("input", TensorRole::input, shape), operand("output", TensorRole::output, shape)};
}

}  // namespace

Shape shape_of(const Extents& extents) { return Shape(extents.begin(), std::ranges::find(extents, 0)); }

std::int64_t Pool2dSpec::out_h() const noexcept { return out_extent(h, pad_y, 1, r, stride_y); }
std::int64_t Pool2dSpec::out_w() const noexcept { return out_extent(w, pad_x, 1, s, stride_x); }

Status check(const Pool2dSpec& spec) {
  const struct {
    std::string_view name;
    std::int64_t value, least, most = most_extent;
  } fields[] = {{"n", spec.n, 1},
                {"c", spec.c, 1},
                {"h", spec.h, 1},
                {"w", spec.w, 1},
                {"r", spec.r, 1},
                {"s", spec.s, 1},
                {"stride (y)", spec.stride_y, 1},
                {"stride (x)", spec.stride_x, 1},
                {"pad (y)", spec.pad_y, 0, std::max<std::int64_t>(spec.r, 1) - 1},
                {"pad (x)", spec.pad_x, 0, std::max<std::int64_t>(spec.s, 1) - 1}};
  for (const auto& field : fields) {
    if (field.value < field.least || field.value > field.most) {
      return out_of_range(field.name, field.value, field.least, field.most);
    }
  }
  if (spec.h + 2 * spec.pad_y < spec.r) {
    return invalid_argument("r = " + std::to_string(spec.r) + ": larger than the padded input height " +
                            std::to_string(spec.h + 2 * spec.pad_y));
  }
  if (spec.w + 2 * spec.pad_x < spec.s) {
    return invalid_argument("s = " + std::to_string(spec.s) + ": larger than the padded input width " +
                            std::to_string(spec.w + 2 * spec.pad_x));
  }
  if (Status status = check_elements("input", {spec.n, spec.c, spec.h, spec.w}); !status.ok()) return status;
  if (Status status = check_elements("output", {spec.n, spec.c, spec.out_h(), spec.out_w()}); !status.ok()) {
    return status;
  }
  if (spec.kind != PoolKind::maximum && spec.kind != PoolKind::average) {
    return invalid_argument("pool " + std::to_string(static_cast<int>(spec.kind)) + ": expected max or average");
  }
  return check_dtype(spec.dtype);
}

std::vector<Operand> operands_of(const Pool2dSpec& spec) {
  return {operand("input", TensorRole::input, {spec.n, spec.c, spec.h, spec.w}),
          operand("output", TensorRole::output, {spec.n, spec.c, spec.out_h(), spec.out_w()})};
}

// One comparison or addition for each element of a window.
double flops_of(const Pool2dSpec& spec) noexcept {
  return product({spec.n, spec.c, spec.out_h(), spec.out_w(), spec.r, spec.s});
}

std::string fields_of(const Pool2dSpec& spec) {
  FieldText fields;
  fields.number("n", spec.n).number("c", spec.c).number("h", spec.h).number("w", spec.w);
  fields.number("r", spec.r).number("s", spec.s);
  fields.number("stride_y", spec.stride_y).number("stride_x", spec.stride_x);
  fields.number("pad_y", spec.pad_y).number("pad_x", spec.pad_x);
  fields.word("dtype", to_string(spec.dtype)).word("layout", "nchw").word("pool", to_string(spec.kind));
  return fields.take();
}

std::string shape_text(const Pool2dSpec& spec) {
  return times({spec.n, spec.c, spec.h, spec.w}) + " " + std::string(to_string(spec.kind)) + " " +
         times({spec.r, spec.s}) + unless_usual("stride", spec.stride_y, spec.stride_x, 1) +
         unless_usual("pad", spec.pad_y, spec.pad_x, 0);
}

std::string family_of(const Pool2dSpec& spec) {
  const bool whole = spec.r == spec.h && spec.s == spec.w;
  return std::string(to_string(spec.kind)) + (whole ? " global " : " window ") + std::string(to_string(spec.dtype));
}

Status check(const AddSpec& spec) {
  if (Status status = check_shape(spec.shape); !status.ok()) return status;
  if (!is_known(spec.activation))
    return invalid_argument("activation " + std::to_string(static_cast<int>(spec.activation)) +
                            ": expected none, relu or relu6");
  return check_dtype(spec.dtype);
}

std::vector<Operand> operands_of(const AddSpec& spec) {
  const Shape shape = shape_of(spec.shape);
  return {operand("a", TensorRole::input, shape), operand("b", TensorRole::input, shape),
          operand("output", TensorRole::output, shape)};
}

double flops_of(const AddSpec& spec) noexcept { return elements_of(spec.shape); }

std::string fields_of(const AddSpec& spec) {
  return shape_fields(spec.shape)
      .word("dtype", to_string(spec.dtype))
      .word("activation", to_string(spec.activation))
      .take();
}

std::string shape_text(const AddSpec& spec) { return times(shape_of(spec.shape)) + unless_none(spec.activation); }

std::string family_of(const AddSpec& spec) { return "elements " + std::string(to_string(spec.dtype)); }

Status check(const SoftmaxSpec& spec) {
  if (Status status = check_shape(spec.shape); !status.ok()) return status;
  return check_dtype(spec.dtype);
}

std::vector<Operand> operands_of(const SoftmaxSpec& spec) { return one_input(spec.shape); }

// A subtraction, an exponential, an addition and a division.
double flops_of(const SoftmaxSpec& spec) noexcept { return 4 * elements_of(spec.shape); }

std::string fields_of(const SoftmaxSpec& spec) {
  return shape_fields(spec.shape).word("dtype", to_string(spec.dtype)).take();
}

std::string shape_text(const SoftmaxSpec& spec) { return times(shape_of(spec.shape)); }

std::string family_of(const SoftmaxSpec& spec) { return "rows " + std::string(to_string(spec.dtype)); }

Status check(const ActivationSpec& spec) {
  if (Status status = check_shape(spec.shape); !status.ok()) return status;
  if (!is_known(spec.activation) || spec.activation == Activation::none) {
    return invalid_argument("activation " + std::to_string(static_cast<int>(spec.activation)) +
                            ": expected relu or relu6");
  }
  return check_dtype(spec.dtype);
}

std::vector<Operand> operands_of(const ActivationSpec& spec) { return one_input(spec.shape); }

double flops_of(const ActivationSpec& spec) noexcept { return elements_of(spec.shape); }

std::string fields_of(const ActivationSpec& spec) {
  return shape_fields(spec.shape)
      .word("dtype", to_string(spec.dtype))
      .word("activation", to_string(spec.activation))
      .take();
}

std::string shape_text(const ActivationSpec& spec) {
  return times(shape_of(spec.shape)) + unless_none(spec.activation);
}

std::string family_of(const ActivationSpec& spec) { return "elements " + std::string(to_string(spec.dtype)); }

}  // namespace kiln
