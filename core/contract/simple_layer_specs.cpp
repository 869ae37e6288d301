// pool2d, add, softmax and activation as operations.
#include "contract/operation_parts.hpp"

#include <algorithm>

namespace kiln {
namespace {

double elements_of(const Extents& extents) noexcept {
  return product(std::span(extents.begin(), std::ranges::find(extents, 0)));
}

Status check_shape(const Extents& extents) {
  const auto* const end = std::ranges::find(extents, 0);
  const bool has_gap = std::any_of(end, extents.end(), [](std::int64_t extent) { return extent != 0; });
  if (end == extents.begin() || has_gap) {
    return invalid_argument("shape " + to_string(Shape(extents.begin(), extents.end())) +
                            ": expected one to four dimensions, and zeros only behind them");
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
