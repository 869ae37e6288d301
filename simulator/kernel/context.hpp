// Contexts: what a program submitted to each ring, and the table of the contexts of one open file.
#pragma once

#include <amdgpu_drm.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "simulator/kernel/device.hpp"
#include "simulator/kernel/fence.hpp"

namespace kiln::simulator::kernel {

// Context: a program's place in the queues of the device: what it submitted to each ring, in order, and what resets
// have done to it.
//
// Thread-safety: REQUIRES the device's mutex. Ownership: shared with the jobs, which outlive a context that is freed.

struct RingName {
  std::uint32_t ip = 0;  // AMDGPU_HW_IP_*
  std::uint32_t index = 0;
  auto operator<=>(const RingName&) const = default;
};

struct JobFences {
  FencePtr scheduled;  // the ring has taken the job up
  FencePtr finished;
};

// What a context submitted to one ring.
class Sequence {
 public:
  std::uint64_t add(JobFences fences);  // the job's number, from 1
  std::uint64_t last() const noexcept { return last_; }
  // Both null where the job has long ended. REQUIRES number <= last().
  JobFences find(std::uint64_t number) const;

 private:
  std::map<std::uint64_t, JobFences> recent_;
  std::uint64_t last_ = 0;
};

struct Context {
  std::int32_t priority = 0;
  std::uint32_t pstate = 0;  // asked for; the simulated clocks do not change
  std::uint32_t resets_at_creation = 0;
  std::uint32_t vram_losses_at_creation = 0;
  std::uint32_t resets_reported = 0;  // to the older query
  std::uint32_t hangs = 0;            // that it caused
  bool guilty = false;
  bool lost = false;  // in a reset that it did not cause
  std::map<RingName, Sequence> sequences;
};

using ContextPtr = std::shared_ptr<Context>;

// ContextTable: the contexts of one open file, the ioctls about them, and the waits for what they submitted.
//
// Thread-safety: REQUIRES the device's mutex; waits let go of it. Ownership: shares the contexts.

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
