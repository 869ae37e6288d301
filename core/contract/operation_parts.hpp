// The parts of each operation, from which operations.cpp makes its table.
//
// To add an operation: add its spec to KernelSpec, define the functions below for it, and add its name to the table. The
// reference is an overload in reference/operation_reference.cpp.
// Thread-safety: pure functions.
#pragma once

#include <kiln/operation.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// Checks that several operations share.
inline constexpr std::int64_t most_extent = 1 << 20;
Status check_dtype(DType dtype);                                    // f32
Status check_elements(std::string_view tensor, const Shape& shape);  // at most 2^36
Status out_of_range(std::string_view field, std::int64_t value, std::int64_t least, std::int64_t most);

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

}  // namespace kiln
