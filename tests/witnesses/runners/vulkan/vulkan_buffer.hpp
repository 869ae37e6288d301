// VulkanBuffer: a buffer with memory of its own, mapped where the host sees it.
// Thread-safety: one thread. Ownership: buffer and memory are its own; the device outlives it.
#pragma once

#include "witnesses/catalog/scalar.hpp"
#include "witnesses/runners/vulkan/vulkan_device.hpp"

namespace kiln::witness {

class VulkanBuffer {
 public:
  VulkanBuffer(const VulkanDevice& device, VkDeviceSize bytes, VkBufferUsageFlags usage, VkMemoryPropertyFlags memory);
  VulkanBuffer(const VulkanBuffer&) = delete;
  VulkanBuffer& operator=(const VulkanBuffer&) = delete;
  ~VulkanBuffer();

  VkBuffer handle() const { return buffer_; }
  VkDeviceSize bytes() const { return bytes_; }
  // REQUIRES: host-visible and coherent memory, and no work in flight.
  void write(const Bytes& contents);
  Bytes read() const;

 private:
  VkDevice device_;
  VkDeviceSize bytes_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  void* mapped_ = nullptr;
};

}  // namespace kiln::witness
