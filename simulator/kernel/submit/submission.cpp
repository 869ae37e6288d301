#include "simulator/kernel/submit/submission.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "simulator/kernel/submit/rings.hpp"

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

}  // namespace kiln::simulator::kernel
