#include "objects/queue.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

namespace kiln::vulkan {
namespace {

constexpr std::uint32_t stamps_of_slot = 2;
constexpr std::uint64_t zero_bytes = 64 << 10;

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// Also of texels of 16 bytes.
std::uint64_t values_alignment(const Gpu& gpu) {
  return std::max<std::uint64_t>(gpu.facts().properties.limits.minUniformBufferOffsetAlignment, 16);
}

}  // namespace

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
BoundPass Queue::over_nothing(const VulkanProgram& program) const {
  BoundPass pass;
  pass.program = &program;
  pass.grid = PassLaunch::nothing;
  const Reflection& reflection = program.reflection();
  const VkDeviceSize most = std::min<VkDeviceSize>(zero_bytes, gpu_->facts().properties.limits.maxUniformBufferRange);
  for (std::uint32_t slot = 0; slot < reflection.slots.size(); ++slot) {
    for (std::uint32_t element = 0; element < reflection.slots[slot].count; ++element) {
      BoundDescriptor& bound = pass.descriptors.emplace_back();
      bound.slot = slot;
      bound.element = element;
      bound.buffer = zeros_.buffer.get();
      bound.bytes = reflection.slots[slot].type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER ? most : zero_bytes;
      bound.view = zero_texels_.get();
    }
  }
  if (reflection.push_constant_bytes != 0) {
    pass.push_constants = 0;
    pass.values.emplace_back(reflection.push_constant_bytes);
  }
  return pass;
}

// Images have no stand-in: their programs are compiled at their first real dispatch.
static bool has_images(const Reflection& reflection) {
  return std::ranges::any_of(reflection.slots, [](const DescriptorSlot& slot) {
    return slot.type == VK_DESCRIPTOR_TYPE_STORAGE_IMAGE || slot.type == VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
  });
}

Queue::~Queue() { gpu_->vk().DeviceWaitIdle(gpu_->handle()); }

Status Queue::make_slot(Slot& slot) {
  const DeviceFunctions& vk = gpu_->vk();
  auto pool = structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.queueFamilyIndex = gpu_->facts().queue_family;
  slot.pool = OwnedCommandPool(*gpu_);
  Status status = gpu_->check(vk.CreateCommandPool(gpu_->handle(), &pool, nullptr, slot.pool.out()), "a command pool");
  if (!status.ok()) return status;
  const VkCommandBufferAllocateInfo one{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, slot.pool.get(),
                                        VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  status = gpu_->check(vk.AllocateCommandBuffers(gpu_->handle(), &one, &slot.commands), "a command buffer");
  if (!status.ok() || gpu_->facts().timestamp_bits == 0) return status;
  auto stamps = structure<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
  stamps.queryType = VK_QUERY_TYPE_TIMESTAMP;
  stamps.queryCount = stamps_of_slot;
  slot.stamps = OwnedQueryPool(*gpu_);
  return gpu_->check(vk.CreateQueryPool(gpu_->handle(), &stamps, nullptr, slot.stamps.out()), "a query pool");
}

Result<Queue::Slot*> Queue::free_slot() {
  const auto free = std::ranges::find(slots_, 0U, &Slot::value);
  if (free != slots_.end()) return &*free;
  Slot slot;
  if (Status status = make_slot(slot); !status.ok()) return status;
  return &slots_.emplace_back(std::move(slot));
}

// Descriptors for every pass, and memory for the values of its blocks.
Status Queue::make_room(Slot& slot, std::span<const BoundPass> passes) {
  const DeviceFunctions& vk = gpu_->vk();
  const std::uint64_t alignment = values_alignment(*gpu_);
  std::map<VkDescriptorType, std::uint32_t> needed;
  std::uint64_t bytes = 0;
  for (const BoundPass& pass : passes) {
    for (const DescriptorSlot& each : pass.program->reflection().slots) needed[each.type] += each.count;
    for (const std::vector<std::byte>& values : pass.values) bytes += round_up(values.size(), alignment);
  }
  if (bytes > slot.values_bytes) {
    auto values = make_buffer(*gpu_, round_up(bytes, 4096), Placement::host);
    if (!values) return values.error();
    slot.values = std::move(*values);
    slot.values_bytes = round_up(bytes, 4096);
  }
  const auto sets = static_cast<std::uint32_t>(passes.size());
  const bool fits = slot.sets >= sets && std::ranges::all_of(needed, [&](const auto& need) {
                      const auto room = slot.room.find(need.first);
                      return room != slot.room.end() && room->second >= need.second;
                    });
  if (fits) return gpu_->check(vk.ResetDescriptorPool(gpu_->handle(), slot.descriptors.get(), 0), "descriptors");
  for (const auto& [type, count] : needed) slot.room[type] = std::max(slot.room[type], count);
  slot.sets = std::max(slot.sets, sets);
  std::vector<VkDescriptorPoolSize> sizes;
  for (const auto& [type, count] : slot.room) sizes.push_back({type, count});
  if (sizes.empty()) sizes.push_back({VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1});  // a pool of none is not allowed
  auto pool = structure<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
  pool.maxSets = slot.sets;
  pool.poolSizeCount = static_cast<std::uint32_t>(sizes.size());
  pool.pPoolSizes = sizes.data();
  slot.descriptors = OwnedDescriptorPool(*gpu_);
  return gpu_->check(vk.CreateDescriptorPool(gpu_->handle(), &pool, nullptr, slot.descriptors.out()),
                     "a descriptor pool");
}

void Queue::barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to,
                    VkAccessFlags read) {
  const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, written, read};
  gpu_->vk().CmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

// What the host wrote into the shadows since. Whether there was any.
bool Queue::copy_in(VkCommandBuffer commands, std::span<const BoundPass> passes) {
  bool any = false;
  for (const BoundPass& pass : passes) {
    for (VulkanBuffer* buffer : pass.buffers) {
      if (buffer->shadow() == VK_NULL_HANDLE || !buffer->take_newer()) continue;
      any = true;
      const VkBufferCopy whole{0, 0, buffer->bytes()};
      gpu_->vk().CmdCopyBuffer(commands, buffer->shadow(), buffer->handle(), 1, &whole);
    }
  }
  return any;
}

// What the host will read, each buffer once.
void Queue::copy_back(VkCommandBuffer commands, std::span<const BoundPass> passes) {
  std::vector<VulkanBuffer*> copied;
  for (const BoundPass& pass : passes) {
    for (VulkanBuffer* buffer : pass.buffers) {
      if (!buffer->comes_back() || std::ranges::find(copied, buffer) != copied.end()) continue;
      if (copied.empty()) {
        barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                VK_ACCESS_TRANSFER_READ_BIT);
      }
      copied.push_back(buffer);
      const VkBufferCopy whole{0, 0, buffer->bytes()};
      gpu_->vk().CmdCopyBuffer(commands, buffer->handle(), buffer->shadow(), 1, &whole);
    }
  }
}

// Copies the values of blocks and texels into the slot's memory; where each begins.
std::vector<std::uint64_t> Queue::place_values(Slot& slot, const BoundPass& pass, std::uint64_t& values_used) {
  std::vector<std::uint64_t> offsets;
  for (std::size_t i = 0; i < pass.values.size(); ++i) {
    offsets.push_back(values_used);
    if (i == pass.push_constants) continue;
    std::memcpy(slot.values.mapped + values_used, pass.values[i].data(), pass.values[i].size());
    values_used += round_up(pass.values[i].size(), values_alignment(*gpu_));
  }
  return offsets;
}

Status Queue::write_descriptors(Slot& slot, const BoundPass& pass, std::span<const std::uint64_t> offsets,
                                VkDescriptorSet& set) {
  const DeviceFunctions& vk = gpu_->vk();
  const VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr,
                                             slot.descriptors.get(), 1, pass.program->set_layout()};
  Status status = gpu_->check(vk.AllocateDescriptorSets(gpu_->handle(), &allocate, &set), "a descriptor set");
  if (!status.ok()) return status;
  std::vector<VkDescriptorImageInfo> images(pass.descriptors.size());
  std::vector<VkDescriptorBufferInfo> buffers(pass.descriptors.size());
  std::vector<VkWriteDescriptorSet> writes;
  for (std::size_t i = 0; i < pass.descriptors.size(); ++i) {
    const BoundDescriptor& bound = pass.descriptors[i];
    VkWriteDescriptorSet& write = writes.emplace_back();
    write = structure<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
    write.dstSet = set;
    write.dstBinding = bound.slot;
    write.dstArrayElement = bound.element;
    write.descriptorCount = 1;
    write.descriptorType = pass.program->reflection().slots[bound.slot].type;
    write.pTexelBufferView = &bound.view;
    write.pBufferInfo = &buffers[i];
    write.pImageInfo = &images[i];
    if (bound.texture != nullptr) {
      images[i] = {bound.texture->sampler(), bound.texture->view(), VK_IMAGE_LAYOUT_GENERAL};
    }
    if (bound.values) {
      buffers[i] = {slot.values.buffer.get(), offsets[*bound.values], pass.values[*bound.values].size()};
    } else {
      buffers[i] = {bound.buffer, 0, bound.bytes};
    }
  }
  vk.UpdateDescriptorSets(gpu_->handle(), static_cast<std::uint32_t>(writes.size()), writes.data(), 0, nullptr);
  return {};
}

Status Queue::record_pass(Slot& slot, const BoundPass& pass, std::uint64_t& values_used) {
  const DeviceFunctions& vk = gpu_->vk();
  VkDescriptorSet set = VK_NULL_HANDLE;
  if (pass.grid == PassLaunch::nothing && pass.descriptors.empty() && !pass.program->reflection().slots.empty()) {
    if (has_images(pass.program->reflection())) return {};
    return record_pass(slot, over_nothing(*pass.program), values_used);
  }
  const std::vector<std::uint64_t> offsets = place_values(slot, pass, values_used);
  if (Status status = write_descriptors(slot, pass, offsets, set); !status.ok()) return status;
  for (const BoundTexture& bound : pass.textures) {
    const bool converted = bound.values.has_value();
    fill(slot.commands, bound, converted ? slot.values.buffer.get() : bound.buffer,
         converted ? offsets[*bound.values] : 0);
  }
  const VkPipelineLayout layout = pass.program->layout();
  vk.CmdBindPipeline(slot.commands, VK_PIPELINE_BIND_POINT_COMPUTE, pass.program->pipeline());
  vk.CmdBindDescriptorSets(slot.commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, nullptr);
  if (pass.push_constants) {
    const std::vector<std::byte>& values = pass.values[*pass.push_constants];
    vk.CmdPushConstants(slot.commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        static_cast<std::uint32_t>(values.size()), values.data());
  }
  if (pass.grid == PassLaunch::nothing) {
    vk.CmdDispatchIndirect(slot.commands, zeros_.buffer.get(), 0);
  } else {
    vk.CmdDispatch(slot.commands, pass.grid[0], pass.grid[1], pass.grid[2]);
  }
  for (const BoundTexture& bound : pass.textures) {
    if (bound.written) read_back(slot.commands, bound);
  }
  return {};
}

namespace {

struct ImageStep {
  VkImageLayout from, to;
  VkPipelineStageFlags before, after;
  VkAccessFlags written, read;
};

void change_layout(const DeviceFunctions& vk, VkCommandBuffer commands, const PixelTexture& texture,
                   const ImageStep& step) {
  auto barrier = structure<VkImageMemoryBarrier>(VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER);
  barrier.srcAccessMask = step.written;
  barrier.dstAccessMask = step.read;
  barrier.oldLayout = step.from;
  barrier.newLayout = step.to;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = texture.image();
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, texture.layers()};
  vk.CmdPipelineBarrier(commands, step.before, step.after, 0, 0, nullptr, 0, nullptr, 1, &barrier);
}

VkBufferImageCopy whole_image(const PixelTexture& texture, std::uint64_t offset) {
  VkBufferImageCopy region{};
  region.bufferOffset = offset;
  region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, texture.layers()};
  region.imageExtent = texture.extent();
  return region;
}

constexpr VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags copies = VK_PIPELINE_STAGE_TRANSFER_BIT;

}  // namespace

void Queue::fill(VkCommandBuffer commands, const BoundTexture& bound, VkBuffer from, std::uint64_t offset) {
  const DeviceFunctions& vk = gpu_->vk();
  barrier(commands, compute | copies, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, copies,
          VK_ACCESS_TRANSFER_READ_BIT);
  change_layout(vk, commands, *bound.texture,
                {VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, compute | copies, copies,
                 VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT, VK_ACCESS_TRANSFER_WRITE_BIT});
  const VkBufferImageCopy region = whole_image(*bound.texture, offset);
  vk.CmdCopyBufferToImage(commands, from, bound.texture->image(), VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region);
  change_layout(vk, commands, *bound.texture,
                {VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_GENERAL, copies, compute,
                 VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT});
}

void Queue::read_back(VkCommandBuffer commands, const BoundTexture& bound) {
  const DeviceFunctions& vk = gpu_->vk();
  change_layout(vk, commands, *bound.texture,
                {VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, compute, copies,
                 VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT});
  const VkBufferImageCopy region = whole_image(*bound.texture, 0);
  vk.CmdCopyImageToBuffer(commands, bound.texture->image(), VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, bound.buffer, 1,
                          &region);
  barrier(commands, copies, VK_ACCESS_TRANSFER_WRITE_BIT, compute | copies,
          VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT);
}

Status Queue::record(Slot& slot, std::span<const BoundPass> passes) {
  const DeviceFunctions& vk = gpu_->vk();
  constexpr VkPipelineStageFlags works = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  constexpr VkAccessFlags writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  constexpr VkAccessFlags shader = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_UNIFORM_READ_BIT;
  Status status = make_room(slot, passes);
  if (status.ok()) {
    status = gpu_->check(vk.ResetCommandPool(gpu_->handle(), slot.pool.get(), 0), "resetting a command pool");
  }
  auto begin = structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  if (status.ok()) status = gpu_->check(vk.BeginCommandBuffer(slot.commands, &begin), "recording");
  if (!status.ok()) return status;
  const bool stamped = slot.stamps.get() != VK_NULL_HANDLE;
  if (stamped) vk.CmdResetQueryPool(slot.commands, slot.stamps.get(), 0, stamps_of_slot);
  // Behind earlier submissions, which may still run.
  constexpr VkAccessFlags transfer = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier(slot.commands, works, writes, works, shader | transfer);
  if (copy_in(slot.commands, passes)) {
    barrier(slot.commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, shader);
  }
  // A rasterizer on the host runs one command after the other, and would wait at a stamp for what went before.
  const bool software = gpu_->facts().info.kind == DeviceKind::software;
  const VkPipelineStageFlagBits begun =
      software ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;
  if (stamped) vk.CmdWriteTimestamp(slot.commands, begun, slot.stamps.get(), 0);
  std::uint64_t values_used = 0;
  for (std::size_t i = 0; i < passes.size() && status.ok(); ++i) {
    if (i != 0) {
      barrier(slot.commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
              VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, shader);
    }
    status = record_pass(slot, passes[i], values_used);
  }
  if (stamped) vk.CmdWriteTimestamp(slot.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, slot.stamps.get(), 1);
  copy_back(slot.commands, passes);
  barrier(slot.commands, works, writes, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
  const Status ended = gpu_->check(vk.EndCommandBuffer(slot.commands), "recording");
  return status.ok() ? ended : status;
}

Result<std::uint64_t> Queue::submit(std::span<const BoundPass> passes) {
  const std::lock_guard lock(mutex_);
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  retire();
  auto free = free_slot();
  if (!free) return free.error();
  Slot& slot = **free;
  if (Status status = record(slot, passes); !status.ok()) return status;
  const std::uint64_t value = last_ + 1;
  results_.emplace(value, std::nullopt);
  const VkSemaphore semaphore = timeline_.get();
  auto values = structure<VkTimelineSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &value;
  auto submit = structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submit.pNext = &values;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &slot.commands;
  submit.signalSemaphoreCount = 1;
  submit.pSignalSemaphores = &semaphore;
  slot.begun_ns = now_ns();
  VkResult made = VK_SUCCESS;
  {
    const std::lock_guard queue_lock(gpu_->queue_mutex());
    made = gpu_->vk().QueueSubmit(gpu_->queue(), 1, &submit, VK_NULL_HANDLE);
  }
  if (Status status = gpu_->check(made, "submission " + std::to_string(value)); !status.ok()) {
    results_.erase(value);
    return status;
  }
  last_ = value;
  slot.value = value;
  return value;
}

// Completes what has ended; after a loss, everything.
void Queue::retire() {
  std::uint64_t reached = 0;
  const VkResult read = gpu_->vk().GetSemaphoreCounterValue(gpu_->handle(), timeline_.get(), &reached);
  Status status = gpu_->check(read, "reading the timeline");
  if (status.ok()) status = gpu_->alive();
  for (Slot& slot : slots_) {
    if (slot.value == 0 || (status.ok() && slot.value > reached)) continue;
    if (status.ok()) {
      results_[slot.value] = Result<FenceResult>(time_of(slot));
    } else {
      results_[slot.value] = Result<FenceResult>(status);
    }
    slot.value = 0;
  }
}

FenceResult Queue::time_of(Slot& slot) {
  if (slot.stamps.get() == VK_NULL_HANDLE) return {0, slot.begun_ns};
  std::uint64_t stamps[stamps_of_slot] = {0, 0};
  const VkResult read = gpu_->vk().GetQueryPoolResults(gpu_->handle(), slot.stamps.get(), 0, stamps_of_slot,
                                                       sizeof stamps, stamps, sizeof stamps[0], VK_QUERY_RESULT_64_BIT);
  if (read != VK_SUCCESS) return {0, slot.begun_ns};
  const std::uint64_t begun = gpu_->host_time(stamps[0]);
  const std::uint64_t took = stamps[1] > stamps[0] ? gpu_->nanoseconds(stamps[1] - stamps[0]) : 0;
  return {took, begun != 0 ? begun : slot.begun_ns};
}

Result<FenceResult> Queue::wait(std::uint64_t value, Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto at = results_.find(value);
    if (at == results_.end()) {
      const bool never = value == 0 || value > last_;
      return not_found(
          "submission " + std::to_string(value) + ": " +
          (never ? "never made; the last is " + std::to_string(last_) : std::string("its result was taken already")));
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
    retire();
  }
}

}  // namespace kiln::vulkan
