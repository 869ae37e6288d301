// A Vulkan loader for tests: the machine's own, but for what these variables say where they are set. The plugin opens
// it by [plugin.vulkan] vulkan_library.
//   FAULTY_VULKAN_PIPELINES   what the creation of a pipeline does: "crash" kills the process, "oom" finds no memory
//   FAULTY_VULKAN_WORKGROUPS  the most workgroups of a dispatch
#include <dlfcn.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

namespace {

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
  const char* const fault = std::getenv("FAULTY_VULKAN_PIPELINES");
  const auto is = [fault](const char* name) { return fault != nullptr && std::strcmp(fault, name) == 0; };
  if (is("crash")) std::raise(SIGSEGV);
  if (is("oom")) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return real_create(device, cache, count, infos, allocator, pipelines);
}

PFN_vkGetPhysicalDeviceProperties real_properties = nullptr;

VKAPI_ATTR void VKAPI_CALL read_properties(VkPhysicalDevice device, VkPhysicalDeviceProperties* properties) {
  real_properties(device, properties);
  const char* const most = std::getenv("FAULTY_VULKAN_WORKGROUPS");
  if (most != nullptr) properties->limits.maxComputeWorkGroupCount[0] = static_cast<uint32_t>(std::atoi(most));
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = real_device_functions(device, name);
  if (std::strcmp(name, "vkCreateComputePipelines") != 0) return found;
  real_create = reinterpret_cast<PFN_vkCreateComputePipelines>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(create_pipelines);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance,
                                                                                           const char* name) {
  const PFN_vkGetInstanceProcAddr get = real_loader();
  if (get == nullptr) return nullptr;
  const PFN_vkVoidFunction found = get(instance, name);
  if (found != nullptr && std::strcmp(name, "vkGetPhysicalDeviceProperties") == 0) {
    real_properties = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(read_properties);
  }
  if (found == nullptr || std::strcmp(name, "vkGetDeviceProcAddr") != 0) return found;
  real_device_functions = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(device_function);
}
