// AddressOperations: the ioctl that maps buffers into the GPU's addresses and takes them out, for one open file.
//
// Thread-safety: REQUIRES the device's mutex. Ownership: borrows the page table and the buffers.
#pragma once

#include <amdgpu_drm.h>

#include <cstdint>
#include <map>

#include "simulator/kernel/buffer_table.hpp"

namespace kiln::simulator::kernel {

// SparseRanges: addresses that were given away without memory behind them (partially resident mappings). Buffers are
// put over parts of them later.
//
// Thread-safety: REQUIRES the device's mutex. Ownership: values.

class SparseRanges {
 public:
  bool overlaps(std::uint64_t start, std::uint64_t bytes) const;
  // REQUIRES that it overlaps none.
  void add(std::uint64_t start, std::uint64_t bytes) { ends_[start] = start + bytes; }
  void cut(std::uint64_t start, std::uint64_t bytes);
  const std::map<std::uint64_t, std::uint64_t>& ends() const { return ends_; }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by start; no two overlap
};

class AddressOperations {
 public:
  AddressOperations(const Target& target, const BufferTable& buffers, PageTable& pages)
      : target_(target), buffers_(buffers), pages_(pages) {}

  Answer operate(const drm_amdgpu_gem_va& operation);

 private:
  Answer change(const drm_amdgpu_gem_va& operation);
  Answer operate_sparse(const drm_amdgpu_gem_va& operation);
  Answer map(const drm_amdgpu_gem_va& operation, const BufferPtr& buffer);

  const Target& target_;
  const BufferTable& buffers_;
  PageTable& pages_;
  SparseRanges sparse_;
};

}  // namespace kiln::simulator::kernel
