// ContextTable: the contexts of one open file, the ioctls about them, and the waits for what they submitted.
//
// Thread-safety: REQUIRES the device's mutex; waits let go of it. Ownership: shares the contexts.
#pragma once

#include <amdgpu_drm.h>

#include <cstdint>
#include <map>
#include <mutex>

#include "simulator/kernel/device/device.hpp"
#include "simulator/kernel/submit/context.hpp"

namespace kiln::simulator::kernel {

class ContextTable {
 public:
  explicit ContextTable(Device& device) : device_(device) {}

  Answer operate(drm_amdgpu_ctx& operation);
  Answer wait(drm_amdgpu_wait_cs& wait, std::unique_lock<std::mutex>& lock) const;
  Answer wait_for_many(drm_amdgpu_wait_fences& wait, std::unique_lock<std::mutex>& lock) const;

  ContextPtr find(std::uint32_t id) const;  // null where it is none
  // The fences of one job; null ones where it has long ended, or number 0 was asked for. ~0 is the latest.
  Answer find_job(const drm_amdgpu_fence& name, JobFences& fences) const;
  // Whether a ring of that name is there.
  Answer check_ring(std::uint32_t ip, std::uint32_t instance, std::uint32_t ring) const;

 private:
  Answer create(drm_amdgpu_ctx& operation);
  void state(Context& context, drm_amdgpu_ctx& operation) const;
  std::uint32_t state_flags(const Context& context) const;

  Device& device_;
  std::map<std::uint32_t, ContextPtr> contexts_;
  std::uint32_t last_id_ = 0;
};

}  // namespace kiln::simulator::kernel
