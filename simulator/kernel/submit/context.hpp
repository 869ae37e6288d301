// Context: a program's place in the queues of the device: what it submitted to each ring, in order, and what resets
// have done to it.
//
// Thread-safety: REQUIRES the device's mutex. Ownership: shared with the jobs, which outlive a context that is freed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "simulator/kernel/base/answer.hpp"
#include "simulator/kernel/sync/fence.hpp"

namespace kiln::simulator::kernel {

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

}  // namespace kiln::simulator::kernel
