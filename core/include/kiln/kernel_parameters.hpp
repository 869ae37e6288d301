// Kernel parameters: the variants of a user kernel with tunable parameters. A variant selects one text per parameter.
//
// Thread-safety: functions are pure. Ownership: values.
//
//   if (kiln::Status status = kiln::check_parameters(kernel); !status.ok()) return status;
//   for (const std::string& variant : kiln::variants_of(kernel)) {
//     auto one = kiln::settled(kernel, variant);
//     if (!one) return one.error();
//   }
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

inline constexpr std::size_t most_kernel_variants = 1024;

// Returns all combinations of the parameters, such as "user:TILE=8,UNROLL=2"; the last parameter changes first. Returns
// "user" for a kernel without parameters. The first variant has the first text of each parameter and is the default.
// REQUIRES: check_parameters(kernel) is ok.
std::vector<std::string> variants_of(const UserKernelSpec& kernel);

// Returns the kernel of one variant, with parameters as constants and a numeric grid. not_found: no such variant.
// invalid_argument: the grid is not valid; the error has the expression and its value.
Result<UserKernelSpec> settled(const UserKernelSpec& kernel, std::string_view variant);

// Returns the value of an expression of integers, names of integer constants, + - * / % and parentheses. Division drops the
// remainder. invalid_argument: a syntax error and its position, a name without an integer, a division by zero, or a number
// above 64 bits. Callers put "grid[0] = …: " before the message.
Result<std::int64_t> value_of(std::string_view expression, std::span<const Define> names);

// invalid_argument: a parameter without texts, a duplicate text, a name in use, more than most_kernel_variants
// variants, or an invalid grid in a variant. The error names the parameter or the axis.
Status check_parameters(const UserKernelSpec& kernel);

// Returns the reason of a failure in one line of at most 300 characters: the first error line of a compiler log.
std::string short_reason(std::string_view variant, const Status& failure);

// Collects failed variants without duplicates. text() groups variants with the same reason.
class FailedVariants {
 public:
  void add(std::string_view variant, const Status& failure);  // with its short_reason()
  void add(std::string_view variant, std::string reason);
  bool empty() const noexcept { return failed_.empty(); }
  std::size_t size() const noexcept { return failed_.size(); }
  bool contains(std::string_view variant) const noexcept;
  // "user:A=1, user:A=2: invalid_argument: …; user:A=3: …".
  std::string text() const;
  // "user:A=1: invalid_argument: …", one for each variant, in the order of add().
  std::vector<std::string> lines() const;

 private:
  struct Failed {
    std::string variant, reason;
  };
  std::vector<Failed> failed_;
};

}  // namespace kiln
