#include "witnesses/runners/vulkan/vulkan_device.hpp"

#include "witnesses/runners/renderer.hpp"

#include <vector>

namespace kiln::witness {

void check(VkResult result, const char* call) {
  if (result != VK_SUCCESS) throw std::runtime_error(std::string(call) + ": VkResult " + std::to_string(result));
}

VulkanDevice::VulkanDevice(QueueChoice choice) {
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "kiln witness";
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  const VkResult made = vkCreateInstance(&info, nullptr, &instance_);
  if (made != VK_SUCCESS) throw NoRenderer("vkCreateInstance: VkResult " + std::to_string(made));
  try {
    choose_physical_device();
    choose_queue(choice);
    create_device();
  } catch (...) {
    vkDestroyInstance(instance_, nullptr);
    throw;
  }
}

VulkanDevice::~VulkanDevice() {
  vkDestroyDevice(device_, nullptr);
  vkDestroyInstance(instance_, nullptr);
}

void VulkanDevice::choose_physical_device() {
  std::uint32_t count = 0;
  check(vkEnumeratePhysicalDevices(instance_, &count, nullptr), "vkEnumeratePhysicalDevices");
  if (count == 0) throw NoRenderer("the driver lists no physical device");
  std::vector<VkPhysicalDevice> devices(count);
  check(vkEnumeratePhysicalDevices(instance_, &count, devices.data()), "vkEnumeratePhysicalDevices");
  physical_ = devices[0];
}

void VulkanDevice::choose_queue(QueueChoice choice) {
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
  bool found = false;
  for (std::uint32_t k = 0; k < count; ++k) {
    const VkQueueFlags flags = families[k].queueFlags;
    if ((flags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    const bool graphics = (flags & VK_QUEUE_GRAPHICS_BIT) != 0;
    // A device with one family for everything has the compute queue there.
    if (!found || graphics == (choice == QueueChoice::graphics)) queue_family_ = k;
    found = true;
  }
  if (!found) throw NoRenderer("the device has no compute queue");
}

void VulkanDevice::create_device() {
  VkPhysicalDeviceVulkan12Features v12{};
  v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDeviceVulkan11Features v11{};
  v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  v11.pNext = &v12;
  VkPhysicalDeviceFeatures2 all{};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  all.pNext = &v11;
  vkGetPhysicalDeviceFeatures2(physical_, &all);
  all.features.robustBufferAccess = VK_FALSE;
  VkPhysicalDeviceFloatControlsProperties controls{};
  controls.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &controls;
  vkGetPhysicalDeviceProperties2(physical_, &properties);

  const auto note = [this](const char* need, VkBool32 has) {
    if (has == VK_TRUE) abilities_.insert(need);
  };
  note("vulkan", VK_TRUE);
  note("float64", all.features.shaderFloat64);
  note("int64", all.features.shaderInt64);
  note("int16", all.features.shaderInt16);
  note("int8", v12.shaderInt8);
  note("float16", v12.shaderFloat16);
  note("storage16", v11.storageBuffer16BitAccess);
  note("storage8", v12.storageBuffer8BitAccess);
  note("atomic_int64", v12.shaderBufferInt64Atomics);
  note("sparse_image2D", all.features.sparseResidencyImage2D);
  note("denorm_preserve_float32", controls.shaderDenormPreserveFloat32);

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = queue_family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &all;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  check(vkCreateDevice(physical_, &info, nullptr, &device_), "vkCreateDevice");
  vkGetDeviceQueue(device_, queue_family_, 0, &queue_);
}

std::string VulkanDevice::name() const {
  VkPhysicalDeviceProperties properties{};
  vkGetPhysicalDeviceProperties(physical_, &properties);
  return properties.deviceName;
}

std::uint32_t VulkanDevice::memory_type(std::uint32_t bits, VkMemoryPropertyFlags properties) const {
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(physical_, &memory);
  for (std::uint32_t k = 0; k < memory.memoryTypeCount; ++k) {
    if ((bits >> k & 1u) != 0 && (memory.memoryTypes[k].propertyFlags & properties) == properties) return k;
  }
  throw std::runtime_error("no memory type has the properties " + std::to_string(properties));
}

}  // namespace kiln::witness
