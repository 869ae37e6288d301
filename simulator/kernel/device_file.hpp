// The ioctls of the device file, of its information queries, and of sync files.
#pragma once

#include <amdgpu_drm.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "simulator/kernel/address_operations.hpp"
#include "simulator/kernel/buffer_table.hpp"
#include "simulator/kernel/context.hpp"
#include "simulator/kernel/device.hpp"
#include "simulator/kernel/sync_objects.hpp"

namespace kiln::simulator::kernel {

// DeviceFile: an open file of the simulated render node: its own address space, buffers, contexts and sync objects, and
// the entry for its ioctls. What a program would reach through a device node, tests call here.
//
// Thread-safety: any thread. Ownership: shares the device; frees what the program left in the destructor.

class DeviceFile {
 public:
  explicit DeviceFile(std::shared_ptr<Device> device);
  DeviceFile(const DeviceFile&) = delete;
  DeviceFile& operator=(const DeviceFile&) = delete;

  // 0, or an errno. REQUIRES that the addresses in `argument`, where they are not 0, are the program's.
  int control(unsigned long request, void* argument);

  // What a mapping of the device file at `offset` is to be made of: a descriptor, valid while the buffer has a handle,
  // and the offset in it. An errno where there is no such buffer.
  struct Backing {
    int fd = -1;
    std::uint64_t offset = 0;
  };
  int find_backing(std::uint64_t offset, std::uint64_t bytes, Backing& backing);

  Device& device() noexcept { return *device_; }

 private:
  struct Entry;
  using Lock = std::unique_lock<std::mutex>;
  static const Entry* find_entry(unsigned number) noexcept;

  Answer version(drm_version& version) const;
  Answer capability(drm_get_cap& capability) const;
  Answer submit(drm_amdgpu_cs& cs, Lock& lock);
  Answer wait_idle(drm_amdgpu_gem_wait_idle& wait, Lock& lock);
  Answer reserve(drm_amdgpu_vm& vm);
  Answer fence_to_handle(drm_amdgpu_fence_to_handle& convert);

  const std::shared_ptr<Device> device_;
  PageTable pages_;
  BufferTable buffers_;
  AddressOperations addresses_;
  BufferLists lists_;
  ContextTable contexts_;
  SyncObjectTable sync_objects_;
  Fences jobs_;  // that have not ended
};

// The information queries of the driver.
//
// Thread-safety: REQUIRES the device's mutex. Ownership: borrows the device.

Answer answer_info(const Device& device, const drm_amdgpu_info& query);

// The ioctls of a descriptor that stands for fences (a sync file): two joined into one, and its state.
//
// Thread-safety: any thread. Ownership: borrows the device; a joined descriptor is the caller's.

bool is_sync_file(Device& device, int fd);
// 0, or an errno. REQUIRES is_sync_file(device, fd).
int control_sync_file(Device& device, int fd, unsigned long request, void* argument);

}  // namespace kiln::simulator::kernel
