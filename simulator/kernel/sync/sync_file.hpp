// The ioctls of a descriptor that stands for fences (a sync file): two joined into one, and its state.
//
// Thread-safety: any thread. Ownership: borrows the device; a joined descriptor is the caller's.
#pragma once

#include "simulator/kernel/device/device.hpp"

namespace kiln::simulator::kernel {

bool is_sync_file(Device& device, int fd);
// 0, or an errno. REQUIRES is_sync_file(device, fd).
int control_sync_file(Device& device, int fd, unsigned long request, void* argument);

}  // namespace kiln::simulator::kernel
