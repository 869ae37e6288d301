#include "witnesses/runners/vulkan/vulkan_buffer.hpp"

#include <cstring>

namespace kiln::witness {

VulkanBuffer::VulkanBuffer(const VulkanDevice& device, VkDeviceSize bytes, VkBufferUsageFlags usage,
                           VkMemoryPropertyFlags memory)
    : device_(device.handle()), bytes_(bytes) {
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = usage;
  check(vkCreateBuffer(device_, &info, nullptr, &buffer_), "vkCreateBuffer");
  try {
    VkMemoryRequirements needs{};
    vkGetBufferMemoryRequirements(device_, buffer_, &needs);
    VkMemoryAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = device.memory_type(needs.memoryTypeBits, memory);
    check(vkAllocateMemory(device_, &allocate, nullptr, &memory_), "vkAllocateMemory");
    check(vkBindBufferMemory(device_, buffer_, memory_, 0), "vkBindBufferMemory");
    if ((memory & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0) {
      check(vkMapMemory(device_, memory_, 0, VK_WHOLE_SIZE, 0, &mapped_), "vkMapMemory");
    }
  } catch (...) {
    vkDestroyBuffer(device_, buffer_, nullptr);
    vkFreeMemory(device_, memory_, nullptr);
    throw;
  }
}

VulkanBuffer::~VulkanBuffer() {
  vkDestroyBuffer(device_, buffer_, nullptr);
  vkFreeMemory(device_, memory_, nullptr);
}

void VulkanBuffer::write(const Bytes& contents) { std::memcpy(mapped_, contents.data(), contents.size()); }

Bytes VulkanBuffer::read() const {
  Bytes contents(bytes_);
  std::memcpy(contents.data(), mapped_, contents.size());
  return contents;
}

}  // namespace kiln::witness
