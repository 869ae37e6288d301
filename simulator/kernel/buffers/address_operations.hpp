// AddressOperations: the ioctl that maps buffers into the GPU's addresses and takes them out, for one open file.
//
// Thread-safety: REQUIRES the device's mutex. Ownership: borrows the page table and the buffers.
#pragma once

#include <amdgpu_drm.h>

#include "simulator/kernel/buffers/buffer_table.hpp"
#include "simulator/kernel/buffers/sparse_ranges.hpp"

namespace kiln::simulator::kernel {

class AddressOperations {
 public:
  AddressOperations(const Target& target, const BufferTable& buffers, PageTable& pages)
      : target_(target), buffers_(buffers), pages_(pages) {}

  Answer operate(const drm_amdgpu_gem_va& operation);

 private:
  Answer operate_sparse(const drm_amdgpu_gem_va& operation);
  Answer map(const drm_amdgpu_gem_va& operation, const BufferPtr& buffer);

  const Target& target_;
  const BufferTable& buffers_;
  PageTable& pages_;
  SparseRanges sparse_;
};

}  // namespace kiln::simulator::kernel
