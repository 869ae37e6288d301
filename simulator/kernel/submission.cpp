#include "simulator/kernel/submission.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "simulator/kernel/rings.hpp"

namespace kiln::simulator::kernel {
namespace {

constexpr std::uint32_t most_chunks = 4096;

}  // namespace

Answer Submission::planted(std::uint64_t submission) {
  const PlannedFault fault = tables_.device.settings.faults.at_submission(submission);
  const std::string which = "planted: submission " + std::to_string(submission);
  switch (fault) {
    case PlannedFault::enomem:
      return refuse(ENOMEM, which);
    case PlannedFault::einval:
      return refuse(EINVAL, which);
    case PlannedFault::unplugged:
      tables_.device.rings().unplug();
      return refuse(ENODEV, which + ": the device is gone");
    case PlannedFault::cancelled:
      tables_.device.rings().lose_context(*job_.context);
      return {};
    default:
      job_.fault = fault;
      return {};
  }
}

Answer Submission::find_context(const drm_amdgpu_cs_in& in) {
  job_.context = tables_.contexts.find(in.ctx_id);
  job_.context_id = in.ctx_id;
  if (job_.context == nullptr)
    return refuse(EINVAL, "submission to context " + std::to_string(in.ctx_id) + ", which is none");
  if (Answer refusal = planted(job_.submission)) return refusal;
  const std::string which = "submission to context " + std::to_string(in.ctx_id);
  if (job_.context->guilty) return refuse(ECANCELED, which + ", which made the device hang");
  if (job_.context->lost) return refuse(ECANCELED, which + ", which was lost in a reset");
  if (job_.context->vram_losses_at_creation != tables_.device.counters.vram_losses) {
    return refuse(ECANCELED, which + ", which is older than the loss of video memory");
  }
  return {};
}

Answer Submission::check_ring() {
  if (job_.buffers.empty()) return refuse(EINVAL, "submission without an indirect buffer");
  const auto& blocks = tables_.device.target.blocks;
  const auto block =
      std::find_if(blocks.begin(), blocks.end(), [this](const auto& one) { return one.type == job_.ring.ip; });
  if (job_.buffers.size() > block->buffers) {
    return refuse(EINVAL, "submission of " + std::to_string(job_.buffers.size()) +
                              " indirect buffers: the ring takes " + std::to_string(block->buffers));
  }
  if (!tables_.device.rings().start(job_.ring)) return refuse(ENOMEM, "submission: no thread for its ring");
  return {};
}

Answer Submission::submit(drm_amdgpu_cs& cs, FencePtr& finished) {
  const drm_amdgpu_cs_in in = cs.in;
  job_.submission = ++tables_.device.counters.submissions;
  if (Answer refusal = find_context(in)) return refusal;
  if (in.flags != 0) return refuse(EINVAL, "submission with flags " + hex(in.flags));
  if (in.num_chunks == 0 || in.num_chunks > most_chunks) {
    return refuse(EINVAL, "submission of " + std::to_string(in.num_chunks) + " chunks");
  }
  if (in.chunks == 0) return refuse(EFAULT, "submission of chunks at address 0");
  if (in.bo_list_handle != 0) {
    const BufferList* list = tables_.lists.find(in.bo_list_handle);
    if (list == nullptr)
      return refuse(ENOENT, "submission with buffer list " + std::to_string(in.bo_list_handle) + ", which is none");
    list_ = *list;
  }
  if (Answer refusal = read_chunks(in)) return refusal;
  if (Answer refusal = check_ring()) return refusal;
  finished = std::make_shared<Fence>();
  job_.fences = {std::make_shared<Fence>(), finished};
  cs = {};
  cs.out.handle = accept();
  return {};
}

std::uint64_t Submission::accept() {
  Device& device = tables_.device;
  job_.space = tables_.pages.snapshot();
  if (list_) job_.list = *std::move(list_);
  for (const BufferPtr& buffer : job_.list) {
    const bool waits = (buffer->traits.flags & AMDGPU_GEM_CREATE_EXPLICIT_SYNC) == 0;
    if (waits) buffer->wait_for_others(tables_.owner, job_.dependencies);
    buffer->add_use(tables_.owner, job_.fences.finished);
    job_.listed.push_back(buffer->traits.id);
  }
  job_.vram_losses = device.counters.vram_losses;
  const FencePtr finished = job_.fences.finished;
  const std::uint64_t number = job_.context->sequences[job_.ring].add(job_.fences);
  job_.number = number;
  drop_signaled(job_.dependencies);
  device.rings().push(std::move(job_));
  for (const Signal& signal : signals_) {
    if (signal.point == 0) {
      signal.object->replace(finished);
    } else {
      signal.object->add_point(signal.point, {finished});
    }
  }
  device.fences.changed.notify_all();
  return number;
}

// The chunks of a submission.

namespace {

constexpr std::uint32_t known_flags = AMDGPU_IB_FLAG_PREAMBLE | AMDGPU_IB_FLAG_PREEMPT |
                                      AMDGPU_IB_FLAG_TC_WB_NOT_INVALIDATE | AMDGPU_IB_FLAG_RESET_GDS_MAX_WAVE_ID |
                                      AMDGPU_IB_FLAG_EMIT_MEM_SYNC;
constexpr std::uint32_t most_dwords = 0xfffff;

const std::byte* at(std::uint64_t address) {
  return reinterpret_cast<const std::byte*>(address);  // NOLINT: an address that the program gives as a number
}

// The entries of a chunk that is an array of T.
template <class T>
Answer read_array(const drm_amdgpu_cs_chunk& chunk, std::vector<T>& entries) {
  const std::uint64_t bytes = std::uint64_t{chunk.length_dw} * 4;
  const std::string which =
      "chunk " + std::to_string(chunk.chunk_id) + " of " + std::to_string(chunk.length_dw) + " dwords";
  if (bytes % sizeof(T) != 0)
    return refuse(EINVAL, which + ": its entries have " + std::to_string(sizeof(T)) + " bytes");
  if (bytes > 0 && chunk.chunk_data == 0) return refuse(EFAULT, which + " at address 0");
  entries.resize(bytes / sizeof(T));
  if (bytes > 0) std::memcpy(entries.data(), at(chunk.chunk_data), bytes);
  return {};
}

template <class T>
Answer read_one(const drm_amdgpu_cs_chunk& chunk, T& value) {
  std::vector<T> entries;
  if (Answer refusal = read_array(chunk, entries)) return refusal;
  if (entries.size() != 1)
    return refuse(EINVAL, "chunk " + std::to_string(chunk.chunk_id) + " with " + std::to_string(entries.size()) +
                              " entries: one is known");
  value = entries.front();
  return {};
}

}  // namespace

Answer Submission::read_chunks(const drm_amdgpu_cs_in& in) {
  for (std::uint32_t i = 0; i < in.num_chunks; ++i) {
    std::uint64_t address = 0;
    std::memcpy(&address, at(in.chunks) + i * sizeof address, sizeof address);
    if (address == 0) return refuse(EFAULT, "chunk at address 0");
    drm_amdgpu_cs_chunk chunk{};
    std::memcpy(&chunk, at(address), sizeof chunk);
    if (Answer refusal = read_chunk(chunk)) return refusal;
  }
  return {};
}

Answer Submission::read_chunk(const drm_amdgpu_cs_chunk& chunk) {
  switch (chunk.chunk_id) {
    case AMDGPU_CHUNK_ID_IB:
      return read_indirect_buffer(chunk);
    case AMDGPU_CHUNK_ID_FENCE:
      return read_user_fence(chunk);
    case AMDGPU_CHUNK_ID_DEPENDENCIES:
    case AMDGPU_CHUNK_ID_SCHEDULED_DEPENDENCIES:
      return read_dependencies(chunk);
    case AMDGPU_CHUNK_ID_SYNCOBJ_IN:
      return read_waits(chunk);
    case AMDGPU_CHUNK_ID_SYNCOBJ_OUT:
      return read_signals(chunk);
    case AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT:
      return read_timeline_waits(chunk);
    case AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL:
      return read_timeline_signals(chunk);
    case AMDGPU_CHUNK_ID_BO_HANDLES: {
      drm_amdgpu_bo_list_in in{};
      if (Answer refusal = read_one(chunk, in)) return refusal;
      if (list_) return refuse(EINVAL, "submission with two buffer lists");
      return read_buffer_list(in, tables_.buffers, list_.emplace());
    }
    default:
      return refuse(EINVAL, "chunk of kind " + std::to_string(chunk.chunk_id) + ", which is not known");
  }
}

Answer Submission::read_indirect_buffer(const drm_amdgpu_cs_chunk& chunk) {
  drm_amdgpu_cs_chunk_ib ib{};
  if (Answer refusal = read_one(chunk, ib)) return refusal;
  const std::string which = "indirect buffer at " + hex(ib.va_start) + " of " + std::to_string(ib.ib_bytes) + " bytes";
  if (Answer refusal = tables_.contexts.check_ring(ib.ip_type, ib.ip_instance, ib.ring)) return refusal;
  if ((ib.flags & ~known_flags) != 0)
    return refuse(EINVAL, which + " with flags " + hex(ib.flags) + ": not simulated: " + hex(ib.flags & ~known_flags));
  const RingName ring{ib.ip_type, ib.ring};
  if (!job_.buffers.empty() && job_.ring != ring) {
    return refuse(EINVAL, which + " for another ring than the one before it: gang submissions are not simulated");
  }
  const auto& blocks = tables_.device.target.blocks;
  const auto block =
      std::find_if(blocks.begin(), blocks.end(), [&](const auto& one) { return one.type == ib.ip_type; });
  if (ib.va_start % block->start_alignment != 0 || ib.ib_bytes % 4 != 0 || ib.ib_bytes == 0 ||
      ib.ib_bytes / 4 > most_dwords) {
    return refuse(EINVAL, which + ": it must start at a multiple of " + std::to_string(block->start_alignment) +
                              " and have 1 to " + std::to_string(most_dwords) + " dwords");
  }
  job_.ring = ring;
  job_.buffers.push_back({ib.va_start, ib.ib_bytes});
  job_.invalidate_first |= (ib.flags & AMDGPU_IB_FLAG_EMIT_MEM_SYNC) != 0;
  return {};
}

Answer Submission::read_user_fence(const drm_amdgpu_cs_chunk& chunk) {
  drm_amdgpu_cs_chunk_fence fence{};
  if (Answer refusal = read_one(chunk, fence)) return refusal;
  const BufferPtr buffer = tables_.buffers.find(fence.handle);
  if (buffer == nullptr)
    return refuse(EINVAL, "fence in buffer handle " + std::to_string(fence.handle) + ", which is none");
  if (buffer->traits.heap == Heap::program || buffer->traits.bytes != 4096 || fence.offset > 4096 - 8 ||
      fence.offset % 8 != 0) {
    return refuse(EINVAL, "fence at " + std::to_string(fence.offset) + " of a buffer of " +
                              std::to_string(buffer->traits.bytes) +
                              " bytes: one page of the device's own memory is taken");
  }
  job_.user_fence = buffer;
  job_.user_fence_offset = fence.offset;
  return {};
}

Answer Submission::read_dependencies(const drm_amdgpu_cs_chunk& chunk) {
  std::vector<drm_amdgpu_cs_chunk_dep> entries;
  if (Answer refusal = read_array(chunk, entries)) return refusal;
  for (const auto& entry : entries) {
    JobFences fences;
    if (Answer refusal = tables_.contexts.find_job(
            {entry.ctx_id, entry.ip_type, entry.ip_instance, entry.ring, entry.handle}, fences)) {
      return refusal;
    }
    const bool scheduled = chunk.chunk_id == AMDGPU_CHUNK_ID_SCHEDULED_DEPENDENCIES;
    FencePtr& fence = scheduled ? fences.scheduled : fences.finished;
    if (fence != nullptr) job_.dependencies.push_back(std::move(fence));
  }
  return {};
}

Answer Submission::read_waits(const drm_amdgpu_cs_chunk& chunk) {
  std::vector<std::uint32_t> handles;
  if (Answer refusal = read_array(chunk, handles)) return refusal;
  for (const std::uint32_t handle : handles) {
    if (Answer refusal = tables_.sync_objects.find_fences(handle, 0, 0, lock_, job_.dependencies)) return refusal;
  }
  return {};
}

Answer Submission::read_timeline_waits(const drm_amdgpu_cs_chunk& chunk) {
  std::vector<drm_amdgpu_cs_chunk_syncobj> entries;
  if (Answer refusal = read_array(chunk, entries)) return refusal;
  for (const auto& entry : entries) {
    if (Answer refusal =
            tables_.sync_objects.find_fences(entry.handle, entry.point, entry.flags, lock_, job_.dependencies)) {
      return refusal;
    }
  }
  return {};
}

Answer Submission::read_signals(const drm_amdgpu_cs_chunk& chunk) {
  std::vector<std::uint32_t> handles;
  if (Answer refusal = read_array(chunk, handles)) return refusal;
  for (const std::uint32_t handle : handles) {
    SyncObjectPtr object = tables_.sync_objects.find(handle);
    if (object == nullptr)
      return refuse(EINVAL, "submission signals sync object " + std::to_string(handle) + ", which is none");
    signals_.push_back({std::move(object), 0});
  }
  return {};
}

Answer Submission::read_timeline_signals(const drm_amdgpu_cs_chunk& chunk) {
  std::vector<drm_amdgpu_cs_chunk_syncobj> entries;
  if (Answer refusal = read_array(chunk, entries)) return refusal;
  for (const auto& entry : entries) {
    SyncObjectPtr object = tables_.sync_objects.find(entry.handle);
    if (object == nullptr)
      return refuse(EINVAL, "submission signals sync object " + std::to_string(entry.handle) + ", which is none");
    // RADV gives the flags of a wait here too; the kernel takes no notice of them.
    if ((entry.flags & ~std::uint32_t{DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT}) != 0)
      return refuse(EINVAL, "submission signals a timeline with flags " + hex(entry.flags));
    signals_.push_back({std::move(object), entry.point});
  }
  return {};
}

}  // namespace kiln::simulator::kernel
