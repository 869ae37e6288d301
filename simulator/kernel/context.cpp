#include "simulator/kernel/context.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "simulator/kernel/device.hpp"

namespace kiln::simulator::kernel {
namespace {

constexpr std::size_t kept_jobs = 64;  // also when they ended: their error can still be asked for

}  // namespace

std::uint64_t Sequence::add(JobFences fences) {
  while (recent_.size() >= kept_jobs && recent_.begin()->second.finished->signaled) recent_.erase(recent_.begin());
  recent_.emplace(++last_, std::move(fences));
  return last_;
}

JobFences Sequence::find(std::uint64_t number) const {
  const auto at = recent_.find(number);
  return at == recent_.end() ? JobFences{} : at->second;
}

namespace {

constexpr std::uint32_t reset_in_progress = 1 << 5;  // younger than the system header
constexpr std::array<std::int32_t, 6> priorities = {AMDGPU_CTX_PRIORITY_UNSET, AMDGPU_CTX_PRIORITY_VERY_LOW,
                                                    AMDGPU_CTX_PRIORITY_LOW,   AMDGPU_CTX_PRIORITY_NORMAL,
                                                    AMDGPU_CTX_PRIORITY_HIGH,  AMDGPU_CTX_PRIORITY_VERY_HIGH};
constexpr std::uint32_t most_fences = 64 * 1024;

Answer failed_job(int error) {
  return refuse(error, "waited for a job that ended with error " + std::string(std::strerror(error)));
}

}  // namespace

ContextPtr ContextTable::find(std::uint32_t id) const {
  const auto at = contexts_.find(id);
  return at == contexts_.end() ? nullptr : at->second;
}

Answer ContextTable::create(drm_amdgpu_ctx& operation) {
  const std::int32_t priority = operation.in.priority;
  if (std::find(priorities.begin(), priorities.end(), priority) == priorities.end()) {
    return refuse(EINVAL, "context priority " + std::to_string(priority));
  }
  if (priority > AMDGPU_CTX_PRIORITY_NORMAL && ::geteuid() != 0) {
    return refuse(EACCES, "context priority " + std::to_string(priority) + " is for the administrator");
  }
  auto context = std::make_shared<Context>();
  context->priority = priority == AMDGPU_CTX_PRIORITY_UNSET ? AMDGPU_CTX_PRIORITY_NORMAL : priority;
  context->resets_at_creation = context->resets_reported = device_.counters.resets;
  context->vram_losses_at_creation = device_.counters.vram_losses;
  operation = {};
  operation.out.alloc.ctx_id = ++last_id_;
  contexts_[last_id_] = std::move(context);
  return {};
}

void ContextTable::state(Context& context, drm_amdgpu_ctx& operation) const {
  const bool reset = context.resets_reported != device_.counters.resets;
  context.resets_reported = device_.counters.resets;
  operation.out.state.hangs = context.hangs;
  const std::uint32_t blame = context.guilty ? AMDGPU_CTX_GUILTY_RESET : AMDGPU_CTX_INNOCENT_RESET;
  operation.out.state.reset_status = reset ? blame : AMDGPU_CTX_NO_RESET;
}

std::uint32_t ContextTable::state_flags(const Context& context) const {
  std::uint32_t flags = 0;
  if (context.resets_at_creation != device_.counters.resets) flags |= AMDGPU_CTX_QUERY2_FLAGS_RESET;
  if (context.vram_losses_at_creation != device_.counters.vram_losses) flags |= AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST;
  if (context.guilty) flags |= AMDGPU_CTX_QUERY2_FLAGS_GUILTY;
  if (device_.in_reset) flags |= reset_in_progress;
  return flags;
}

Answer ContextTable::operate(drm_amdgpu_ctx& operation) {
  const drm_amdgpu_ctx_in in = operation.in;
  const bool takes_flags = in.op == AMDGPU_CTX_OP_SET_STABLE_PSTATE;
  if (!takes_flags && in.flags != 0) return refuse(EINVAL, "context operation with flags " + hex(in.flags));
  if (in.op == AMDGPU_CTX_OP_ALLOC_CTX) return create(operation);
  if (in.op == 0 || in.op > AMDGPU_CTX_OP_SET_STABLE_PSTATE)
    return refuse(EINVAL, "context operation " + std::to_string(in.op));
  const ContextPtr context = find(in.ctx_id);
  if (context == nullptr) return refuse(EINVAL, "context " + std::to_string(in.ctx_id) + " is none");
  operation = {};
  switch (in.op) {
    case AMDGPU_CTX_OP_FREE_CTX:
      contexts_.erase(in.ctx_id);
      break;
    case AMDGPU_CTX_OP_QUERY_STATE:
      state(*context, operation);
      break;
    case AMDGPU_CTX_OP_QUERY_STATE2:
      operation.out.state.flags = state_flags(*context);
      break;
    case AMDGPU_CTX_OP_GET_STABLE_PSTATE:
      operation.out.pstate.flags = context->pstate;
      break;
    default:
      if (in.flags > AMDGPU_CTX_STABLE_PSTATE_PEAK) return refuse(EINVAL, "stable clock state " + hex(in.flags));
      context->pstate = in.flags;
      break;
  }
  return {};
}

Answer ContextTable::check_ring(std::uint32_t ip, std::uint32_t instance, std::uint32_t ring) const {
  for (const HardwareBlock& block : device_.target.blocks) {
    if (block.type == ip && instance == 0 && ring < block.rings) return {};
  }
  return refuse(EINVAL, "ring " + std::to_string(ring) + " of block " + std::to_string(ip) + ", instance " +
                            std::to_string(instance) + ": the device has none");
}

Answer ContextTable::find_job(const drm_amdgpu_fence& name, JobFences& fences) const {
  if (Answer refusal = check_ring(name.ip_type, name.ip_instance, name.ring)) return refusal;
  const ContextPtr context = find(name.ctx_id);
  if (context == nullptr) return refuse(EINVAL, "context " + std::to_string(name.ctx_id) + " is none");
  fences = {};
  const auto at = context->sequences.find({name.ip_type, name.ring});
  const std::uint64_t last = at == context->sequences.end() ? 0 : at->second.last();
  const std::uint64_t number = name.seq_no == ~std::uint64_t{0} ? last : name.seq_no;
  if (number > last) {
    return refuse(EINVAL, "job " + std::to_string(number) + " of context " + std::to_string(name.ctx_id) +
                              ": the last one submitted there is " + std::to_string(last));
  }
  if (number > 0) fences = at->second.find(number);
  return {};
}

Answer ContextTable::wait(drm_amdgpu_wait_cs& wait, std::unique_lock<std::mutex>& lock) const {
  const drm_amdgpu_wait_cs_in in = wait.in;
  JobFences job;
  if (Answer refusal = find_job({in.ctx_id, in.ip_type, in.ip_instance, in.ring, in.handle}, job)) return refusal;
  const bool done = job.finished == nullptr || wait_until(device_, lock, Deadline::of_driver(in.timeout),
                                                          [&job] { return job.finished->signaled; });
  if (device_.unplugged) return refuse(ENODEV);
  wait = {};
  if (done && job.finished != nullptr && job.finished->error != 0) return failed_job(job.finished->error);
  wait.out.status = done ? 0 : 1;
  return {};
}

Answer ContextTable::wait_for_many(drm_amdgpu_wait_fences& wait, std::unique_lock<std::mutex>& lock) const {
  const drm_amdgpu_wait_fences_in in = wait.in;
  if (in.fence_count == 0 || in.fence_count > most_fences)
    return refuse(EINVAL, "wait for " + std::to_string(in.fence_count) + " jobs");
  if (in.fences == 0) return refuse(EFAULT, "wait for jobs named at address 0");
  std::vector<FencePtr> fences(in.fence_count);
  for (std::uint32_t i = 0; i < in.fence_count; ++i) {
    drm_amdgpu_fence name{};
    // NOLINTNEXTLINE: an address that the program gives as a number
    std::memcpy(&name, reinterpret_cast<const std::byte*>(in.fences) + i * sizeof name, sizeof name);
    JobFences job;
    if (Answer refusal = find_job(name, job)) return refusal;
    fences[i] = job.finished == nullptr ? signaled_fence() : job.finished;
  }
  const auto is_done = [](const FencePtr& fence) { return fence->signaled; };
  const bool done = wait_until(device_, lock, Deadline::of_driver(in.timeout_ns), [&] {
    return in.wait_all != 0 ? std::all_of(fences.begin(), fences.end(), is_done)
                            : std::any_of(fences.begin(), fences.end(), is_done);
  });
  if (device_.unplugged) return refuse(ENODEV);
  wait = {};
  const auto first = std::find_if(fences.begin(), fences.end(), is_done);
  for (const FencePtr& fence : fences) {
    const bool counts = done && (in.wait_all != 0 || fence == *first);
    if (counts && fence->error != 0) return failed_job(fence->error);
  }
  wait.out.status = done ? 1 : 0;
  if (in.wait_all == 0) wait.out.first_signaled = done ? static_cast<std::uint32_t>(first - fences.begin()) : ~0u;
  return {};
}

}  // namespace kiln::simulator::kernel
