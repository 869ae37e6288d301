// BoundPlan: the device buffers of a plan's bindings, with its Constants.
//
// Thread-safety: none. Ownership: borrows the buffers.
#pragma once

#include "executor/constant_store.hpp"

#include <kiln/executor.hpp>

#include <functional>
#include <vector>

namespace kiln::executor {

// Runs a dispatch and returns after its end.
using RunToEnd = std::function<Status(const Dispatch&)>;

constexpr bool is_uploaded(TensorRole role) noexcept { return role == TensorRole::input || role == TensorRole::inout; }
constexpr bool is_read_back(TensorRole role) noexcept {
  return role == TensorRole::output || role == TensorRole::inout;
}
// inout tensors are copied in both directions, so neither kind of staging memory is suitable.
constexpr BufferUsage usage_of(TensorRole role) noexcept {
  if (role == TensorRole::input) return BufferUsage::upload;
  return role == TensorRole::output ? BufferUsage::readback : BufferUsage::storage;
}

Status copy_in(Buffer& to, std::span<const std::byte> from);
Status copy_out(Buffer& from, std::span<std::byte> to);

struct BoundPlan {
  std::vector<Buffer*> tensors, scratch, prepared, constants;

  Buffer* of(const Binding& binding) const noexcept;
  void clear() noexcept;
};

// Sets the constants in bound.tensors and bound.constants, and the packed forms in bound.prepared. Missing packed forms
// are made with `run`; `packed` counts them. REQUIRES: check(submission).ok().
Status bind_constants(const Submission& submission, BoundPlan& bound, Device& device, ConstantStore& constants,
                      const RunToEnd& run, std::uint64_t& packed);

// Appends the buffers that each pass binds, pass after pass.
void append_bindings(const std::vector<Pass>& passes, const BoundPlan& bound, std::vector<Buffer*>& to);
// Appends one launch per pass of the submission. Removes its bindings from the front of `bindings`.
void append_launches(const Submission& submission, std::span<Buffer* const>& bindings, std::vector<PassLaunch>& to);

}  // namespace kiln::executor
