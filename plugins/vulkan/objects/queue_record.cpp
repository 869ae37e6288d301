// How a queue records a submission: descriptors, values, textures and dispatches.
#include <algorithm>
#include <cstring>

#include "objects/queue.hpp"

namespace kiln::vulkan {
namespace {

constexpr VkPipelineStageFlags works = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags shader = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_UNIFORM_READ_BIT;

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// Also of texels of 16 bytes.
std::uint64_t values_alignment(const Gpu& gpu) {
  return std::max<std::uint64_t>(gpu.facts().properties.limits.minUniformBufferOffsetAlignment, 16);
}

}  // namespace

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

// Commands that copy what the host wrote into the shadows since. Whether there was any.
Result<bool> Queue::record_copies(Slot& slot) {
  const DeviceFunctions& vk = gpu_->vk();
  bool any = false;
  for (VulkanBuffer* buffer : slot.shadowed) {
    if (!buffer->take_newer()) continue;
    if (!any) {
      Status status = begin_copies(slot);
      if (!status.ok()) return status;
    }
    any = true;
    const VkBufferCopy whole{0, 0, buffer->bytes()};
    vk.CmdCopyBuffer(slot.copies, buffer->shadow(), buffer->handle(), 1, &whole);
  }
  if (!any) return false;
  if (Status status = gpu_->check(vk.EndCommandBuffer(slot.copies), "recording copies"); !status.ok()) return status;
  return true;
}

Status Queue::begin_copies(Slot& slot) {
  const DeviceFunctions& vk = gpu_->vk();
  if (slot.copies == VK_NULL_HANDLE) {
    Status status = make_commands(slot.copy_pool, slot.copies);
    if (!status.ok()) return status;
  }
  Status status = gpu_->check(vk.ResetCommandPool(gpu_->handle(), slot.copy_pool.get(), 0), "resetting a command pool");
  auto begin = structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  if (status.ok()) status = gpu_->check(vk.BeginCommandBuffer(slot.copies, &begin), "recording copies");
  // Behind what earlier submissions read.
  if (status.ok()) barrier(slot.copies, works, writes, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
  return status;
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

Result<VkDescriptorSet> Queue::write_descriptors(Slot& slot, const BoundPass& pass,
                                                 std::span<const std::uint64_t> offsets) {
  const DeviceFunctions& vk = gpu_->vk();
  VkDescriptorSet set = VK_NULL_HANDLE;
  const VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr,
                                             slot.descriptors.get(), 1, pass.program->set_layout()};
  Status status = gpu_->check(vk.AllocateDescriptorSets(gpu_->handle(), &allocate, &set), "a descriptor set");
  if (!status.ok()) return status;
  std::vector<VkDescriptorImageInfo> images(pass.descriptors.size());
  std::vector<VkDescriptorBufferInfo> buffers(pass.descriptors.size());
  std::vector<VkWriteDescriptorSet> updates;
  for (std::size_t i = 0; i < pass.descriptors.size(); ++i) {
    const BoundDescriptor& bound = pass.descriptors[i];
    VkWriteDescriptorSet& write = updates.emplace_back();
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
  vk.UpdateDescriptorSets(gpu_->handle(), static_cast<std::uint32_t>(updates.size()), updates.data(), 0, nullptr);
  return set;
}

// bound: what the commands before have bound; null: nothing.
void Queue::record_step(Slot& slot, const BoundPass& pass, const PreparedPass& prepared, const BoundStep& step,
                        const BoundPass*& bound) {
  const DeviceFunctions& vk = gpu_->vk();
  for (const BoundTexture& texture : pass.textures) {
    const bool converted = texture.values.has_value();
    fill(slot.commands, texture, converted ? slot.values.buffer.get() : texture.buffer,
         converted ? prepared.offsets[*texture.values] : 0);
  }
  if (bound != &pass) {
    const VkPipelineLayout layout = pass.program->layout();
    if (bound == nullptr || bound->program != pass.program) {
      vk.CmdBindPipeline(slot.commands, VK_PIPELINE_BIND_POINT_COMPUTE, pass.program->pipeline());
    }
    vk.CmdBindDescriptorSets(slot.commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &prepared.set, 0, nullptr);
    if (pass.push_constants) {
      const std::vector<std::byte>& values = pass.values[*pass.push_constants];
      vk.CmdPushConstants(slot.commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                          static_cast<std::uint32_t>(values.size()), values.data());
    }
    bound = &pass;
  }
  if (pass.nothing) {
    vk.CmdDispatchIndirect(slot.commands, zeros_.buffer.get(), 0);
  } else {
    vk.CmdDispatch(slot.commands, step.grid[0], step.grid[1], step.grid[2]);
  }
  for (const BoundTexture& texture : pass.textures) {
    if (texture.written) read_back(slot.commands, texture);
  }
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

Status Queue::record(Slot& slot, const Submission& work) {
  const DeviceFunctions& vk = gpu_->vk();
  slot.key.clear();
  slot.shadowed.clear();
  for (const BoundPass& pass : work.passes) {
    for (VulkanBuffer* buffer : pass.buffers) {
      const bool known = std::ranges::find(slot.shadowed, buffer) != slot.shadowed.end();
      if (buffer->shadow() != VK_NULL_HANDLE && !known) slot.shadowed.push_back(buffer);
    }
  }
  Status status = make_room(slot, work.passes);
  if (status.ok()) {
    status = gpu_->check(vk.ResetCommandPool(gpu_->handle(), slot.pool.get(), 0), "resetting a command pool");
  }
  auto begin = structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = work.key.empty() ? VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT : 0;
  if (status.ok()) status = gpu_->check(vk.BeginCommandBuffer(slot.commands, &begin), "recording");
  if (!status.ok()) return status;
  const bool stamped = slot.stamps.get() != VK_NULL_HANDLE;
  if (stamped) vk.CmdResetQueryPool(slot.commands, slot.stamps.get(), 0, stamps_of_slot);
  // Behind earlier submissions, which may still run, and behind the copies.
  constexpr VkAccessFlags transfer = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier(slot.commands, works, writes, works, shader | transfer);
  // A rasterizer on the host runs one command after the other, and would wait at a stamp for what went before.
  const bool software = gpu_->facts().info.kind == DeviceKind::software;
  const VkPipelineStageFlagBits begun =
      software ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;
  if (stamped) vk.CmdWriteTimestamp(slot.commands, begun, slot.stamps.get(), 0);
  std::vector<PreparedPass> prepared(work.passes.size());
  std::uint64_t values_used = 0;
  for (std::size_t i = 0; i < work.passes.size() && status.ok(); ++i) {
    if (is_left_out(work.passes[i])) continue;
    prepared[i].offsets = place_values(slot, work.passes[i], values_used);
    auto set = write_descriptors(slot, work.passes[i], prepared[i].offsets);
    if (set) {
      prepared[i].set = *set;
    } else {
      status = set.error();
    }
  }
  const BoundPass* bound = nullptr;
  for (std::size_t i = 0; i < work.steps.size() && status.ok(); ++i) {
    const BoundStep& step = work.steps[i];
    if (i != 0 && step.waits) {
      barrier(slot.commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
              VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, shader);
    }
    record_step(slot, work.passes[step.pass], prepared[step.pass], step, bound);
  }
  if (stamped) vk.CmdWriteTimestamp(slot.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, slot.stamps.get(), 1);
  copy_back(slot.commands, work.passes);
  barrier(slot.commands, works, writes, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
  const Status ended = gpu_->check(vk.EndCommandBuffer(slot.commands), "recording");
  return status.ok() ? ended : status;
}

}  // namespace kiln::vulkan
