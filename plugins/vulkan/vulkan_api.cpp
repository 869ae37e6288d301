#include "vulkan_api.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

namespace kiln::vulkan {
namespace {

constexpr const char* validation_layer = "VK_LAYER_KHRONOS_validation";

struct NamedResult {
  VkResult value;
  const char* name;
};

constexpr NamedResult results[] = {
    {VK_SUCCESS, "VK_SUCCESS"},
    {VK_NOT_READY, "VK_NOT_READY"},
    {VK_TIMEOUT, "VK_TIMEOUT"},
    {VK_INCOMPLETE, "VK_INCOMPLETE"},
    {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
    {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED"},
    {VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
    {VK_ERROR_MEMORY_MAP_FAILED, "VK_ERROR_MEMORY_MAP_FAILED"},
    {VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT"},
    {VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT"},
    {VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT"},
    {VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER"},
    {VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS"},
    {VK_ERROR_FORMAT_NOT_SUPPORTED, "VK_ERROR_FORMAT_NOT_SUPPORTED"},
    {VK_ERROR_FRAGMENTED_POOL, "VK_ERROR_FRAGMENTED_POOL"},
    {VK_ERROR_UNKNOWN, "VK_ERROR_UNKNOWN"},
    {VK_ERROR_OUT_OF_POOL_MEMORY, "VK_ERROR_OUT_OF_POOL_MEMORY"},
    {VK_ERROR_INVALID_EXTERNAL_HANDLE, "VK_ERROR_INVALID_EXTERNAL_HANDLE"},
    {VK_PIPELINE_COMPILE_REQUIRED, "VK_PIPELINE_COMPILE_REQUIRED"},
};

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* message, void* log) {
  const bool error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
  std::string text = message->pMessage == nullptr ? std::string() : std::string(message->pMessage);
  std::ranges::replace(text, '\n', ' ');
  static_cast<const Log*>(log)->write(error ? LogLevel::error : LogLevel::warning, "vulkan", "validation: " + text);
  return VK_FALSE;
}

// Finds functions of an instance (its loader) or of a device, and remembers the first that is missing.
template <class Find>
class Finder {
 public:
  explicit Finder(Find find) : find_(find) {}

  template <class Function>
  void need(Function& into, const char* name) {
    want(into, name);
    if (into == nullptr && missing_ == nullptr) missing_ = name;
  }
  template <class Function>
  void want(Function& into, const char* name) {
    into = reinterpret_cast<Function>(find_(name));
  }
  Status status() const {
    return missing_ == nullptr ? ok_status() : internal_error("the Vulkan driver has no " + std::string(missing_));
  }

 private:
  Find find_;
  const char* missing_ = nullptr;
};

}  // namespace

std::string result_name(VkResult result) {
  const auto* known = std::ranges::find(results, result, &NamedResult::value);
  return known != std::end(results) ? std::string(known->name) : "VkResult " + std::to_string(result);
}

Status status_of(VkResult result, std::string_view doing) {
  if (result == VK_SUCCESS) return {};
  std::string message = std::string(doing) + ": " + result_name(result);
  switch (result) {
    case VK_ERROR_DEVICE_LOST:
      return device_lost(message + ". Open the device again");
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_MEMORY_MAP_FAILED:
    case VK_ERROR_INITIALIZATION_FAILED:
    case VK_ERROR_INCOMPATIBLE_DRIVER:
    case VK_ERROR_INVALID_EXTERNAL_HANDLE:
      return unavailable(std::move(message));
    default:
      return internal_error(std::move(message));
  }
}

Result<std::shared_ptr<const VulkanApi>> VulkanApi::open(const std::string& library, Validation validation, Log log) {
  auto api = std::make_shared<VulkanApi>();
  api->log_ = log;
  if (Status status = api->create(library, validation); !status.ok()) return status;
  return std::shared_ptr<const VulkanApi>(std::move(api));
}

Status VulkanApi::create(const std::string& library, Validation validation) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: see the header
  if (handle == nullptr) {
    const char* const why = dlerror();
    return unavailable(why == nullptr ? library + ": cannot be opened" : std::string(why));
  }
  const auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(handle, "vkGetInstanceProcAddr"));
  if (get == nullptr) return unavailable(library + ": has no vkGetInstanceProcAddr");

  Finder global([get](const char* name) { return get(VK_NULL_HANDLE, name); });
  PFN_vkCreateInstance create_instance = nullptr;
  PFN_vkEnumerateInstanceVersion enumerate_version = nullptr;
  PFN_vkEnumerateInstanceLayerProperties enumerate_layers = nullptr;
  global.need(create_instance, "vkCreateInstance");
  global.need(enumerate_layers, "vkEnumerateInstanceLayerProperties");
  global.want(enumerate_version, "vkEnumerateInstanceVersion");
  if (Status status = global.status(); !status.ok()) return status.within(library);
  if (enumerate_version != nullptr) enumerate_version(&version_);
  if (version_ < VK_API_VERSION_1_1) return unavailable(library + ": Vulkan 1.0, expected 1.1 or newer");

  std::vector<const char*> layers, extensions;
  if (validation == Validation::on) {
    std::uint32_t count = 0;
    enumerate_layers(&count, nullptr);
    std::vector<VkLayerProperties> known(count);
    enumerate_layers(&count, known.data());
    const bool present = std::ranges::any_of(
        known, [](const VkLayerProperties& layer) { return std::strcmp(layer.layerName, validation_layer) == 0; });
    if (!present) {
      return unavailable("[plugin.vulkan] validation = true: " + std::string(validation_layer) +
                         " is not installed. Install vulkan-validationlayers, or remove the key");
    }
    layers.push_back(validation_layer);
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  }
  auto messages =
      structure<VkDebugUtilsMessengerCreateInfoEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  messages.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messages.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messages.pfnUserCallback = on_message;
  messages.pUserData = &log_;

  auto application = structure<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pApplicationName = "kiln";
  application.apiVersion = std::min(version_, VK_API_VERSION_1_3);
  auto info = structure<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pNext = layers.empty() ? nullptr : &messages;
  info.pApplicationInfo = &application;
  info.enabledLayerCount = static_cast<std::uint32_t>(layers.size());
  info.ppEnabledLayerNames = layers.data();
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  if (const VkResult made = create_instance(&info, nullptr, &instance_); made != VK_SUCCESS) {
    instance_ = VK_NULL_HANDLE;
    return unavailable("vkCreateInstance: " + result_name(made) +
                       (made == VK_ERROR_INCOMPATIBLE_DRIVER ? ": no Vulkan driver is installed" : ""));
  }

  Finder of_instance([this, get](const char* name) { return get(instance_, name); });
  of_instance.need(vk_.DestroyInstance, "vkDestroyInstance");
  of_instance.need(vk_.GetDeviceProcAddr, "vkGetDeviceProcAddr");
  of_instance.need(vk_.EnumeratePhysicalDevices, "vkEnumeratePhysicalDevices");
  of_instance.need(vk_.EnumerateDeviceExtensionProperties, "vkEnumerateDeviceExtensionProperties");
  of_instance.need(vk_.GetPhysicalDeviceProperties, "vkGetPhysicalDeviceProperties");
  of_instance.need(vk_.GetPhysicalDeviceProperties2, "vkGetPhysicalDeviceProperties2");
  of_instance.need(vk_.GetPhysicalDeviceFeatures2, "vkGetPhysicalDeviceFeatures2");
  of_instance.need(vk_.GetPhysicalDeviceMemoryProperties, "vkGetPhysicalDeviceMemoryProperties");
  of_instance.need(vk_.GetPhysicalDeviceQueueFamilyProperties, "vkGetPhysicalDeviceQueueFamilyProperties");
  of_instance.need(vk_.GetPhysicalDeviceFormatProperties, "vkGetPhysicalDeviceFormatProperties");
  of_instance.want(vk_.GetPhysicalDeviceCalibrateableTimeDomainsEXT, "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT");
  of_instance.need(vk_.GetPhysicalDeviceExternalBufferProperties, "vkGetPhysicalDeviceExternalBufferProperties");
  of_instance.need(vk_.GetPhysicalDeviceExternalSemaphoreProperties, "vkGetPhysicalDeviceExternalSemaphoreProperties");
  of_instance.need(vk_.CreateDevice, "vkCreateDevice");
  if (!layers.empty()) {
    of_instance.need(vk_.CreateDebugUtilsMessengerEXT, "vkCreateDebugUtilsMessengerEXT");
    of_instance.need(vk_.DestroyDebugUtilsMessengerEXT, "vkDestroyDebugUtilsMessengerEXT");
  }
  if (Status status = of_instance.status(); !status.ok()) return status;
  if (layers.empty()) return {};
  return status_of(vk_.CreateDebugUtilsMessengerEXT(instance_, &messages, nullptr, &messenger_),
                   "vkCreateDebugUtilsMessengerEXT");
}

VulkanApi::~VulkanApi() {
  if (messenger_ != VK_NULL_HANDLE) vk_.DestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  if (instance_ != VK_NULL_HANDLE && vk_.DestroyInstance != nullptr) vk_.DestroyInstance(instance_, nullptr);
}

Result<std::vector<VkPhysicalDevice>> VulkanApi::physical_devices() const {
  std::uint32_t count = 0;
  VkResult listed = vk_.EnumeratePhysicalDevices(instance_, &count, nullptr);
  std::vector<VkPhysicalDevice> devices(count);
  if (listed == VK_SUCCESS && count != 0) {
    listed = vk_.EnumeratePhysicalDevices(instance_, &count, devices.data());
    devices.resize(count);
  }
  if (listed != VK_SUCCESS && listed != VK_INCOMPLETE) {
    return unavailable("vkEnumeratePhysicalDevices: " + result_name(listed));
  }
  return devices;
}

Status find_functions(const VulkanApi& api, VkDevice device, DeviceFunctions& f) {
  Finder finder([&](const char* name) { return api.vk().GetDeviceProcAddr(device, name); });
  finder.need(f.DestroyDevice, "vkDestroyDevice");
  finder.need(f.GetDeviceQueue, "vkGetDeviceQueue");
  finder.need(f.DeviceWaitIdle, "vkDeviceWaitIdle");
  finder.need(f.QueueSubmit, "vkQueueSubmit");
  finder.need(f.AllocateMemory, "vkAllocateMemory");
  finder.need(f.FreeMemory, "vkFreeMemory");
  finder.need(f.MapMemory, "vkMapMemory");
  finder.need(f.CreateBuffer, "vkCreateBuffer");
  finder.need(f.DestroyBuffer, "vkDestroyBuffer");
  finder.need(f.GetBufferMemoryRequirements, "vkGetBufferMemoryRequirements");
  finder.need(f.BindBufferMemory, "vkBindBufferMemory");
  finder.need(f.CreateBufferView, "vkCreateBufferView");
  finder.need(f.DestroyBufferView, "vkDestroyBufferView");
  finder.need(f.CreateImage, "vkCreateImage");
  finder.need(f.DestroyImage, "vkDestroyImage");
  finder.need(f.GetImageMemoryRequirements, "vkGetImageMemoryRequirements");
  finder.need(f.BindImageMemory, "vkBindImageMemory");
  finder.need(f.CreateImageView, "vkCreateImageView");
  finder.need(f.DestroyImageView, "vkDestroyImageView");
  finder.need(f.CreateSampler, "vkCreateSampler");
  finder.need(f.DestroySampler, "vkDestroySampler");
  finder.need(f.CreateShaderModule, "vkCreateShaderModule");
  finder.need(f.DestroyShaderModule, "vkDestroyShaderModule");
  finder.need(f.CreatePipelineCache, "vkCreatePipelineCache");
  finder.need(f.DestroyPipelineCache, "vkDestroyPipelineCache");
  finder.need(f.GetPipelineCacheData, "vkGetPipelineCacheData");
  finder.need(f.CreateComputePipelines, "vkCreateComputePipelines");
  finder.need(f.DestroyPipeline, "vkDestroyPipeline");
  finder.need(f.CreateDescriptorSetLayout, "vkCreateDescriptorSetLayout");
  finder.need(f.DestroyDescriptorSetLayout, "vkDestroyDescriptorSetLayout");
  finder.need(f.CreatePipelineLayout, "vkCreatePipelineLayout");
  finder.need(f.DestroyPipelineLayout, "vkDestroyPipelineLayout");
  finder.need(f.CreateDescriptorPool, "vkCreateDescriptorPool");
  finder.need(f.DestroyDescriptorPool, "vkDestroyDescriptorPool");
  finder.need(f.ResetDescriptorPool, "vkResetDescriptorPool");
  finder.need(f.AllocateDescriptorSets, "vkAllocateDescriptorSets");
  finder.need(f.UpdateDescriptorSets, "vkUpdateDescriptorSets");
  finder.need(f.CreateCommandPool, "vkCreateCommandPool");
  finder.need(f.DestroyCommandPool, "vkDestroyCommandPool");
  finder.need(f.ResetCommandPool, "vkResetCommandPool");
  finder.need(f.AllocateCommandBuffers, "vkAllocateCommandBuffers");
  finder.need(f.BeginCommandBuffer, "vkBeginCommandBuffer");
  finder.need(f.EndCommandBuffer, "vkEndCommandBuffer");
  finder.need(f.CmdBindPipeline, "vkCmdBindPipeline");
  finder.need(f.CmdBindDescriptorSets, "vkCmdBindDescriptorSets");
  finder.need(f.CmdPushConstants, "vkCmdPushConstants");
  finder.need(f.CmdDispatch, "vkCmdDispatch");
  finder.need(f.CmdDispatchIndirect, "vkCmdDispatchIndirect");
  finder.need(f.CmdPipelineBarrier, "vkCmdPipelineBarrier");
  finder.need(f.CmdCopyBuffer, "vkCmdCopyBuffer");
  finder.need(f.CmdCopyBufferToImage, "vkCmdCopyBufferToImage");
  finder.need(f.CmdCopyImageToBuffer, "vkCmdCopyImageToBuffer");
  finder.need(f.CmdResetQueryPool, "vkCmdResetQueryPool");
  finder.need(f.CmdWriteTimestamp, "vkCmdWriteTimestamp");
  finder.need(f.CreateQueryPool, "vkCreateQueryPool");
  finder.need(f.DestroyQueryPool, "vkDestroyQueryPool");
  finder.need(f.GetQueryPoolResults, "vkGetQueryPoolResults");
  finder.need(f.CreateSemaphore, "vkCreateSemaphore");
  finder.need(f.DestroySemaphore, "vkDestroySemaphore");
  finder.want(f.WaitSemaphores, "vkWaitSemaphores");
  finder.want(f.GetSemaphoreCounterValue, "vkGetSemaphoreCounterValue");
  if (f.WaitSemaphores == nullptr) finder.need(f.WaitSemaphores, "vkWaitSemaphoresKHR");
  if (f.GetSemaphoreCounterValue == nullptr) finder.need(f.GetSemaphoreCounterValue, "vkGetSemaphoreCounterValueKHR");
  finder.want(f.GetCalibratedTimestampsEXT, "vkGetCalibratedTimestampsEXT");
  finder.want(f.GetMemoryFdKHR, "vkGetMemoryFdKHR");
  finder.want(f.GetMemoryFdPropertiesKHR, "vkGetMemoryFdPropertiesKHR");
  finder.want(f.GetSemaphoreFdKHR, "vkGetSemaphoreFdKHR");
  finder.want(f.ImportSemaphoreFdKHR, "vkImportSemaphoreFdKHR");
  return finder.status();
}

}  // namespace kiln::vulkan
