#include "simulator/kernel/sync/sync_file.hpp"

#include <linux/sync_file.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kiln::simulator::kernel {
namespace {

int merge(Device& device, const Fences& first, sync_merge_data& data) {
  const auto second = device.descriptors.fences_behind(data.fd2);
  if (!second || data.flags != 0 || data.pad != 0) return second ? EINVAL : ENOENT;
  Fences both = first;
  both.insert(both.end(), second->begin(), second->end());
  auto fd = device.descriptors.export_fences(std::move(both));
  if (!fd) return EMFILE;
  data.fence = fd->release();
  return 0;
}

// 1: reached, 0: not yet, below: the error of a job.
std::int32_t status_of(const Fence& fence) { return fence.signaled ? (fence.error == 0 ? 1 : -fence.error) : 0; }

int describe(const Fences& fences, ::sync_file_info& info) {
  if (info.flags != 0 || info.pad != 0) return EINVAL;
  const std::uint32_t room = info.num_fences;
  info.status = 1;
  for (const FencePtr& fence : fences) info.status = std::min(info.status, status_of(*fence));
  std::snprintf(info.name, sizeof info.name, "kiln-sim");
  info.num_fences = static_cast<std::uint32_t>(fences.size());
  if (room == 0) return 0;
  if (room < fences.size() || info.sync_fence_info == 0) return EINVAL;
  for (std::size_t i = 0; i < fences.size(); ++i) {
    ::sync_fence_info one{};
    std::snprintf(one.obj_name, sizeof one.obj_name, "job");
    std::snprintf(one.driver_name, sizeof one.driver_name, "amdgpu");
    one.status = status_of(*fences[i]);
    // NOLINTNEXTLINE: an address that the program gives as a number
    std::memcpy(reinterpret_cast<std::byte*>(info.sync_fence_info) + i * sizeof one, &one, sizeof one);
  }
  return 0;
}

}  // namespace

bool is_sync_file(Device& device, int fd) {
  const std::scoped_lock lock(device.mutex);
  return device.descriptors.fences_behind(fd).has_value();
}

int control_sync_file(Device& device, int fd, unsigned long request, void* argument) {
  const std::scoped_lock lock(device.mutex);
  const auto fences = device.descriptors.fences_behind(fd);
  if (!fences) return EBADF;
  if (argument == nullptr) return EFAULT;
  if (request == SYNC_IOC_MERGE) return merge(device, *fences, *static_cast<sync_merge_data*>(argument));
  if (request == SYNC_IOC_FILE_INFO) return describe(*fences, *static_cast<::sync_file_info*>(argument));
  device.journal.write("ioctl " + hex(request) + " of a fence's descriptor is not known");
  return ENOTTY;
}

}  // namespace kiln::simulator::kernel
