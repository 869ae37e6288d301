#include "simulator/kernel/buffers/buffer_lists.hpp"

#include <cerrno>
#include <cstring>

namespace kiln::simulator::kernel {

Answer read_buffer_list(const drm_amdgpu_bo_list_in& in, const BufferTable& buffers, BufferList& list) {
  if (in.bo_info_size != sizeof(drm_amdgpu_bo_list_entry)) {
    return refuse(EINVAL, "buffer list with entries of " + std::to_string(in.bo_info_size) + " bytes: 8 is known");
  }
  if (in.bo_number > 0 && in.bo_info_ptr == 0) return refuse(EFAULT, "buffer list at address 0");
  list.clear();
  list.reserve(in.bo_number);
  for (std::uint32_t i = 0; i < in.bo_number; ++i) {
    drm_amdgpu_bo_list_entry entry{};
    // NOLINTNEXTLINE: an address that the program gives as a number
    std::memcpy(&entry, reinterpret_cast<const std::byte*>(in.bo_info_ptr) + i * sizeof entry, sizeof entry);
    BufferPtr buffer = buffers.find(entry.bo_handle);
    if (buffer == nullptr) {
      return refuse(ENOENT, "buffer list entry " + std::to_string(i) + ": handle " + std::to_string(entry.bo_handle) +
                                " is none");
    }
    list.push_back(std::move(buffer));
  }
  return {};
}

Answer BufferLists::operate(drm_amdgpu_bo_list& operation, const BufferTable& buffers) {
  const drm_amdgpu_bo_list_in in = operation.in;
  if (in.operation > AMDGPU_BO_LIST_OP_UPDATE)
    return refuse(EINVAL, "buffer list operation " + std::to_string(in.operation));
  const auto known = lists_.find(in.list_handle);
  if (in.operation != AMDGPU_BO_LIST_OP_CREATE && known == lists_.end()) {
    return refuse(ENOENT, "buffer list " + std::to_string(in.list_handle) + " is none");
  }
  operation = {};
  if (in.operation == AMDGPU_BO_LIST_OP_DESTROY) {
    lists_.erase(known);
    return {};
  }
  BufferList list;
  if (Answer refusal = read_buffer_list(in, buffers, list)) return refusal;
  const std::uint32_t handle = in.operation == AMDGPU_BO_LIST_OP_CREATE ? ++last_handle_ : in.list_handle;
  lists_[handle] = std::move(list);
  operation.out.list_handle = handle;
  return {};
}

const BufferList* BufferLists::find(std::uint32_t handle) const {
  const auto at = lists_.find(handle);
  return at == lists_.end() ? nullptr : &at->second;
}

}  // namespace kiln::simulator::kernel
