// FixtureProgram: a program of the fixture device: a named C++ function with its constants.
//
// The function is named by KernelSource::text, blanks around it ignored; its constants are the source's Defines:
//   copy     b1 = b0                     add   b2 = b0 + b1          scale      b1 = b0 * FACTOR
//   fill     b0 = VALUE                  add_one  b0 = b0 + 1        (all on float elements; copy on bytes)
// A source of the dialect `library` runs its spec: conv2d and gemm by plain loops with double sums, a user's kernel as
// the function that its text names. Thread-safety: immutable. Ownership: a program keeps nothing of its device alive
// but the counter of live programs.
#pragma once

#include <kiln/program.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kiln::support {

class FixtureProgram final : public Program {
 public:
  // invalid_argument with the "compiler's" log where the source names no function.
  static Result<std::unique_ptr<FixtureProgram>> compile(const KernelSource& source, std::uint64_t charge,
                                                         std::shared_ptr<std::atomic<std::int64_t>> live);
  ~FixtureProgram() override;

  std::uint64_t charge() const noexcept override { return charge_; }
  const std::string& function() const noexcept { return function_; }
  // The bytes that FixtureDevice serializes: equal sources give equal bytes.
  const std::string& image() const noexcept { return image_; }
  // invalid_argument where the bindings do not fit the function.
  Status check(std::span<const std::span<std::byte>> bindings) const;
  // Checks, then runs.
  Status run(std::span<const std::span<std::byte>> bindings) const;

 private:
  FixtureProgram() = default;

  std::string function_;
  std::map<std::string, double> constants_;
  std::optional<KernelSpec> spec_;
  std::string image_;
  std::uint64_t charge_ = 0;
  std::shared_ptr<std::atomic<std::int64_t>> live_;
};

}  // namespace kiln::support
