// RangeFinder: looks addresses up in a submission's buffer list.
//
// Thread-safety: one thread at a time. Ownership: borrows the list. Allocates nothing, but where it refuses.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "amdgpu_pm4/safety/submission_scope.hpp"

namespace kiln::amdgpu_pm4 {

class RangeFinder {
 public:
  explicit RangeFinder(std::span<const BufferRange> buffers) noexcept : buffers_(buffers) {}

  // invalid_argument: the list is not in order, or its buffers overlap.
  Status check_order() const;

  // invalid_argument unless one buffer holds [va, va + bytes) and has every right asked for. `what` names the use.
  Status check(std::uint64_t va, std::uint64_t bytes, std::uint8_t rights, std::string_view what);

  bool has_rights(std::uint64_t va, std::uint8_t rights);

 private:
  const BufferRange* find(std::uint64_t va);

  std::span<const BufferRange> buffers_;
  const BufferRange* last_ = nullptr;  // found: the next address is often in the same buffer
};

// "0x8000001000"
std::string hex_text(std::uint64_t value);

}  // namespace kiln::amdgpu_pm4
