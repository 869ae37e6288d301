// BufferLists: which buffers a submission may use: lists that live under a handle, and the reading of entries, which a
// submission may also carry itself.
//
// Thread-safety: REQUIRES the device's mutex. Ownership: a list shares its buffers.
#pragma once

#include <amdgpu_drm.h>

#include <cstdint>
#include <map>
#include <vector>

#include "simulator/kernel/buffers/buffer_table.hpp"

namespace kiln::simulator::kernel {

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
