// PendingJob: a submission that was accepted and waits for its turn on a ring.
//
// Thread-safety: REQUIRES the device's mutex, except what a ring reads of the job it runs, which nobody else changes.
// Ownership: keeps what the job uses alive until it has ended.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "simulator/kernel/buffers/buffer_lists.hpp"
#include "simulator/kernel/device/fault_plan.hpp"
#include "simulator/kernel/submit/context.hpp"
#include "simulator/kernel/submit/engine.hpp"

namespace kiln::simulator::kernel {

struct PendingJob {
  RingName ring;
  ContextPtr context;
  std::uint32_t context_id = 0;
  std::uint64_t number = 0;      // in its context and ring: what the program knows it by
  std::uint64_t submission = 0;  // on the device
  Fences dependencies;
  JobFences fences;

  std::vector<IndirectBuffer> buffers;
  std::shared_ptr<const AddressSpace> space;
  BufferList list;
  std::vector<std::uint64_t> listed;  // their ids
  bool invalidate_first = false;
  BufferPtr user_fence;  // null: none; else `number` is written there at the end
  std::uint64_t user_fence_offset = 0;

  std::uint32_t vram_losses = 0;  // of the device at submission: another loss cancels the job
  PlannedFault fault = PlannedFault::invalid;
};

}  // namespace kiln::simulator::kernel
