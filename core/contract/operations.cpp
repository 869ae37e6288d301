// The table of operations, and the functions on KernelSpec that read it.
#include "contract/operation_parts.hpp"

#include <algorithm>
#include <iterator>

namespace kiln {
namespace {

template <class Spec>
constexpr bool is_layer = !std::is_same_v<Spec, UserKernelSpec>;

template <class Spec>
constexpr Operation entry(std::string_view name) {
  Operation made;
  made.name = name;
  made.is_layer = is_layer<Spec>;
  made.check = [](const KernelSpec& spec) { return check(std::get<Spec>(spec)); };
  made.operands = [](const KernelSpec& spec) { return operands_of(std::get<Spec>(spec)); };
  made.flops = [](const KernelSpec& spec) { return flops_of(std::get<Spec>(spec)); };
  made.saving = [](const KernelSpec& spec) { return saving_of(std::get<Spec>(spec)); };
  made.fields = [](const KernelSpec& spec) { return fields_of(std::get<Spec>(spec)); };
  made.shape = [](const KernelSpec& spec) { return shape_text(std::get<Spec>(spec)); };
  made.family = [](const KernelSpec& spec) { return family_of(std::get<Spec>(spec)); };
  return made;
}

constexpr Operation table[] = {
    entry<Conv2dSpec>("conv2d"),
    entry<GemmSpec>("gemm"),
    entry<UserKernelSpec>("kernel"),
};
static_assert(std::size(table) == std::variant_size_v<KernelSpec>);

}  // namespace

std::span<const Operation> operations() noexcept { return table; }

const Operation* operation_named(std::string_view name) noexcept {
  const auto* found = std::ranges::find(table, name, &Operation::name);
  return found == std::end(table) ? nullptr : found;
}

const Operation& operation_of(const KernelSpec& spec) noexcept { return table[spec.index()]; }

Status validate(const KernelSpec& spec) {
  if (spec.valueless_by_exception()) return invalid_argument("the specification holds no operation");
  return operation_of(spec).check(spec).within(operation(spec));
}

std::string_view operation(const KernelSpec& spec) noexcept {
  return spec.valueless_by_exception() ? "invalid" : operation_of(spec).name;
}

double flops(const KernelSpec& spec) noexcept {
  return spec.valueless_by_exception() ? 0 : operation_of(spec).flops(spec);
}

double bytes_moved(const KernelSpec& spec) {
  double bytes = 0;
  for (const TensorDecl& tensor : tensors_of(spec)) {
    bytes += static_cast<double>(tensor.bytes) * (tensor.role == TensorRole::inout ? 2 : 1);
  }
  return bytes;
}

std::string canonical_text(const KernelSpec& spec) {
  std::string text(operation(spec));
  return spec.valueless_by_exception() ? text : text + operation_of(spec).fields(spec);
}

std::vector<TensorDecl> tensors_of(const KernelSpec& spec) {
  std::vector<TensorDecl> tensors;
  if (spec.valueless_by_exception()) return tensors;
  for (Operand& operand : operation_of(spec).operands(spec)) {
    tensors.push_back({std::move(operand.name), operand.role, operand.bytes});
  }
  return tensors;
}

Status out_of_range(std::string_view field, std::int64_t value, std::int64_t least, std::int64_t most) {
  return invalid_argument(std::string(field) + " = " + std::to_string(value) + ": expected " + std::to_string(least) +
                          " to " + std::to_string(most));
}

Status check_elements(std::string_view tensor, const Shape& shape) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 36;
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > most_elements) {
      return invalid_argument(std::string(tensor) + " " + to_string(shape) + ": more than 2^36 elements");
    }
  }
  return {};
}

Status check_dtype(DType dtype) {
  if (dtype == DType::f32) return {};
  return unsupported("dtype " + std::string(to_string(dtype)) + ": expected f32");
}

FieldText& FieldText::number(std::string_view name, std::int64_t value) {
  text_.append(" ").append(name).append("=").append(std::to_string(value));
  return *this;
}

FieldText& FieldText::word(std::string_view name, std::string_view value) {
  text_.append(" ").append(name).append("=").append(value);
  return *this;
}

}  // namespace kiln
