// Chains of layers as an operation.
#include "contract/operations.hpp"

#include <kiln/device_selector.hpp>
#include <kiln/digest.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

namespace kiln {
namespace {

std::string name_of_tensor(std::size_t i) { return "tensor " + std::to_string(i); }

// The tensors of one step: roles, sizes, and that each is written before it is read. written: of all tensors.
Status check_step(const ChainSpec& spec, const ChainSpec::Step& step, std::vector<bool>& written) {
  const KernelSpec layer = kernel_spec_of(step.layer);
  if (Status status = validate(layer); !status.ok()) return status;
  const std::vector<Operand> operands = operation_of(layer).operands(layer);
  if (step.tensors.size() != operands.size()) {
    return invalid_argument("found " + std::to_string(step.tensors.size()) + " tensors, expected " +
                            std::to_string(operands.size()));
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::uint32_t at = step.tensors[i];
    const auto wrong = [&](const std::string& why) { return invalid_argument(operands[i].name + ": " + why); };
    if (at >= spec.tensors.size()) {
      return wrong(name_of_tensor(at) + ", expected an index below " + std::to_string(spec.tensors.size()));
    }
    const ChainSpec::Tensor& tensor = spec.tensors[at];
    if (!fits_operand(tensor.shape, operands[i].shape)) {
      return wrong(name_of_tensor(at) + " is " + to_string(tensor.shape) + ", expected " +
                   to_string(operands[i].shape));
    }
    const bool is_constant = operands[i].role == TensorRole::constant;
    if (is_constant != (tensor.role == TensorRole::constant)) {
      return wrong(name_of_tensor(at) + (is_constant ? " is not a constant" : " is a constant"));
    }
    if (operands[i].role == TensorRole::output) {
      if (tensor.role == TensorRole::input || written[at]) return wrong(name_of_tensor(at) + " is already written");
      written[at] = true;
    } else if (!written[at]) {
      return wrong(name_of_tensor(at) + " is read before it is written");
    }
  }
  return {};
}

}  // namespace

Status check(const ChainSpec& spec) {
  if (spec.steps.empty()) return invalid_argument("has no steps, expected at least one");
  std::vector<bool> written;
  for (std::size_t i = 0; i < spec.tensors.size(); ++i) {
    const TensorRole role = spec.tensors[i].role;
    if (role == TensorRole::inout)
      return invalid_argument(name_of_tensor(i) + ": is both input and output, expected one of them");
    written.push_back(role == TensorRole::input || role == TensorRole::constant);
  }
  for (std::size_t i = 0; i < spec.steps.size(); ++i) {
    Status status = check_step(spec, spec.steps[i], written);
    if (!status.ok()) return status.within("step " + std::to_string(i));
  }
  const auto unwritten = std::ranges::find(written, false);
  if (unwritten == written.end()) return {};
  return invalid_argument(name_of_tensor(static_cast<std::size_t>(unwritten - written.begin())) +
                          ": no step writes it");
}

std::vector<Operand> operands_of(const ChainSpec& spec) {
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < spec.tensors.size(); ++i) {
    const ChainSpec::Tensor& tensor = spec.tensors[i];
    if (tensor.role != TensorRole::invalid) operands.push_back(operand(name_of_tensor(i), tensor.role, tensor.shape));
  }
  return operands;
}

double flops_of(const ChainSpec& spec) noexcept {
  double sum = 0;
  for (const ChainSpec::Step& step : spec.steps) sum += flops(kernel_spec_of(step.layer));
  return sum;
}

double saving_of(const ChainSpec& spec) noexcept {
  double most = 1;
  for (const ChainSpec::Step& step : spec.steps) {
    const KernelSpec layer = kernel_spec_of(step.layer);
    most = std::max(most, operation_of(layer).saving(layer));
  }
  return most;
}

std::string fields_of(const ChainSpec& spec) {
  FieldText fields;
  for (const ChainSpec::Tensor& tensor : spec.tensors) {
    fields.word("tensor", times(tensor.shape) + "/" + std::to_string(static_cast<int>(tensor.role)));
  }
  for (const ChainSpec::Step& step : spec.steps) {
    std::string tensors;
    for (const std::uint32_t at : step.tensors) tensors += (tensors.empty() ? "" : ",") + std::to_string(at);
    fields.word("step", tensors + " {" + canonical_text(kernel_spec_of(step.layer)) + "}");
  }
  return fields.take();
}

std::string shape_text(const ChainSpec& spec) {
  return std::to_string(spec.steps.size()) + " layers " + sha256(canonical_text(spec)).hex().substr(0, 8);
}

std::string family_of(const ChainSpec& spec) { return sha256(canonical_text(spec)).hex().substr(0, 32); }

// The table of operations, and the functions on KernelSpec that read it.

namespace {

template <class Spec>
constexpr std::string_view operation_name = {};
template <>
constexpr std::string_view operation_name<Conv2dSpec> = "conv2d";
template <>
constexpr std::string_view operation_name<GemmSpec> = "gemm";
template <>
constexpr std::string_view operation_name<UserKernelSpec> = "kernel";
template <>
constexpr std::string_view operation_name<Pool2dSpec> = "pool2d";
template <>
constexpr std::string_view operation_name<AddSpec> = "add";
template <>
constexpr std::string_view operation_name<SoftmaxSpec> = "softmax";
template <>
constexpr std::string_view operation_name<ActivationSpec> = "activation";
template <>
constexpr std::string_view operation_name<ChainSpec> = "chain";

template <class Spec>
constexpr Operation entry() {
  static_assert(!operation_name<Spec>.empty(), "an operation without a name");
  Operation made;
  made.name = operation_name<Spec>;
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

// In the order of KernelSpec.
template <std::size_t... i>
constexpr std::array<Operation, sizeof...(i)> make_table(std::index_sequence<i...>) {
  return {entry<std::variant_alternative_t<i, KernelSpec>>()...};
}

constexpr auto table = make_table(std::make_index_sequence<std::variant_size_v<KernelSpec>>());

}  // namespace

std::span<const Operation> operations() noexcept { return table; }

const Operation* operation_named(std::string_view name) noexcept {
  const auto found = std::ranges::find(table, name, &Operation::name);
  return found == table.end() ? nullptr : &*found;
}

const Operation& operation_of(const KernelSpec& spec) noexcept { return table[spec.index()]; }

KernelSpec kernel_spec_of(const LayerSpec& layer) {
  return std::visit([](const auto& held) { return KernelSpec(held); }, layer);
}

Status validate(const KernelSpec& spec) {
  if (spec.valueless_by_exception()) return invalid_argument("the specification has no operation");
  const auto* kernel = std::get_if<UserKernelSpec>(&spec);
  const std::string name = kernel != nullptr && !kernel->path.empty() ? " " + kernel->path : "";
  return operation_of(spec).check(spec).within(std::string(operation(spec)) + name);
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

bool is_known(Activation activation) noexcept {
  return activation == Activation::none || activation == Activation::relu || activation == Activation::relu6;
}

std::int64_t out_extent(std::int64_t in, std::int64_t pad, std::int64_t dilation, std::int64_t taps,
                        std::int64_t stride) noexcept {
  if (in < 1 || pad < 0 || dilation < 1 || taps < 1 || stride < 1) return 0;
  std::int64_t padded = 0, reach = 0;
  if (__builtin_mul_overflow(pad, std::int64_t{2}, &padded) || __builtin_add_overflow(padded, in, &padded) ||
      __builtin_mul_overflow(dilation, taps - 1, &reach)) {
    return 0;
  }
  return padded - 1 < reach ? 0 : (padded - 1 - reach) / stride + 1;
}

std::uint64_t float_bytes_of(const Shape& shape) noexcept {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes = sizeof(float);
  for (const std::int64_t extent : shape) {
    if (extent <= 0) return 0;
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) bytes = most;
  }
  return bytes;
}

Operand operand(std::string_view name, TensorRole role, Shape shape) {
  const std::uint64_t bytes = float_bytes_of(shape);
  return {std::string(name), role, std::move(shape), bytes};
}

double product(std::span<const std::int64_t> extents) noexcept {
  double value = 1;
  for (const std::int64_t extent : extents) value *= extent > 0 ? static_cast<double>(extent) : 0;
  return value;
}

bool fits_operand(const Shape& found, const Shape& wanted) {
  if (found == wanted) return true;
  if (wanted.size() != 2 || found.size() < 2 || found[0] != wanted[0]) return false;
  std::int64_t columns = 1;
  for (std::size_t i = 1; i < found.size(); ++i) columns *= found[i];
  return columns == wanted[1];
}

std::string times(const Shape& factors) {
  std::string text;
  for (const std::int64_t factor : factors) text += (text.empty() ? "" : "x") + std::to_string(factor);
  return text;
}

std::string unless_usual(std::string_view name, std::int64_t y, std::int64_t x, std::int64_t usual) {
  if (y == usual && x == usual) return {};
  return " " + std::string(name) + " " + (y == x ? std::to_string(y) : times({y, x}));
}

std::string unless_none(Activation activation) {
  return activation == Activation::none ? std::string() : " " + std::string(to_string(activation));
}

FieldText& FieldText::number(std::string_view name, std::int64_t value) {
  text_.append(" ").append(name).append("=").append(std::to_string(value));
  return *this;
}

FieldText& FieldText::word(std::string_view name, std::string_view value) {
  text_.append(" ").append(name).append("=").append(value);
  return *this;
}

ShapeBucket ShapeBucket::of(const KernelSpec& spec) {
  const Operation& operation = operation_of(spec);
  ShapeBucket bucket;
  bucket.operation = operation.name;
  bucket.family = operation.family(spec);
  bucket.flops = operation.flops(spec);
  bucket.bytes = bytes_moved(spec);
  bucket.saving = operation.saving(spec);
  bucket.shape = bucket.family;
  if (bucket.flops > 0) {
    char size[48];
    std::snprintf(size, sizeof size, " @%.1f/%.0f", std::round(2 * std::log2(bucket.flops)) / 2,
                  std::round(std::log2(std::max(bucket.bytes, 1.0))));
    bucket.shape += size;
  }
  return bucket;
}

}  // namespace kiln
