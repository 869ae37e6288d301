// The buffer objects of one open file, and the lists of buffers that submissions name.
#pragma once

#include <amdgpu_drm.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "simulator/kernel/buffer.hpp"
#include "simulator/kernel/device.hpp"
#include "simulator/memory/address_space.hpp"

namespace kiln::simulator::kernel {

// BufferTable: the buffer objects that one open file has handles on, and the ioctls about them.
//
// Thread-safety: REQUIRES the device's mutex; waits let go of it. Ownership: shares the buffers.

class BufferTable {
 public:
  BufferTable(Device& device, PageTable& pages) : device_(device), pages_(pages) {}

  Answer create(drm_amdgpu_gem_create& create);
  Answer create_of_program(drm_amdgpu_gem_userptr& user);
  Answer close(const drm_gem_close& close);
  Answer map_offset(drm_amdgpu_gem_mmap& map) const;
  Answer metadata(drm_amdgpu_gem_metadata& metadata) const;
  Answer operate(const drm_amdgpu_gem_op& operation) const;
  // `jobs` are those of the whole file, which buffers that are always valid belong to.
  Answer wait_idle(drm_amdgpu_gem_wait_idle& wait, const Fences& jobs, std::unique_lock<std::mutex>& lock) const;
  Answer export_to(drm_prime_handle& prime) const;
  Answer import_from(drm_prime_handle& prime);

  BufferPtr find(std::uint32_t handle) const;  // null where it is none
  // The buffer that a mapping of the device file at `offset` is of, and where it lies in it; null where there is none.
  BufferPtr at_offset(std::uint64_t offset, std::uint64_t bytes, std::uint64_t& inside) const;

 private:
  std::uint32_t add(BufferPtr buffer);

  Device& device_;
  PageTable& pages_;
  std::map<std::uint32_t, BufferPtr> buffers_;
  std::uint32_t last_handle_ = 0;
};

// BufferLists: which buffers a submission may use: lists that live under a handle, and the reading of entries, which a
// submission may also carry itself.
//
// Thread-safety: REQUIRES the device's mutex. Ownership: a list shares its buffers.

using BufferList = std::vector<BufferPtr>;

// The operation and the handle of `in` do not matter here.
Answer read_buffer_list(const drm_amdgpu_bo_list_in& in, const BufferTable& buffers, BufferList& list);

class BufferLists {
 public:
  Answer operate(drm_amdgpu_bo_list& operation, const BufferTable& buffers);
  const BufferList* find(std::uint32_t handle) const;  // null where it is none

 private:
  std::map<std::uint32_t, BufferList> lists_;
  std::uint32_t last_handle_ = 0;
};

}  // namespace kiln::simulator::kernel
