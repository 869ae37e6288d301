// A Vulkan loader for tests: the machine's own, but for what these variables say where they are set. The plugin opens
// it by [plugin.vulkan] vulkan_library.
//   FAULTY_VULKAN_PIPELINES   what the creation of a pipeline does: "crash" kills the process, "oom" finds no memory,
//                             "silent" compiles whatever the flags say, and gives no feedback
//   FAULTY_VULKAN_WITHOUT     a feature that no device has: "cache_control", "zero_init", "float64", or
//                             "storage_texels": storage texel buffers of R32_UINT
//   FAULTY_VULKAN_WORKGROUPS  the most workgroups of a dispatch
//   FAULTY_VULKAN_RESOURCES   the most resources of a program
//   FAULTY_VULKAN_BLOCKS      the most storage blocks of a descriptor set
//   FAULTY_VULKAN_VERSION     of the loader: "1.0", "1.1"
// and but for what a test tells it: faulty_state.hpp.
#include <dlfcn.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include "vulkan/faulty_calls.hpp"

namespace {

// Whether the variable has this value.
bool is_set(const char* variable, const char* value) {
  const char* const found = std::getenv(variable);
  return found != nullptr && std::strcmp(found, value) == 0;
}

// The structure of this type in a chain; null: there is none.
template <class Structure>
Structure* find_in(const void* chain, VkStructureType type) {
  for (auto* at = static_cast<const VkBaseInStructure*>(chain); at != nullptr; at = at->pNext) {
    if (at->sType == type) return reinterpret_cast<Structure*>(const_cast<VkBaseInStructure*>(at));
  }
  return nullptr;
}

PFN_vkGetInstanceProcAddr real_loader() {
  static void* const library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  static const auto get = library == nullptr
                              ? nullptr
                              : reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  return get;
}

PFN_vkGetDeviceProcAddr real_device_functions = nullptr;
PFN_vkCreateComputePipelines real_create = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                                const VkComputePipelineCreateInfo* infos,
                                                const VkAllocationCallbacks* allocator, VkPipeline* pipelines) {
  constexpr const char* variable = "FAULTY_VULKAN_PIPELINES";
  if (is_set(variable, "crash")) std::raise(SIGSEGV);
  if (is_set(variable, "oom")) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (!is_set(variable, "silent")) return real_create(device, cache, count, infos, allocator, pipelines);
  std::vector<VkComputePipelineCreateInfo> asked(infos, infos + count);
  for (auto& info : asked)
    info.flags &= ~VkPipelineCreateFlags{VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT};
  const VkResult result = real_create(device, cache, count, asked.data(), allocator, pipelines);
  for (const auto& info : asked) {
    const auto* feedback = find_in<const VkPipelineCreationFeedbackCreateInfo>(
        info.pNext, VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO);
    if (feedback != nullptr) feedback->pPipelineCreationFeedback->flags = 0;
  }
  return result;
}

PFN_vkGetPhysicalDeviceFeatures2 real_features = nullptr;

VKAPI_ATTR void VKAPI_CALL read_features(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* features) {
  constexpr const char* variable = "FAULTY_VULKAN_WITHOUT";
  real_features(device, features);
  if (is_set(variable, "float64")) features->features.shaderFloat64 = VK_FALSE;
  auto* control = find_in<VkPhysicalDevicePipelineCreationCacheControlFeatures>(
      features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES);
  if (control != nullptr && is_set(variable, "cache_control")) control->pipelineCreationCacheControl = VK_FALSE;
  auto* zeros = find_in<VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures>(
      features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES);
  if (zeros != nullptr && is_set(variable, "zero_init")) zeros->shaderZeroInitializeWorkgroupMemory = VK_FALSE;
}

PFN_vkGetPhysicalDeviceFormatProperties real_format = nullptr;

VKAPI_ATTR void VKAPI_CALL read_format(VkPhysicalDevice device, VkFormat format, VkFormatProperties* properties) {
  real_format(device, format, properties);
  if (format != VK_FORMAT_R32_UINT || !is_set("FAULTY_VULKAN_WITHOUT", "storage_texels")) return;
  properties->bufferFeatures &= VK_FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT;
}

PFN_vkEnumerateInstanceVersion real_version = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL read_version(uint32_t* version) {
  constexpr const char* variable = "FAULTY_VULKAN_VERSION";
  const bool first = is_set(variable, "1.0");
  if (!first && !is_set(variable, "1.1")) return real_version(version);
  *version = first ? VK_API_VERSION_1_0 : VK_API_VERSION_1_1;
  return VK_SUCCESS;
}

PFN_vkGetPhysicalDeviceProperties real_properties = nullptr;

VKAPI_ATTR void VKAPI_CALL read_properties(VkPhysicalDevice device, VkPhysicalDeviceProperties* properties) {
  real_properties(device, properties);
  const auto limit = [](const char* variable, uint32_t& most) {
    const char* const found = std::getenv(variable);
    if (found != nullptr) most = static_cast<uint32_t>(std::atoi(found));
  };
  limit("FAULTY_VULKAN_WORKGROUPS", properties->limits.maxComputeWorkGroupCount[0]);
  limit("FAULTY_VULKAN_RESOURCES", properties->limits.maxPerStageResources);
  limit("FAULTY_VULKAN_BLOCKS", properties->limits.maxDescriptorSetStorageBuffers);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  PFN_vkVoidFunction found = real_device_functions(device, name);
  if (std::strcmp(name, "vkCreateComputePipelines") == 0) {
    real_create = reinterpret_cast<PFN_vkCreateComputePipelines>(found);
    found = reinterpret_cast<PFN_vkVoidFunction>(create_pipelines);
  }
  return kiln::vulkan::failing_call(name, kiln::vulkan::pretended_call(name, found));
}

PFN_vkVoidFunction instance_function(PFN_vkVoidFunction found, const char* name) {
  const auto is_replaced = [&](const char* one, auto& real) {
    if (found == nullptr || std::strcmp(name, one) != 0) return false;
    real = reinterpret_cast<std::remove_reference_t<decltype(real)>>(found);
    return true;
  };
  if (is_replaced("vkGetPhysicalDeviceFormatProperties", real_format)) {
    return reinterpret_cast<PFN_vkVoidFunction>(read_format);
  }
  if (is_replaced("vkEnumerateInstanceVersion", real_version)) {
    return reinterpret_cast<PFN_vkVoidFunction>(read_version);
  }
  if (is_replaced("vkGetPhysicalDeviceProperties", real_properties)) {
    return reinterpret_cast<PFN_vkVoidFunction>(read_properties);
  }
  if (is_replaced("vkGetPhysicalDeviceFeatures2", real_features)) {
    return reinterpret_cast<PFN_vkVoidFunction>(read_features);
  }
  if (is_replaced("vkGetDeviceProcAddr", real_device_functions)) {
    return reinterpret_cast<PFN_vkVoidFunction>(device_function);
  }
  return found;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance,
                                                                                           const char* name) {
  const PFN_vkGetInstanceProcAddr get = real_loader();
  if (get == nullptr) return nullptr;
  const PFN_vkVoidFunction found = instance_function(get(instance, name), name);
  return kiln::vulkan::failing_call(name, kiln::vulkan::pretended_call(name, found));
}
