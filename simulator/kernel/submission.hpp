// Submission: reads what a program hands to the submission ioctl, chunk by chunk, checks all of it, and only then has
// an effect: a job on a ring and its fence in the sync objects that it signals.
//
// Thread-safety: REQUIRES the device's mutex; waiting for a point that nobody submitted yet lets go of it.
// Ownership: borrows the file's tables for the call.
#pragma once

#include <amdgpu_drm.h>

#include <mutex>
#include <optional>
#include <span>

#include "simulator/kernel/buffer_table.hpp"
#include "simulator/kernel/context.hpp"
#include "simulator/kernel/rings.hpp"
#include "simulator/kernel/sync_objects.hpp"

namespace kiln::simulator::kernel {

struct FileTables {
  Device& device;
  const void* owner;  // tells files apart
  PageTable& pages;
  BufferTable& buffers;
  BufferLists& lists;
  ContextTable& contexts;
  SyncObjectTable& sync_objects;
};

class Submission {
 public:
  Submission(FileTables tables, std::unique_lock<std::mutex>& lock) : tables_(tables), lock_(lock) {}

  // Replaces the input by the job's number. `finished` is then its fence.
  Answer submit(drm_amdgpu_cs& cs, FencePtr& finished);

 private:
  struct Signal {
    SyncObjectPtr object;
    std::uint64_t point = 0;  // 0: the object's fence is replaced
  };

  Answer planted(std::uint64_t submission);
  Answer find_context(const drm_amdgpu_cs_in& in);
  Answer read_chunks(const drm_amdgpu_cs_in& in);
  Answer read_chunk(const drm_amdgpu_cs_chunk& chunk);
  Answer read_indirect_buffer(const drm_amdgpu_cs_chunk& chunk);
  Answer read_user_fence(const drm_amdgpu_cs_chunk& chunk);
  Answer read_dependencies(const drm_amdgpu_cs_chunk& chunk);
  Answer read_waits(const drm_amdgpu_cs_chunk& chunk);
  Answer read_signals(const drm_amdgpu_cs_chunk& chunk);
  Answer read_timeline_waits(const drm_amdgpu_cs_chunk& chunk);
  Answer read_timeline_signals(const drm_amdgpu_cs_chunk& chunk);
  Answer check_ring();
  std::uint64_t accept();

  FileTables tables_;
  std::unique_lock<std::mutex>& lock_;
  PendingJob job_;
  std::optional<BufferList> list_;  // from the handle or the chunk, not from both
  std::vector<Signal> signals_;
};

}  // namespace kiln::simulator::kernel
