// The parts of each operation, from which operations.cpp makes its table.
//
// To add an operation: add its spec to KernelSpec, raise kiln::plugin_abi, and define the functions below and its name
// for it. The compiler then asks for the overloads of reference/operation_reference.cpp and, of a layer, for
// plain_bytes in runtime/planner.cpp. config/job_keys.cpp gives it a job's `op`; tests then ask for that in
// docs/json-output.schema.json and configs/default.toml. docs/pipelines.md describes it. A generator or device that
// does not know it answers unsupported. Thread-safety: pure functions.
#pragma once

#include <kiln/operation.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kiln {

template <class Spec>
inline constexpr bool is_layer = std::is_constructible_v<LayerSpec, Spec>;

// Whether an element of the result needs that of each input alone: the result may then have the place of an input.
template <class Spec>
inline constexpr bool is_elementwise = false;
template <>
inline constexpr bool is_elementwise<AddSpec> = true;
template <>
inline constexpr bool is_elementwise<ActivationSpec> = true;

// Checks that several operations share.
inline constexpr std::int64_t most_extent = 1 << 20;
Status check_dtype(DType dtype);                                     // f32
Status check_elements(std::string_view tensor, const Shape& shape);  // at most 2^36
Status out_of_range(std::string_view field, std::int64_t value, std::int64_t least, std::int64_t most);

bool is_known(Activation activation) noexcept;  // an application may hold any number in an enumeration
std::int64_t out_extent(std::int64_t in, std::int64_t pad, std::int64_t dilation, std::int64_t taps,
                        std::int64_t stride) noexcept;  // 0: there is no such output

// The product of extents, of which one that is not positive counts as 0. It leaves 64 bits for what validate() would
// refuse.
double product(std::span<const std::int64_t> extents) noexcept;
inline double product(std::initializer_list<std::int64_t> extents) noexcept {
  return product(std::span(extents.begin(), extents.size()));
}

// Bytes of an fp32 tensor: 0 if an extent is not positive, the greatest number if the product leaves 64 bits.
std::uint64_t float_bytes_of(const Shape& shape) noexcept;
Operand operand(std::string_view name, TensorRole role, Shape shape);

// Whether a tensor can be an operand: a matrix may also be given with more dimensions. Its rows are the first, all
// others are its columns.
bool fits_operand(const Shape& found, const Shape& wanted);

std::string times(const Shape& factors);  // "1x3x224x224"
// " stride 2": nothing if both are the usual value; "2x3" if they differ.
std::string unless_usual(std::string_view name, std::int64_t y, std::int64_t x, std::int64_t usual);
std::string unless_none(Activation activation);

// " name=value" for each field.
class FieldText {
 public:
  FieldText& number(std::string_view name, std::int64_t value);
  FieldText& word(std::string_view name, std::string_view value);
  std::string take() noexcept { return std::move(text_); }

 private:
  std::string text_;
};

Status check(const Conv2dSpec& spec);
std::vector<Operand> operands_of(const Conv2dSpec& spec);
double flops_of(const Conv2dSpec& spec) noexcept;
double saving_of(const Conv2dSpec& spec) noexcept;
std::string fields_of(const Conv2dSpec& spec);
std::string shape_text(const Conv2dSpec& spec);
std::string family_of(const Conv2dSpec& spec);

Status check(const GemmSpec& spec);
std::vector<Operand> operands_of(const GemmSpec& spec);
double flops_of(const GemmSpec& spec) noexcept;
inline double saving_of(const GemmSpec&) noexcept { return 1; }
std::string fields_of(const GemmSpec& spec);
std::string shape_text(const GemmSpec& spec);
std::string family_of(const GemmSpec& spec);

Status check(const UserKernelSpec& spec);
std::vector<Operand> operands_of(const UserKernelSpec& spec);
inline double flops_of(const UserKernelSpec&) noexcept { return 0; }
inline double saving_of(const UserKernelSpec&) noexcept { return 1; }
std::string fields_of(const UserKernelSpec& spec);
std::string shape_text(const UserKernelSpec& spec);
std::string family_of(const UserKernelSpec& spec);

Status check(const Pool2dSpec& spec);
std::vector<Operand> operands_of(const Pool2dSpec& spec);
double flops_of(const Pool2dSpec& spec) noexcept;
double saving_of(const Pool2dSpec& spec) noexcept;
std::string fields_of(const Pool2dSpec& spec);
std::string shape_text(const Pool2dSpec& spec);
std::string family_of(const Pool2dSpec& spec);

Status check(const AddSpec& spec);
std::vector<Operand> operands_of(const AddSpec& spec);
double flops_of(const AddSpec& spec) noexcept;
inline double saving_of(const AddSpec&) noexcept { return 1; }
std::string fields_of(const AddSpec& spec);
std::string shape_text(const AddSpec& spec);
std::string family_of(const AddSpec& spec);

Status check(const SoftmaxSpec& spec);
std::vector<Operand> operands_of(const SoftmaxSpec& spec);
double flops_of(const SoftmaxSpec& spec) noexcept;
inline double saving_of(const SoftmaxSpec&) noexcept { return 1; }
std::string fields_of(const SoftmaxSpec& spec);
std::string shape_text(const SoftmaxSpec& spec);
std::string family_of(const SoftmaxSpec& spec);

Status check(const ActivationSpec& spec);
std::vector<Operand> operands_of(const ActivationSpec& spec);
double flops_of(const ActivationSpec& spec) noexcept;
inline double saving_of(const ActivationSpec&) noexcept { return 1; }
std::string fields_of(const ActivationSpec& spec);
std::string shape_text(const ActivationSpec& spec);
std::string family_of(const ActivationSpec& spec);

Status check(const ChainSpec& spec);
std::vector<Operand> operands_of(const ChainSpec& spec);
double flops_of(const ChainSpec& spec) noexcept;
double saving_of(const ChainSpec& spec) noexcept;
std::string fields_of(const ChainSpec& spec);
std::string shape_text(const ChainSpec& spec);
std::string family_of(const ChainSpec& spec);

}  // namespace kiln
