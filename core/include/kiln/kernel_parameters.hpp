// What a user's kernel leaves open: parameters with the texts to try, and a grid that follows from them. A variant
// gives each parameter one of its texts.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

inline constexpr std::size_t most_kernel_variants = 1024;

// "user", or of a kernel with parameters "user:TILE=8,UNROLL=2": every combination, the last parameter changing first.
// The first takes each parameter's first text: untuned, it runs where it can be built. REQUIRES:
// check_parameters(kernel).
std::vector<std::string> variants_of(const UserKernelSpec& kernel);

// The kernel of one variant: its parameters are constants, its grid is in numbers. not_found: there is no such variant.
// invalid_argument: its grid is none, with the expression and what it came to.
Result<UserKernelSpec> settled(const UserKernelSpec& kernel, std::string_view variant);

// invalid_argument that names the parameter or the axis: parameters that have no text or one twice, names that are
// taken, more than most_kernel_variants, a grid that is none in one of them.
Status check_parameters(const UserKernelSpec& kernel);

// Why a variant failed, in one line of at most 300 characters: of a compiler's log the first line with an error.
std::string short_reason(std::string_view variant, const Status& failure);

// The variants that failed, each once. Those that share a reason stand together.
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
