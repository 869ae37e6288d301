#include "amdgpu_pm4/winsys/drm_winsys.hpp"

#include <amdgpu.h>
#include <dlfcn.h>
#include <libdrm/amdgpu_drm.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

namespace kiln::amdgpu_pm4 {
namespace {

// Newer than libdrm's header: a reset is going on.
constexpr std::uint64_t query2_reset_in_progress = 1u << 5;

// The interface's own bound for the compute rings, less some for what the kernel driver adds.
constexpr std::size_t most_commands = 125;
constexpr std::size_t most_chunks = most_commands + 3;  // and the buffer list, waits, signals

std::int32_t priority_of(Priority priority) {
  switch (priority) {
    case Priority::low:
      return AMDGPU_CTX_PRIORITY_LOW;
    case Priority::high:
      return AMDGPU_CTX_PRIORITY_HIGH;
    default:
      return AMDGPU_CTX_PRIORITY_NORMAL;
  }
}

template <class T>
drm_amdgpu_cs_chunk chunk_of(std::uint32_t id, const T* data, std::size_t count) {
  static_assert(sizeof(T) % 4 == 0);
  return {id, static_cast<std::uint32_t>(sizeof(T) / 4 * count), reinterpret_cast<std::uintptr_t>(data)};
}

std::vector<drm_amdgpu_cs_chunk_syncobj> points_of(std::span<const SyncPoint> points) {
  std::vector<drm_amdgpu_cs_chunk_syncobj> all;
  for (const SyncPoint& each : points) all.push_back({each.timeline, 0, each.point});
  return all;
}

// The last fault of the simulated device; empty where the process has none.
std::string simulated_fault() {
  using LastFault = std::size_t (*)(char*, std::size_t);
  const auto last_fault = reinterpret_cast<LastFault>(::dlsym(RTLD_DEFAULT, "kiln_amdgpu_sim_last_fault"));
  if (last_fault == nullptr) return {};
  std::string text(last_fault(nullptr, 0) + 1, '\0');
  text.resize(std::min(last_fault(text.data(), text.size()), text.size() - 1));
  return text;
}

}  // namespace

Result<std::unique_ptr<Context>> DrmContext::create(std::shared_ptr<const DrmDevice> device, Priority priority) {
  amdgpu_context_handle handle = nullptr;
  const int error = amdgpu_cs_ctx_create2(device->get(), static_cast<std::uint32_t>(priority_of(priority)), &handle);
  if (Status status = device->check(error, "amdgpu_cs_ctx_create2"); !status.ok()) return status;
  return std::unique_ptr<Context>(new DrmContext(std::move(device), handle));
}

DrmContext::~DrmContext() { amdgpu_cs_ctx_free(handle_); }

Result<std::uint64_t> DrmContext::submit(const CommandSubmission& submission) noexcept {
  if (submission.commands.empty() || submission.commands.size() > most_commands) {
    return invalid_argument(device_->path() + ": submission has " + std::to_string(submission.commands.size()) +
                            " command buffers, expected 1 to " + std::to_string(most_commands));
  }
  std::array<drm_amdgpu_cs_chunk, most_chunks> chunks;
  std::array<drm_amdgpu_cs_chunk_ib, most_commands> commands;
  std::size_t count = 0;
  for (const CommandRange& range : submission.commands) {
    drm_amdgpu_cs_chunk_ib& ib = commands[count];
    ib = {};
    ib.va_start = range.address;
    ib.ib_bytes = range.bytes;
    ib.ip_type = AMDGPU_HW_IP_COMPUTE;
    ib.ring = submission.ring;
    chunks[count] = chunk_of(AMDGPU_CHUNK_ID_IB, &ib, 1);
    ++count;
  }
  std::vector<drm_amdgpu_bo_list_entry> entries;
  entries.reserve(submission.buffers.size());
  for (const std::uint32_t handle : submission.buffers) entries.push_back({handle, 0});
  drm_amdgpu_bo_list_in list{};
  list.operation = ~0u;
  list.list_handle = ~0u;
  list.bo_number = static_cast<std::uint32_t>(entries.size());
  list.bo_info_size = sizeof(drm_amdgpu_bo_list_entry);
  list.bo_info_ptr = reinterpret_cast<std::uintptr_t>(entries.data());
  chunks[count++] = chunk_of(AMDGPU_CHUNK_ID_BO_HANDLES, &list, 1);
  const auto waits = points_of(submission.waits);
  const auto signals = points_of(submission.signals);
  if (!waits.empty()) {
    chunks[count++] = chunk_of(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT, waits.data(), waits.size());
  }
  if (!signals.empty()) {
    chunks[count++] = chunk_of(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL, signals.data(), signals.size());
  }
  std::uint64_t number = 0;
  const int error = amdgpu_cs_submit_raw2(device_->get(), handle_, 0, static_cast<int>(count), chunks.data(), &number);
  if (error != 0) return outcome_of(error, device_->path() + ": submitting to the compute ring").how;
  return number;
}

Outcome DrmContext::outcome(std::uint64_t submission, std::uint32_t ring, Deadline deadline) noexcept {
  amdgpu_cs_fence fence{};
  fence.context = handle_;
  fence.ip_type = AMDGPU_HW_IP_COMPUTE;
  fence.ring = ring;
  fence.fence = submission;
  std::uint32_t expired = 0;
  const auto until = static_cast<std::uint64_t>(monotonic_ns(deadline));
  const int error = amdgpu_cs_query_fence_status(&fence, until, AMDGPU_QUERY_FENCE_TIMEOUT_IS_ABSOLUTE, &expired);
  if (error == 0 && expired != 0) return {};
  const std::string what = device_->path() + ": submission " + std::to_string(submission);
  if (error == 0) return {timed_out(what + " still runs")};
  return outcome_of(error, what);
}

Result<ResetState> DrmContext::reset_state() noexcept {
  std::uint64_t flags = 0;
  const int error = amdgpu_cs_query_reset_state2(handle_, &flags);
  if (Status status = device_->check(error, "amdgpu_cs_query_reset_state2"); !status.ok()) return status;
  ResetState state;
  state.reset = (flags & AMDGPU_CTX_QUERY2_FLAGS_RESET) != 0;
  state.vram_lost = (flags & AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST) != 0;
  state.guilty = (flags & AMDGPU_CTX_QUERY2_FLAGS_GUILTY) != 0;
  state.in_progress = (flags & query2_reset_in_progress) != 0;
  if (state.guilty) state.fault = simulated_fault();
  return state;
}

Result<std::unique_ptr<Timeline>> DrmTimeline::create(std::shared_ptr<const DrmDevice> device) {
  std::uint32_t handle = 0;
  const int error = amdgpu_cs_create_syncobj2(device->get(), 0, &handle);
  if (Status status = device->check(error, "amdgpu_cs_create_syncobj2"); !status.ok()) return status;
  return std::unique_ptr<Timeline>(new DrmTimeline(std::move(device), handle));
}

DrmTimeline::~DrmTimeline() { amdgpu_cs_destroy_syncobj(device_->get(), handle_); }

Status DrmTimeline::wait(std::uint64_t point, Deadline deadline) noexcept {
  std::uint32_t handle = handle_;
  const int error =
      amdgpu_cs_syncobj_timeline_wait(device_->get(), &handle, &point, 1, monotonic_ns(deadline), 0, nullptr);
  return device_->check(error, "waiting for point " + std::to_string(point));
}

Result<std::uint64_t> DrmTimeline::passed() noexcept {
  std::uint32_t handle = handle_;
  std::uint64_t point = 0;
  const int error = amdgpu_cs_syncobj_query(device_->get(), &handle, &point, 1);
  if (Status status = device_->check(error, "amdgpu_cs_syncobj_query"); !status.ok()) return status;
  return point;
}

Status DrmTimeline::signal(std::uint64_t point) noexcept {
  const std::uint32_t handle = handle_;
  const int error = amdgpu_cs_syncobj_timeline_signal(device_->get(), &handle, &point, 1);
  return device_->check(error, "signalling point " + std::to_string(point));
}

Result<UniqueFd> DrmTimeline::export_sync_file(std::uint64_t point) noexcept {
  int fd = -1;
  const int error = amdgpu_cs_syncobj_export_sync_file2(device_->get(), handle_, point, 0, &fd);
  if (Status status = device_->check(error, "exporting point " + std::to_string(point) + " as a sync_file");
      !status.ok()) {
    return status;
  }
  return UniqueFd(fd);
}

Status DrmTimeline::import_sync_file(std::uint64_t point, int fd) noexcept {
  const int error = amdgpu_cs_syncobj_import_sync_file2(device_->get(), handle_, point, fd);
  return device_->check(error, "importing descriptor " + std::to_string(fd) + " as point " + std::to_string(point));
}

}  // namespace kiln::amdgpu_pm4
