// SyncObjectTable: the sync objects that one open file has handles on, and the ioctls about them.
//
// Thread-safety: REQUIRES the device's mutex; waits let go of it. Ownership: shares the objects.
#pragma once

#include <drm.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "simulator/kernel/device.hpp"
#include "simulator/kernel/fence.hpp"

namespace kiln::simulator::kernel {

class SyncObjectTable {
 public:
  explicit SyncObjectTable(Device& device) : device_(device) {}

  Answer create(drm_syncobj_create& create);
  Answer destroy(const drm_syncobj_destroy& destroy);
  Answer export_to(drm_syncobj_handle& handle);
  Answer import_from(drm_syncobj_handle& handle);
  Answer wait(drm_syncobj_wait& wait, std::unique_lock<std::mutex>& lock);
  Answer wait_timeline(drm_syncobj_timeline_wait& wait, std::unique_lock<std::mutex>& lock);
  Answer reset(const drm_syncobj_array& array);
  Answer signal(const drm_syncobj_array& array);
  Answer signal_timeline(const drm_syncobj_timeline_array& array);
  Answer query(const drm_syncobj_timeline_array& array);
  Answer transfer(const drm_syncobj_transfer& transfer, std::unique_lock<std::mutex>& lock);

  // For submissions and fences of jobs.
  std::uint32_t add(SyncObjectPtr object);
  SyncObjectPtr find(std::uint32_t handle) const;  // null where it is none
  // What must be reached for `point`; waits for its submission where `flags` say so.
  Answer find_fences(std::uint32_t handle, std::uint64_t point, std::uint64_t flags, std::unique_lock<std::mutex>& lock,
                     Fences& fences) const;

 private:
  struct Waited {
    SyncObjectPtr object;
    std::uint64_t point = 0;
  };
  struct WaitRequest {
    std::uint64_t handles = 0;
    std::uint64_t points = 0;  // 0: point 0 of all
    std::uint32_t count = 0;
    std::uint32_t flags = 0;
    std::int64_t timeout = 0;
  };

  Answer gather(std::uint64_t handles, std::uint64_t points, std::uint32_t count, std::vector<Waited>& all) const;
  Answer wait_for(const WaitRequest& request, std::unique_lock<std::mutex>& lock, std::uint32_t& first) const;

  Device& device_;
  std::map<std::uint32_t, SyncObjectPtr> objects_;
  std::uint32_t last_handle_ = 0;
};

}  // namespace kiln::simulator::kernel
