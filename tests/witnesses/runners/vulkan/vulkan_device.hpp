// VulkanDevice: the first physical device of the driver that the environment chose, with one queue and what the cases
// may use switched on.
// Thread-safety: one thread. Ownership: the instance and the device are its own, and outlive what is made from them.
#pragma once

#include <vulkan/vulkan.h>

#include <set>
#include <string>

namespace kiln::witness {

enum class QueueChoice : std::uint8_t { invalid = 0, compute_only, graphics };

// Throws std::runtime_error naming the call and its VkResult.
void check(VkResult result, const char* call);

class VulkanDevice {
 public:
  // Throws NoRenderer where there is no driver, no device or no such queue.
  explicit VulkanDevice(QueueChoice choice);
  VulkanDevice(const VulkanDevice&) = delete;
  VulkanDevice& operator=(const VulkanDevice&) = delete;
  ~VulkanDevice();

  VkDevice handle() const { return device_; }
  VkQueue queue() const { return queue_; }
  std::uint32_t queue_family() const { return queue_family_; }
  std::string name() const;
  // The words of @needs that the device has.
  const std::set<std::string>& abilities() const { return abilities_; }
  // The index of a memory type of these bits that has the properties. Throws where there is none.
  std::uint32_t memory_type(std::uint32_t bits, VkMemoryPropertyFlags properties) const;

 private:
  void choose_physical_device();
  void choose_queue(QueueChoice choice);
  void create_device();

  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t queue_family_ = 0;
  std::set<std::string> abilities_;
};

}  // namespace kiln::witness
