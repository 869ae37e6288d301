// BufferList: the buffers that one submission may touch, as the kernel driver is told them (by handle, each once) and
// as the check before the submission looks addresses up (by address).
//
// Thread-safety: one thread at a time. Ownership: keeps none of the buffers; allocates nothing once it has held as
// many.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "amdgpu_pm4/safety/submission_scope.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

class BufferList {
 public:
  void clear();
  void add(const BufferObject& buffer);
  // In order, and each once. REQUIRES: before handles() and ranges().
  void sort();

  std::span<const std::uint32_t> handles() const noexcept { return handles_; }
  std::span<const BufferRange> ranges() const noexcept { return ranges_; }

 private:
  std::vector<std::uint32_t> handles_;
  std::vector<BufferRange> ranges_;
};

}  // namespace kiln::amdgpu_pm4
