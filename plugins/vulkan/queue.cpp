#include "queue.hpp"

#include <fcntl.h>
#include <linux/sync_file.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

namespace kiln::vulkan {

Status SharedFences::supported() const {
  if (gpu_.facts().shares_fences) return {};
  return unsupported(gpu_.id() + ": " + gpu_.facts().info.name + " does not support sync_file descriptors");
}

Result<OwnedSemaphore> SharedFences::take() {
  if (!spare_.empty()) {
    OwnedSemaphore semaphore = std::move(spare_.back());
    spare_.pop_back();
    return semaphore;
  }
  auto shared = structure<VkExportSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO);
  shared.handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT;
  const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &shared, 0};
  OwnedSemaphore semaphore(gpu_);
  const VkResult made = gpu_.vk().CreateSemaphore(gpu_.handle(), &info, nullptr, semaphore.out());
  if (Status status = gpu_.check(made, "a semaphore"); !status.ok()) return status;
  return semaphore;
}

Result<VkSemaphore> SharedFences::signalled_by(std::uint64_t value) {
  auto semaphore = take();
  if (!semaphore) return semaphore.error();
  const VkSemaphore handle = semaphore->get();
  used_.push_back({value, std::move(*semaphore)});
  return handle;
}

Result<UniqueFd> SharedFences::export_file(VkSemaphore semaphore) {
  auto info = structure<VkSemaphoreGetFdInfoKHR>(VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR);
  info.semaphore = semaphore;
  info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT;
  int fd = -1;
  const VkResult made = gpu_.vk().GetSemaphoreFdKHR(gpu_.handle(), &info, &fd);
  if (Status status = gpu_.check(made, "exporting a fence"); !status.ok()) {
    for (Used& used : used_) used.stays_signalled = used.stays_signalled || used.semaphore.get() == semaphore;
    return status;
  }
  return UniqueFd(fd);
}

Status SharedFences::import_file(int sync_file) {
  const std::string what = gpu_.id() + ": descriptor " + std::to_string(sync_file);
  sync_file_info known{};
  if (ioctl(sync_file, SYNC_IOC_FILE_INFO, &known) != 0) return invalid_argument(what + " is not a sync_file");
  auto semaphore = take();
  if (!semaphore) return semaphore.error();
  UniqueFd own(fcntl(sync_file, F_DUPFD_CLOEXEC, 0));
  if (!own) return unavailable(what + " cannot be duplicated");
  auto info = structure<VkImportSemaphoreFdInfoKHR>(VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR);
  info.semaphore = semaphore->get();
  info.flags = VK_SEMAPHORE_IMPORT_TEMPORARY_BIT;  // its own state is back after the wait
  info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT;
  info.fd = own.get();
  if (const VkResult made = gpu_.vk().ImportSemaphoreFdKHR(gpu_.handle(), &info); made != VK_SUCCESS) {
    return gpu_.check(made, "importing descriptor " + std::to_string(sync_file) + " as a fence");
  }
  (void)own.release();  // the driver's now
  awaited_.push_back(semaphore->get());
  imported_.push_back(std::move(*semaphore));
  return {};
}

void SharedFences::awaited_by(std::uint64_t value) {
  awaited_.clear();
  for (OwnedSemaphore& semaphore : imported_) used_.push_back({value, std::move(semaphore)});
  imported_.clear();
}

void SharedFences::passed(std::uint64_t value) {
  std::erase_if(used_, [&](Used& used) {
    if (used.value > value) return false;
    if (!used.stays_signalled) spare_.push_back(std::move(used.semaphore));
    return true;
  });
}

namespace {

constexpr std::uint64_t zero_bytes = 64 << 10;

}  // namespace

bool is_left_out(const BoundPass& pass) {
  if (!pass.nothing) return false;
  if (!pass.program->compiles_at_dispatch()) return true;
  return std::ranges::any_of(pass.program->reflection().slots, [](const DescriptorSlot& slot) {
    return slot.type == VK_DESCRIPTOR_TYPE_STORAGE_IMAGE || slot.type == VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER ||
           slot.type == VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE || slot.type == VK_DESCRIPTOR_TYPE_SAMPLER;
  });
}

Result<std::unique_ptr<Queue>> Queue::create(std::shared_ptr<Gpu> gpu) {
  std::unique_ptr<Queue> queue(new Queue(std::move(gpu)));
  if (Status status = queue->prepare(); !status.ok()) return status;
  return queue;
}

Status Queue::prepare() {
  auto type = structure<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
  timeline_ = OwnedSemaphore(*gpu_);
  const DeviceFunctions& vk = gpu_->vk();
  Status status = gpu_->check(vk.CreateSemaphore(gpu_->handle(), &info, nullptr, timeline_.out()), "a timeline");
  if (!status.ok()) return status;
  auto zeros = make_buffer(*gpu_, zero_bytes, Placement::host);
  if (!zeros) return zeros.error();
  zeros_ = std::move(*zeros);
  std::memset(zeros_.mapped, 0, zero_bytes);
  auto view = structure<VkBufferViewCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO);
  view.buffer = zeros_.buffer.get();
  view.format = VK_FORMAT_R32G32B32A32_SFLOAT;
  view.range = VK_WHOLE_SIZE;
  zero_texels_ = OwnedBufferView(*gpu_);
  return gpu_->check(vk.CreateBufferView(gpu_->handle(), &view, nullptr, zero_texels_.out()), "a buffer view");
}

// A driver does for such a dispatch what it does at a program's first one.
void Queue::bind_nothing(Submission& work, BoundPass& pass) const {
  const Reflection& reflection = pass.program->reflection();
  const VkDeviceSize most = std::min<VkDeviceSize>(zero_bytes, gpu_->facts().properties.limits.maxUniformBufferRange);
  pass.first = work.descriptors.size();
  for (std::uint32_t slot = 0; slot < reflection.slots.size(); ++slot) {
    for (std::uint32_t element = 0; element < reflection.slots[slot].count; ++element) {
      BoundDescriptor& bound = work.descriptors.emplace_back();
      bound.slot = slot;
      bound.element = element;
      bound.buffer = zeros_.buffer.get();
      bound.bytes = reflection.slots[slot].type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER ? most : zero_bytes;
      bound.view = zero_texels_.get();
    }
  }
  pass.end = work.descriptors.size();
  if (reflection.push_constant_bytes != 0) {
    pass.push_constants = 0;
    pass.values.push_back({std::vector<std::byte>(reflection.push_constant_bytes)});
  }
}

Queue::~Queue() { gpu_->vk().DeviceWaitIdle(gpu_->handle()); }

Status Queue::make_commands(OwnedCommandPool& pool, VkCommandBuffer& commands) {
  const DeviceFunctions& vk = gpu_->vk();
  auto info = structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  info.queueFamilyIndex = gpu_->facts().queue_family;
  pool = OwnedCommandPool(*gpu_);
  Status status = gpu_->check(vk.CreateCommandPool(gpu_->handle(), &info, nullptr, pool.out()), "a command pool");
  if (!status.ok()) return status;
  const VkCommandBufferAllocateInfo one{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool.get(),
                                        VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  return gpu_->check(vk.AllocateCommandBuffers(gpu_->handle(), &one, &commands), "a command buffer");
}

Status Queue::make_slot(Slot& slot) {
  const DeviceFunctions& vk = gpu_->vk();
  const Status status = make_commands(slot.pool, slot.commands);
  if (!status.ok() || gpu_->facts().timestamp_bits == 0) return status;
  auto stamps = structure<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
  stamps.queryType = VK_QUERY_TYPE_TIMESTAMP;
  stamps.queryCount = stamps_of_slot;
  slot.stamps = OwnedQueryPool(*gpu_);
  return gpu_->check(vk.CreateQueryPool(gpu_->handle(), &stamps, nullptr, slot.stamps.out()), "a query pool");
}

Result<Queue::Slot*> Queue::free_slot() {
  if (!spare_.empty()) {
    Slot* const spare = spare_.back();
    spare_.pop_back();
    return spare;
  }
  spare_.reserve(slots_.size() + 1);
  Slot slot;
  if (Status status = make_slot(slot); !status.ok()) return status;
  return &slots_.emplace_back(std::move(slot));
}

// Makes room for one more slot whose commands are kept: those unused for longest are kept no more. false: all such
// slots are in flight.
bool Queue::room_to_keep() {
  if (kept_.size() < most_kept) return true;
  const auto oldest = std::ranges::min_element(kept_, {}, [](const KeptSlot& kept) {
    return kept.slot->value == 0 ? kept.slot->last : std::numeric_limits<std::uint64_t>::max();
  });
  if (oldest->slot->value != 0) return false;
  oldest->slot->kept = false;
  spare_.push_back(oldest->slot);
  kept_.erase(oldest);
  return true;
}

// Whether a key of this hash was recorded lately; else notes it.
bool Queue::came_before(std::uint64_t hash) {
  if (std::ranges::find(recorded_, hash) != recorded_.end()) return true;
  recorded_[recorded_next_++ % recorded_.size()] = hash;
  return false;
}

Result<std::optional<std::uint64_t>> Queue::submit_again(const DispatchKey& key) {
  const std::lock_guard lock(mutex_);
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  if (Status unread = retire(); !unread.ok()) return unread;
  const auto equal = std::ranges::find_if(kept_, [&key](const KeptSlot& kept) {
    return kept.hash == key.hash && kept.slot->value == 0 && kept.slot->key == key;
  });
  if (equal == kept_.end()) return std::optional<std::uint64_t>();
  auto value = hand_over(*equal->slot);
  if (!value) return value.error();
  return std::optional(*value);
}

Result<std::uint64_t> Queue::submit(Submission work) {
  const std::lock_guard lock(mutex_);
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  if (!work.again) {
    for (BoundPass& pass : work.passes) {
      if (pass.nothing && !is_left_out(pass)) bind_nothing(work, pass);
    }
    std::erase_if(work.key.steps, [&](const LaunchStep& step) { return is_left_out(work.passes[step.pass()]); });
    if (work.key.steps.empty()) {
      results_.emplace(++last_, FenceResult{0, now_ns()});
      return last_;
    }
  }
  const bool keep = work.again && came_before(work.key.hash) && room_to_keep();
  auto free = free_slot();
  if (!free) return free.error();
  Slot& slot = **free;
  slot.kept = keep;
  const Status recorded = record(slot, work);
  auto value = recorded.ok() ? hand_over(slot) : Result<std::uint64_t>(recorded);
  if (!value) {
    slot.kept = false;
    slot.key = {};
    spare_.push_back(&slot);
    return value;
  }
  if (slot.kept) kept_.push_back({work.key.hash, &slot});
  slot.key = std::move(work.key);
  return value;
}

Result<std::uint64_t> Queue::hand_over(Slot& slot) {
  // The copies of what is not submitted are made with the next submission.
  const auto copies_remain = [&slot] {
    for (VulkanBuffer* buffer : slot.copied) buffer->mark_newer();
  };
  auto copied = record_copies(slot);
  if (!copied) {
    copies_remain();
    return copied.error();
  }
  const VkCommandBuffer commands[] = {slot.copies, slot.commands};
  slot.begun_ns = now_ns();
  const std::uint64_t value = last_ + 1;
  results_.emplace(value, std::nullopt);
  in_flight_.push_back(&slot);
  const VkResult made = submit_next(std::span(commands).last(*copied ? 2 : 1), VK_NULL_HANDLE);
  if (Status status = gpu_->check(made, "a submission"); !status.ok()) {
    results_.erase(value);
    in_flight_.pop_back();
    copies_remain();
    return status;
  }
  slot.value = slot.last = value;
  for (VulkanBuffer* buffer : slot.written) buffer->mark_written(value);
  return value;
}

// Takes the next value of the timeline. `signalled`: beside it; may be null.
VkResult Queue::submit_next(std::span<const VkCommandBuffer> commands, VkSemaphore signalled) {
  const std::uint64_t value = last_ + 1;
  const std::uint64_t signal_values[] = {value, 0};  // the second is a binary semaphore's, which has none
  const VkSemaphore signals[] = {timeline_.get(), signalled};
  const std::span<const VkSemaphore> waits = fences_.awaited();
  const std::vector<std::uint64_t> wait_values(waits.size(), 0);
  const std::vector<VkPipelineStageFlags> stages(waits.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  auto values = structure<VkTimelineSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  values.waitSemaphoreValueCount = static_cast<std::uint32_t>(waits.size());
  values.pWaitSemaphoreValues = wait_values.data();
  values.signalSemaphoreValueCount = signalled == VK_NULL_HANDLE ? 1 : 2;
  values.pSignalSemaphoreValues = signal_values;
  auto submit = structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submit.pNext = &values;
  submit.waitSemaphoreCount = values.waitSemaphoreValueCount;
  submit.pWaitSemaphores = waits.data();
  submit.pWaitDstStageMask = stages.data();
  submit.commandBufferCount = static_cast<std::uint32_t>(commands.size());
  submit.pCommandBuffers = commands.data();
  submit.signalSemaphoreCount = values.signalSemaphoreValueCount;
  submit.pSignalSemaphores = signals;
  VkResult made = VK_SUCCESS;
  {
    const std::lock_guard queue_lock(gpu_->queue_mutex());
    made = gpu_->vk().QueueSubmit(gpu_->queue(), 1, &submit, VK_NULL_HANDLE);
  }
  if (made != VK_SUCCESS) return made;
  last_ = value;
  fences_.awaited_by(value);
  return made;
}

Result<UniqueFd> Queue::export_fence(std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  if (Status status = fences_.supported(); !status.ok()) return status;
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  if (value == 0 || value > last_) {
    return not_found(gpu_->id() + ": submission " + std::to_string(value) + " does not exist, the last submission is " +
                     std::to_string(last_));
  }
  // A submission without commands: its semaphore is signalled after all that was submitted before.
  auto semaphore = fences_.signalled_by(last_ + 1);
  if (!semaphore) return semaphore.error();
  const VkResult made = submit_next({}, *semaphore);
  if (Status status = gpu_->check(made, "a submission for a fence"); !status.ok()) return status;
  return fences_.export_file(*semaphore);
}

Status Queue::wait_for_fence(int sync_file) {
  const std::lock_guard lock(mutex_);
  if (Status status = fences_.supported(); !status.ok()) return status;
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  return fences_.import_file(sync_file);
}

Status Queue::retire() {
  if (in_flight_.empty()) return {};
  std::uint64_t reached = 0;
  const VkResult read = gpu_->vk().GetSemaphoreCounterValue(gpu_->handle(), timeline_.get(), &reached);
  Status status = gpu_->check(read, "reading the timeline");
  if (!status.ok() && status.code != StatusCode::device_lost) return status;
  if (status.ok()) status = gpu_->alive();
  if (status.ok()) fences_.passed(reached);
  for (; !in_flight_.empty(); in_flight_.pop_front()) {
    Slot& slot = *in_flight_.front();
    if (status.ok() && slot.value > reached) break;
    if (status.ok()) {
      results_[slot.value] = time_of(slot);
      status = gpu_->alive();
      if (Status grids = check_grids(slot); status.ok() && !grids.ok())
        results_[slot.value] = Result<FenceResult>(std::move(grids));
    } else {
      results_[slot.value] = Result<FenceResult>(status);
    }
    slot.value = 0;
    if (!slot.kept) spare_.push_back(&slot);
  }
  return {};
}

Status Queue::check_grids(const Slot& slot) const {
  for (std::size_t i = 0; i < slot.grid_steps.size(); ++i) {
    std::array<std::uint32_t, 3> counts{};
    std::memcpy(counts.data(), slot.grids.mapped + i * grid_bytes, grid_bytes);
    Status status = check_counts(slot.grid_steps[i], counts, gpu_->facts().info.max_grid);
    if (!status.ok()) return status;
  }
  return {};
}

// After a hang or a reset, a driver may signal a submission that the device never ran, and report the loss only later.
// Such a submission has no time stamps, or those of an earlier one.
Result<FenceResult> Queue::time_of(Slot& slot) {
  if (slot.stamps.get() == VK_NULL_HANDLE) return FenceResult{0, slot.begun_ns};
  std::array<std::uint64_t, stamps_of_slot> stamps{};
  const VkResult read =
      gpu_->vk().GetQueryPoolResults(gpu_->handle(), slot.stamps.get(), 0, stamps_of_slot, sizeof stamps, stamps.data(),
                                     sizeof stamps[0], VK_QUERY_RESULT_64_BIT);
  if (read != VK_SUCCESS || stamps == slot.read_stamps) {
    return gpu_->check(VK_ERROR_DEVICE_LOST,
                       "submission " + std::to_string(slot.value) + " was signalled, but did not run");
  }
  slot.read_stamps = stamps;
  const std::uint64_t begun = gpu_->host_time(stamps[0]);
  const std::uint64_t took = stamps[1] > stamps[0] ? gpu_->nanoseconds(stamps[1] - stamps[0]) : 0;
  return FenceResult{took, begun != 0 ? begun : slot.begun_ns};
}

Status Queue::reach(std::uint64_t value) const {
  if (value == 0) return {};
  const VkSemaphore semaphore = timeline_.get();
  const VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &semaphore, &value};
  const VkResult waited = gpu_->vk().WaitSemaphores(gpu_->handle(), &info, std::numeric_limits<std::uint64_t>::max());
  return gpu_->check(waited, "waiting for a submission");
}

Result<FenceResult> Queue::wait(std::uint64_t value, Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto at = results_.find(value);
    if (at == results_.end()) {
      const bool never = value == 0 || value > last_;
      return not_found("submission " + std::to_string(value) +
                       (never ? " does not exist, the last submission is " + std::to_string(last_)
                              : std::string(": the result was already taken")));
    }
    if (at->second) {
      Result<FenceResult> result = *std::move(at->second);
      results_.erase(at);
      return result;
    }
    lock.unlock();
    const bool endless = deadline.at == Clock::time_point::max();
    const std::uint64_t patience =
        endless ? std::numeric_limits<std::uint64_t>::max() : static_cast<std::uint64_t>(deadline.left().count());
    const VkSemaphore semaphore = timeline_.get();
    const VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &semaphore, &value};
    const VkResult waited = gpu_->vk().WaitSemaphores(gpu_->handle(), &info, patience);
    lock.lock();
    if (waited == VK_TIMEOUT && deadline.passed()) {
      return timed_out("submission " + std::to_string(value) +
                       ": not finished by its deadline; it may still be running");
    }
    Status status = waited == VK_TIMEOUT ? ok_status() : gpu_->check(waited, "waiting for a submission");
    if (!status.ok() && status.code != StatusCode::device_lost) return status;
    if (Status unread = retire(); !unread.ok()) return unread;
  }
}

}  // namespace kiln::vulkan
