// VulkanApi: the Vulkan loader, one instance, and the functions of instances and devices.
//
// Thread-safety: immutable after open(). Ownership: the instance is destroyed with the last owner; the loader stays
// loaded until the process ends, because drivers keep threads and exit handlers.
#pragma once

#include <kiln/log.hpp>
#include <kiln/status.hpp>

#include <vulkan/vulkan.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::vulkan {

// A structure of Vulkan with its type, all else zero.
template <class Structure>
Structure structure(VkStructureType type) noexcept {
  Structure made{};
  made.sType = type;
  return made;
}

enum class Validation : std::uint8_t { off, on };

// "VK_ERROR_DEVICE_LOST".
std::string result_name(VkResult result);
// device_lost, unavailable (no memory) or internal, with the name of the result.
Status status_of(VkResult result, std::string_view doing);

struct InstanceFunctions {
  PFN_vkGetDeviceProcAddr GetDeviceProcAddr = nullptr;
  PFN_vkDestroyInstance DestroyInstance = nullptr;
  PFN_vkEnumeratePhysicalDevices EnumeratePhysicalDevices = nullptr;
  PFN_vkEnumerateDeviceExtensionProperties EnumerateDeviceExtensionProperties = nullptr;
  PFN_vkGetPhysicalDeviceProperties GetPhysicalDeviceProperties = nullptr;
  PFN_vkGetPhysicalDeviceProperties2 GetPhysicalDeviceProperties2 = nullptr;
  PFN_vkGetPhysicalDeviceFeatures2 GetPhysicalDeviceFeatures2 = nullptr;
  PFN_vkGetPhysicalDeviceMemoryProperties GetPhysicalDeviceMemoryProperties = nullptr;
  PFN_vkGetPhysicalDeviceQueueFamilyProperties GetPhysicalDeviceQueueFamilyProperties = nullptr;
  PFN_vkGetPhysicalDeviceFormatProperties GetPhysicalDeviceFormatProperties = nullptr;
  PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsEXT GetPhysicalDeviceCalibrateableTimeDomainsEXT = nullptr;
  PFN_vkGetPhysicalDeviceExternalBufferProperties GetPhysicalDeviceExternalBufferProperties = nullptr;
  PFN_vkGetPhysicalDeviceExternalSemaphoreProperties GetPhysicalDeviceExternalSemaphoreProperties = nullptr;
  PFN_vkCreateDevice CreateDevice = nullptr;
  // VK_EXT_debug_utils; null without validation.
  PFN_vkCreateDebugUtilsMessengerEXT CreateDebugUtilsMessengerEXT = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT DestroyDebugUtilsMessengerEXT = nullptr;
};

struct DeviceFunctions {
  PFN_vkDestroyDevice DestroyDevice = nullptr;
  PFN_vkGetDeviceQueue GetDeviceQueue = nullptr;
  PFN_vkDeviceWaitIdle DeviceWaitIdle = nullptr;
  PFN_vkQueueSubmit QueueSubmit = nullptr;
  PFN_vkAllocateMemory AllocateMemory = nullptr;
  PFN_vkFreeMemory FreeMemory = nullptr;
  PFN_vkMapMemory MapMemory = nullptr;
  PFN_vkCreateBuffer CreateBuffer = nullptr;
  PFN_vkDestroyBuffer DestroyBuffer = nullptr;
  PFN_vkGetBufferMemoryRequirements GetBufferMemoryRequirements = nullptr;
  PFN_vkBindBufferMemory BindBufferMemory = nullptr;
  PFN_vkCreateBufferView CreateBufferView = nullptr;
  PFN_vkDestroyBufferView DestroyBufferView = nullptr;
  PFN_vkCreateImage CreateImage = nullptr;
  PFN_vkDestroyImage DestroyImage = nullptr;
  PFN_vkGetImageMemoryRequirements GetImageMemoryRequirements = nullptr;
  PFN_vkBindImageMemory BindImageMemory = nullptr;
  PFN_vkCreateImageView CreateImageView = nullptr;
  PFN_vkDestroyImageView DestroyImageView = nullptr;
  PFN_vkCreateSampler CreateSampler = nullptr;
  PFN_vkDestroySampler DestroySampler = nullptr;
  PFN_vkCreateShaderModule CreateShaderModule = nullptr;
  PFN_vkDestroyShaderModule DestroyShaderModule = nullptr;
  PFN_vkCreatePipelineCache CreatePipelineCache = nullptr;
  PFN_vkDestroyPipelineCache DestroyPipelineCache = nullptr;
  PFN_vkGetPipelineCacheData GetPipelineCacheData = nullptr;
  PFN_vkCreateComputePipelines CreateComputePipelines = nullptr;
  PFN_vkDestroyPipeline DestroyPipeline = nullptr;
  PFN_vkCreateDescriptorSetLayout CreateDescriptorSetLayout = nullptr;
  PFN_vkDestroyDescriptorSetLayout DestroyDescriptorSetLayout = nullptr;
  PFN_vkCreatePipelineLayout CreatePipelineLayout = nullptr;
  PFN_vkDestroyPipelineLayout DestroyPipelineLayout = nullptr;
  PFN_vkCreateDescriptorPool CreateDescriptorPool = nullptr;
  PFN_vkDestroyDescriptorPool DestroyDescriptorPool = nullptr;
  PFN_vkResetDescriptorPool ResetDescriptorPool = nullptr;
  PFN_vkAllocateDescriptorSets AllocateDescriptorSets = nullptr;
  PFN_vkUpdateDescriptorSets UpdateDescriptorSets = nullptr;
  PFN_vkCreateCommandPool CreateCommandPool = nullptr;
  PFN_vkDestroyCommandPool DestroyCommandPool = nullptr;
  PFN_vkResetCommandPool ResetCommandPool = nullptr;
  PFN_vkAllocateCommandBuffers AllocateCommandBuffers = nullptr;
  PFN_vkBeginCommandBuffer BeginCommandBuffer = nullptr;
  PFN_vkEndCommandBuffer EndCommandBuffer = nullptr;
  PFN_vkCmdBindPipeline CmdBindPipeline = nullptr;
  PFN_vkCmdBindDescriptorSets CmdBindDescriptorSets = nullptr;
  PFN_vkCmdPushConstants CmdPushConstants = nullptr;
  PFN_vkCmdDispatch CmdDispatch = nullptr;
  PFN_vkCmdDispatchIndirect CmdDispatchIndirect = nullptr;
  PFN_vkCmdPipelineBarrier CmdPipelineBarrier = nullptr;
  PFN_vkCmdCopyBuffer CmdCopyBuffer = nullptr;
  PFN_vkCmdCopyBufferToImage CmdCopyBufferToImage = nullptr;
  PFN_vkCmdCopyImageToBuffer CmdCopyImageToBuffer = nullptr;
  PFN_vkCmdResetQueryPool CmdResetQueryPool = nullptr;
  PFN_vkCmdWriteTimestamp CmdWriteTimestamp = nullptr;
  PFN_vkCreateQueryPool CreateQueryPool = nullptr;
  PFN_vkDestroyQueryPool DestroyQueryPool = nullptr;
  PFN_vkGetQueryPoolResults GetQueryPoolResults = nullptr;
  PFN_vkCreateSemaphore CreateSemaphore = nullptr;
  PFN_vkDestroySemaphore DestroySemaphore = nullptr;
  PFN_vkWaitSemaphoresKHR WaitSemaphores = nullptr;                       // core or VK_KHR_timeline_semaphore
  PFN_vkGetSemaphoreCounterValueKHR GetSemaphoreCounterValue = nullptr;   // likewise
  PFN_vkGetCalibratedTimestampsEXT GetCalibratedTimestampsEXT = nullptr;  // null: no VK_EXT_calibrated_timestamps
  PFN_vkGetMemoryFdKHR GetMemoryFdKHR = nullptr;                          // null: memory is not shared
  PFN_vkGetMemoryFdPropertiesKHR GetMemoryFdPropertiesKHR = nullptr;      // likewise
  PFN_vkGetSemaphoreFdKHR GetSemaphoreFdKHR = nullptr;                    // null: fences are not shared
  PFN_vkImportSemaphoreFdKHR ImportSemaphoreFdKHR = nullptr;              // likewise
};

class VulkanApi {
 public:
  // unavailable: there is no loader, no driver, or, with Validation::on, no VK_LAYER_KHRONOS_validation.
  static Result<std::shared_ptr<const VulkanApi>> open(const std::string& library, Validation validation, Log log);
  VulkanApi() = default;
  VulkanApi(const VulkanApi&) = delete;
  VulkanApi& operator=(const VulkanApi&) = delete;
  ~VulkanApi();

  VkInstance instance() const noexcept { return instance_; }
  const InstanceFunctions& vk() const noexcept { return vk_; }
  std::uint32_t version() const noexcept { return version_; }  // of the loader
  bool validates() const noexcept { return messenger_ != VK_NULL_HANDLE; }
  Result<std::vector<VkPhysicalDevice>> physical_devices() const;

 private:
  Status create(const std::string& library, Validation validation);

  VkInstance instance_ = VK_NULL_HANDLE;
  InstanceFunctions vk_;
  std::uint32_t version_ = VK_API_VERSION_1_0;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  Log log_;
};

// internal: the driver does not answer a function that it must have. Optional functions stay null.
Status find_functions(const VulkanApi& api, VkDevice device, DeviceFunctions& functions);

}  // namespace kiln::vulkan
