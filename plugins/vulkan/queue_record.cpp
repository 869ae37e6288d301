// How a queue records a submission: descriptors, values, textures and dispatches.
#include <algorithm>
#include <cstring>

#include "queue.hpp"

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

// Copies the values of blocks and texels into the slot's memory.
Status Queue::place_values(Slot& slot, std::span<BoundPass> passes) {
  std::uint64_t bytes = 0;
  for (BoundPass& pass : passes) {
    for (std::size_t i = 0; i < pass.values.size(); ++i) {
      if (i == pass.push_constants) continue;
      pass.values[i].offset = bytes;
      bytes += round_up(pass.values[i].bytes.size(), values_alignment(*gpu_));
    }
  }
  if (bytes > slot.values_bytes) {
    slot.key = {};  // its descriptor sets name the memory
    auto values = make_buffer(*gpu_, round_up(bytes, 4096), Placement::host);
    if (!values) return values.error();
    slot.values = std::move(*values);
    slot.values_bytes = round_up(bytes, 4096);
  }
  for (const BoundPass& pass : passes) {
    for (std::size_t i = 0; i < pass.values.size(); ++i) {
      const BoundValues& values = pass.values[i];
      if (i != pass.push_constants) std::ranges::copy(values.bytes, slot.values.mapped + values.offset);
    }
  }
  return {};
}

// A pool of descriptors for every pass.
Status Queue::make_room(Slot& slot, std::span<const BoundPass> passes) {
  const DeviceFunctions& vk = gpu_->vk();
  DescriptorCounts needed{};
  for (const BoundPass& pass : passes) {
    for (const DescriptorSlot& each : pass.program->reflection().slots) needed[each.type] += each.count;
  }
  const auto sets = static_cast<std::uint32_t>(passes.size());
  const bool fits = slot.descriptors.get() != VK_NULL_HANDLE && slot.room_for_sets >= sets &&
                    std::ranges::equal(needed, slot.room, std::ranges::less_equal());
  if (fits) return gpu_->check(vk.ResetDescriptorPool(gpu_->handle(), slot.descriptors.get(), 0), "descriptors");
  slot.room_for_sets = std::max(slot.room_for_sets, sets);
  std::vector<VkDescriptorPoolSize> sizes;
  for (std::size_t type = 0; type < needed.size(); ++type) {
    slot.room[type] = std::max(slot.room[type], needed[type]);
    if (slot.room[type] != 0) sizes.push_back({static_cast<VkDescriptorType>(type), slot.room[type]});
  }
  if (sizes.empty()) sizes.push_back({VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1});  // a pool of none is not allowed
  auto pool = structure<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
  pool.maxSets = slot.room_for_sets;
  pool.poolSizeCount = static_cast<std::uint32_t>(sizes.size());
  pool.pPoolSizes = sizes.data();
  slot.descriptors = OwnedDescriptorPool(*gpu_);
  return gpu_->check(vk.CreateDescriptorPool(gpu_->handle(), &pool, nullptr, slot.descriptors.out()),
                     "a descriptor pool");
}

// Room for the counts of each step that reads them.
Status Queue::make_grids(Slot& slot, const Submission& work) {
  slot.grid_steps.clear();
  for (std::size_t i = 0; i < work.key.steps.size(); ++i) {
    if (work.passes[work.key.steps[i].pass()].grid != VK_NULL_HANDLE) slot.grid_steps.push_back(i);
  }
  const std::uint64_t bytes = slot.grid_steps.size() * grid_bytes;
  if (bytes <= slot.grids_bytes) return {};
  auto grids = make_buffer(*gpu_, round_up(bytes, 4096), Placement::readback);
  if (!grids) return grids.error();
  slot.grids = std::move(*grids);
  slot.grids_bytes = round_up(bytes, 4096);
  return {};
}

void Queue::barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to,
                    VkAccessFlags read) {
  const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, written, read};
  gpu_->vk().CmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

// Commands that copy what the host wrote into the shadows since. Whether there was any.
Result<bool> Queue::record_copies(Slot& slot) {
  const DeviceFunctions& vk = gpu_->vk();
  slot.copied.clear();
  for (VulkanBuffer* buffer : slot.shadowed) {
    if (!buffer->take_newer()) continue;
    slot.copied.push_back(buffer);
    if (slot.copied.size() == 1) {
      Status status = begin_copies(slot);
      if (!status.ok()) return status;
    }
    const VkBufferCopy whole{0, 0, buffer->bytes()};
    vk.CmdCopyBuffer(slot.copies, buffer->shadow(), buffer->handle(), 1, &whole);
  }
  if (slot.copied.empty()) return false;
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

// What the host will read.
void Queue::copy_back(const Slot& slot) {
  bool any = false;
  for (VulkanBuffer* buffer : slot.shadowed) {
    if (!buffer->comes_back()) continue;
    if (!any) barrier(slot.commands, works, writes, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
    any = true;
    const VkBufferCopy whole{0, 0, buffer->bytes()};
    gpu_->vk().CmdCopyBuffer(slot.commands, buffer->handle(), buffer->shadow(), 1, &whole);
  }
}

// A set for each pass.
Status Queue::write_descriptors(Slot& slot, const Submission& work) {
  const DeviceFunctions& vk = gpu_->vk();
  std::vector<VkDescriptorSetLayout> layouts;
  layouts.reserve(work.passes.size());
  for (const BoundPass& pass : work.passes) layouts.push_back(*pass.program->set_layout());
  slot.sets.resize(layouts.size());
  const VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr,
                                             slot.descriptors.get(), static_cast<std::uint32_t>(layouts.size()),
                                             layouts.data()};
  Status status =
      gpu_->check(vk.AllocateDescriptorSets(gpu_->handle(), &allocate, slot.sets.data()), "descriptor sets");
  if (!status.ok()) return status;
  // The updates point into these: they do not grow.
  std::vector<VkDescriptorImageInfo> images(work.descriptors.size());
  std::vector<VkDescriptorBufferInfo> buffers(work.descriptors.size());
  std::vector<VkWriteDescriptorSet> updates(work.descriptors.size());
  for (std::size_t i = 0; i < work.passes.size(); ++i) {
    const BoundPass& pass = work.passes[i];
    for (std::size_t at = pass.first; at < pass.end; ++at) {
      const BoundDescriptor& bound = work.descriptors[at];
      VkWriteDescriptorSet& write = updates[at];
      write = structure<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
      write.dstSet = slot.sets[i];
      write.dstBinding = bound.slot;
      write.dstArrayElement = bound.element;
      write.descriptorCount = 1;
      write.descriptorType = pass.program->reflection().slots[bound.slot].type;
      write.pTexelBufferView = &bound.view;
      write.pBufferInfo = &buffers[at];
      write.pImageInfo = &images[at];
      images[at].sampler = bound.sampler;
      if (bound.texture != nullptr) {
        images[at] = {bound.texture->sampler(), bound.texture->view(), VK_IMAGE_LAYOUT_GENERAL};
      }
      if (bound.values) {
        const BoundValues& values = pass.values[*bound.values];
        buffers[at] = {slot.values.buffer.get(), values.offset, values.bytes.size()};
      } else {
        buffers[at] = {bound.buffer, 0, bound.bytes};
      }
    }
  }
  vk.UpdateDescriptorSets(gpu_->handle(), static_cast<std::uint32_t>(updates.size()), updates.data(), 0, nullptr);
  return {};
}

// bound: what the commands before have bound; null: nothing.
void Queue::bind_pass(VkCommandBuffer commands, const BoundPass& pass, VkDescriptorSet set, const BoundPass* bound) {
  const DeviceFunctions& vk = gpu_->vk();
  const VkPipelineLayout layout = pass.program->layout();
  if (bound == nullptr || bound->program != pass.program) {
    vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pass.program->pipeline());
  }
  vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, nullptr);
  if (pass.push_constants) {
    const std::vector<std::byte>& values = pass.values[*pass.push_constants].bytes;
    vk.CmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, static_cast<std::uint32_t>(values.size()),
                        values.data());
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

Status Queue::record(Slot& slot, Submission& work) {
  const DeviceFunctions& vk = gpu_->vk();
  slot.shadowed = std::move(work.shadowed);
  slot.written = std::move(work.written);
  for (std::vector<VulkanBuffer*>* const buffers : {&slot.shadowed, &slot.written}) {
    std::ranges::sort(*buffers);
    buffers->erase(std::unique(buffers->begin(), buffers->end()), buffers->end());
  }
  Status status = place_values(slot, work.passes);
  if (status.ok()) status = make_grids(slot, work);
  if (slot.key.words != work.key.words) {
    if (status.ok()) status = make_room(slot, work.passes);
    if (status.ok()) status = write_descriptors(slot, work);
  }
  if (status.ok()) {
    status = gpu_->check(vk.ResetCommandPool(gpu_->handle(), slot.pool.get(), 0), "resetting a command pool");
  }
  auto begin = structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = slot.kept ? 0 : VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  if (status.ok()) status = gpu_->check(vk.BeginCommandBuffer(slot.commands, &begin), "recording");
  if (!status.ok()) return status;
  const bool stamped = slot.stamps.get() != VK_NULL_HANDLE;
  if (stamped) vk.CmdResetQueryPool(slot.commands, slot.stamps.get(), 0, stamps_of_slot);
  // Behind earlier submissions, which may still run, and behind the copies.
  constexpr VkAccessFlags transfer = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier(slot.commands, works, writes, works, shader | transfer);
  if (stamped) vk.CmdWriteTimestamp(slot.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, slot.stamps.get(), 0);
  const BoundPass* bound = nullptr;
  VkDeviceSize grid_copy = 0;
  // The copy of a grid is to be over before a step writes it anew.
  const VkPipelineStageFlags before = slot.grid_steps.empty() ? compute : works;
  for (const LaunchStep& step : work.key.steps) {
    const BoundPass& pass = work.passes[step.pass()];
    if (bound != nullptr && step.waits()) barrier(slot.commands, before, VK_ACCESS_SHADER_WRITE_BIT, compute, shader);
    for (const BoundTexture& texture : pass.textures) {
      const bool converted = texture.values.has_value();
      fill(slot.commands, texture, converted ? slot.values.buffer.get() : texture.buffer,
           converted ? pass.values[*texture.values].offset : 0);
    }
    if (bound != &pass) bind_pass(slot.commands, pass, slot.sets[step.pass()], bound);
    bound = &pass;
    if (pass.nothing) {
      vk.CmdDispatchIndirect(slot.commands, zeros_.buffer.get(), 0);
    } else if (pass.grid != VK_NULL_HANDLE) {
      barrier(slot.commands, works, writes, VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
              VK_ACCESS_INDIRECT_COMMAND_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT);
      const VkBufferCopy copy{pass.grid_at, grid_copy, grid_bytes};
      vk.CmdCopyBuffer(slot.commands, pass.grid, slot.grids.buffer.get(), 1, &copy);
      vk.CmdDispatchIndirect(slot.commands, pass.grid, pass.grid_at);
      grid_copy += grid_bytes;
    } else {
      const auto grid = step.grid();
      vk.CmdDispatch(slot.commands, grid[0], grid[1], grid[2]);
    }
    for (const BoundTexture& texture : pass.textures) {
      if (texture.written) read_back(slot.commands, texture);
    }
  }
  if (stamped) vk.CmdWriteTimestamp(slot.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, slot.stamps.get(), 1);
  copy_back(slot);
  barrier(slot.commands, works, writes, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
  return gpu_->check(vk.EndCommandBuffer(slot.commands), "recording");
}

}  // namespace kiln::vulkan
