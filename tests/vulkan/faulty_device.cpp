// A device that answers as a test says: a card of its own memory, other queues, other limits.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "vulkan/faulty_calls.hpp"

namespace kiln::vulkan {
namespace {

// What the plugin's own calls reach.
struct Reals {
  PFN_vkEnumerateInstanceLayerProperties EnumerateInstanceLayerProperties;
  PFN_vkEnumeratePhysicalDevices EnumeratePhysicalDevices;
  PFN_vkGetPhysicalDeviceProperties GetPhysicalDeviceProperties;
  PFN_vkGetPhysicalDeviceProperties2 GetPhysicalDeviceProperties2;
  PFN_vkGetPhysicalDeviceFeatures2 GetPhysicalDeviceFeatures2;
  PFN_vkEnumerateDeviceExtensionProperties EnumerateDeviceExtensionProperties;
  PFN_vkGetPhysicalDeviceQueueFamilyProperties GetPhysicalDeviceQueueFamilyProperties;
  PFN_vkGetPhysicalDeviceMemoryProperties GetPhysicalDeviceMemoryProperties;
  PFN_vkGetPhysicalDeviceExternalBufferProperties GetPhysicalDeviceExternalBufferProperties;
  PFN_vkGetPhysicalDeviceExternalSemaphoreProperties GetPhysicalDeviceExternalSemaphoreProperties;
  PFN_vkCreateDevice CreateDevice;
  PFN_vkGetDeviceQueue GetDeviceQueue;
  PFN_vkQueueSubmit QueueSubmit;
  PFN_vkCreateSemaphore CreateSemaphore;
  PFN_vkCreateCommandPool CreateCommandPool;
  PFN_vkGetBufferMemoryRequirements GetBufferMemoryRequirements;
  PFN_vkGetImageMemoryRequirements GetImageMemoryRequirements;
  PFN_vkCreateBuffer CreateBuffer;
  PFN_vkAllocateMemory AllocateMemory;
  PFN_vkMapMemory MapMemory;
  PFN_vkGetMemoryFdKHR GetMemoryFdKHR;
  PFN_vkGetQueryPoolResults GetQueryPoolResults;
  PFN_vkGetCalibratedTimestampsEXT GetCalibratedTimestampsEXT;
};
Reals real{};
std::set<VkDeviceMemory> unmappable;
VkQueue last_queue = VK_NULL_HANDLE;
VkDeviceSize last_exported = 0;  // bytes; the device's descriptors end some bytes behind

constexpr auto dma_buf = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
constexpr auto own_kind = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;

// The structure of this type in a chain; null: there is none.
template <class Structure>
Structure* find_in(const void* chain, VkStructureType type) {
  for (auto* at = static_cast<const VkBaseInStructure*>(chain); at != nullptr; at = at->pNext) {
    if (at->sType == type) return reinterpret_cast<Structure*>(const_cast<VkBaseInStructure*>(at));
  }
  return nullptr;
}

// An answer of several elements, as Vulkan gives it.
template <class Element>
VkResult answer(const std::vector<Element>& all, std::uint32_t* count, Element* into) {
  if (into == nullptr) {
    *count = static_cast<std::uint32_t>(all.size());
    return VK_SUCCESS;
  }
  const bool cut = *count < all.size();
  *count = std::min(*count, static_cast<std::uint32_t>(all.size()));
  std::copy_n(all.begin(), *count, into);
  return cut ? VK_INCOMPLETE : VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL EnumerateInstanceLayerProperties(std::uint32_t* count, VkLayerProperties* into) {
  if (faulty_state().no_layers) return answer(std::vector<VkLayerProperties>(), count, into);
  return real.EnumerateInstanceLayerProperties(count, into);
}

VKAPI_ATTR VkResult VKAPI_CALL EnumeratePhysicalDevices(VkInstance instance, std::uint32_t* count,
                                                        VkPhysicalDevice* devices) {
  if (faulty_state().copies == 1) return real.EnumeratePhysicalDevices(instance, count, devices);
  std::uint32_t one = 1;
  VkPhysicalDevice first = VK_NULL_HANDLE;
  real.EnumeratePhysicalDevices(instance, &one, &first);
  return answer(std::vector<VkPhysicalDevice>(faulty_state().copies, first), count, devices);
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceProperties(VkPhysicalDevice device, VkPhysicalDeviceProperties* into) {
  real.GetPhysicalDeviceProperties(device, into);
  if (faulty_state().properties) faulty_state().properties(*into);
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceProperties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2* into) {
  real.GetPhysicalDeviceProperties2(device, into);
  if (!faulty_state().more_properties) return;
  for (auto* at = static_cast<VkBaseOutStructure*>(into->pNext); at != nullptr; at = at->pNext) {
    faulty_state().more_properties(*at);
  }
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceFeatures2(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* into) {
  real.GetPhysicalDeviceFeatures2(device, into);
  if (faulty_state().features) faulty_state().features(*into);
}

VKAPI_ATTR VkResult VKAPI_CALL EnumerateDeviceExtensionProperties(VkPhysicalDevice device, const char* layer,
                                                                  std::uint32_t* count, VkExtensionProperties* into) {
  if (!faulty_state().extensions) return real.EnumerateDeviceExtensionProperties(device, layer, count, into);
  std::uint32_t own_count = 0;
  real.EnumerateDeviceExtensionProperties(device, layer, &own_count, nullptr);
  std::vector<VkExtensionProperties> own(own_count);
  real.EnumerateDeviceExtensionProperties(device, layer, &own_count, own.data());
  std::vector<std::string> names;
  for (const auto& each : own) names.emplace_back(each.extensionName);
  faulty_state().extensions(names);
  std::vector<VkExtensionProperties> all(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) std::strcpy(all[i].extensionName, names[i].c_str());
  return answer(all, count, into);
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice device, std::uint32_t* count,
                                                                  VkQueueFamilyProperties* into) {
  if (faulty_state().families.empty()) return real.GetPhysicalDeviceQueueFamilyProperties(device, count, into);
  answer(faulty_state().families, count, into);
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceMemoryProperties(VkPhysicalDevice device,
                                                             VkPhysicalDeviceMemoryProperties* into) {
  real.GetPhysicalDeviceMemoryProperties(device, into);
  if (faulty_state().memory) *into = *faulty_state().memory;
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceExternalBufferProperties(VkPhysicalDevice device,
                                                                     const VkPhysicalDeviceExternalBufferInfo* asked,
                                                                     VkExternalBufferProperties* into) {
  VkPhysicalDeviceExternalBufferInfo own = *asked;
  if (faulty_state().dma_bufs && own.handleType == dma_buf) own.handleType = own_kind;
  real.GetPhysicalDeviceExternalBufferProperties(device, &own, into);
  if (faulty_state().more_properties) faulty_state().more_properties(*reinterpret_cast<VkBaseOutStructure*>(into));
}

VKAPI_ATTR VkResult VKAPI_CALL CreateDevice(VkPhysicalDevice device, const VkDeviceCreateInfo* info,
                                            const VkAllocationCallbacks* allocator, VkDevice* made) {
  VkDeviceCreateInfo own = *info;
  std::vector<VkDeviceQueueCreateInfo> queues(info->pQueueCreateInfos,
                                              info->pQueueCreateInfos + info->queueCreateInfoCount);
  faulty_state().opened_family = queues[0].queueFamilyIndex;
  if (!faulty_state().families.empty()) queues[0].queueFamilyIndex = 0;
  own.pQueueCreateInfos = queues.data();
  std::vector<const char*> extensions;
  for (std::uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
    const std::string name = info->ppEnabledExtensionNames[i];
    if (faulty_state().dma_bufs && name == VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME) continue;
    if (faulty_state().sync_files && name == VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME) continue;
    extensions.push_back(info->ppEnabledExtensionNames[i]);
  }
  own.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  own.ppEnabledExtensionNames = extensions.data();
  return real.CreateDevice(device, &own, allocator, made);
}

VKAPI_ATTR void VKAPI_CALL GetDeviceQueue(VkDevice device, std::uint32_t family, std::uint32_t index, VkQueue* queue) {
  real.GetDeviceQueue(device, faulty_state().families.empty() ? family : 0, index, queue);
  last_queue = *queue;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateCommandPool(VkDevice device, const VkCommandPoolCreateInfo* info,
                                                 const VkAllocationCallbacks* allocator, VkCommandPool* pool) {
  VkCommandPoolCreateInfo own = *info;
  if (!faulty_state().families.empty()) {
    if (own.queueFamilyIndex != faulty_state().opened_family) return VK_ERROR_UNKNOWN;
    own.queueFamilyIndex = 0;
  }
  return real.CreateCommandPool(device, &own, allocator, pool);
}

void spread(VkMemoryRequirements& needs) {
  if (faulty_state().memory) needs.memoryTypeBits = (1U << faulty_state().memory->memoryTypeCount) - 1;
}

VKAPI_ATTR void VKAPI_CALL GetBufferMemoryRequirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements* into) {
  real.GetBufferMemoryRequirements(device, buffer, into);
  spread(*into);
}

VKAPI_ATTR void VKAPI_CALL GetImageMemoryRequirements(VkDevice device, VkImage image, VkMemoryRequirements* into) {
  real.GetImageMemoryRequirements(device, image, into);
  spread(*into);
}

VKAPI_ATTR VkResult VKAPI_CALL CreateBuffer(VkDevice device, const VkBufferCreateInfo* info,
                                            const VkAllocationCallbacks* allocator, VkBuffer* buffer) {
  auto* external =
      find_in<VkExternalMemoryBufferCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  if (external != nullptr && faulty_state().dma_bufs) external->handleTypes = own_kind;
  VkBufferCreateInfo own = *info;
  if (faulty_state().misused && own.size == 128) own.flags |= VkBufferCreateFlags{1} << 30;
  return real.CreateBuffer(device, &own, allocator, buffer);
}

VKAPI_ATTR VkResult VKAPI_CALL AllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info,
                                              const VkAllocationCallbacks* allocator, VkDeviceMemory* made) {
  VkMemoryAllocateInfo own = *info;
  if (faulty_state().memory) own.memoryTypeIndex = 0;
  if (faulty_state().dma_bufs) {
    auto* exported = find_in<VkExportMemoryAllocateInfo>(info->pNext, VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO);
    auto* imported = find_in<VkImportMemoryFdInfoKHR>(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
    if (exported != nullptr) {
      exported->handleTypes = own_kind;
      last_exported = info->allocationSize;
    }
    if (imported != nullptr) {
      imported->handleType = own_kind;
      faulty_state().imported_bytes = info->allocationSize;
      own.allocationSize = last_exported;
    }
  }
  const VkResult result = real.AllocateMemory(device, &own, allocator, made);
  if (result != VK_SUCCESS) return result;
  ++faulty_state().allocations[info->memoryTypeIndex];
  unmappable.erase(*made);
  if (!faulty_state().memory) return result;
  const auto& type = faulty_state().memory->memoryTypes[info->memoryTypeIndex];
  if ((type.propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0) unmappable.insert(*made);
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL MapMemory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset,
                                         VkDeviceSize bytes, VkMemoryMapFlags flags, void** mapped) {
  if (unmappable.contains(memory)) return VK_ERROR_MEMORY_MAP_FAILED;
  return real.MapMemory(device, memory, offset, bytes, flags, mapped);
}

VKAPI_ATTR VkResult VKAPI_CALL GetMemoryFdKHR(VkDevice device, const VkMemoryGetFdInfoKHR* info, int* fd) {
  VkMemoryGetFdInfoKHR own = *info;
  if (faulty_state().dma_bufs && own.handleType == dma_buf) own.handleType = own_kind;
  return real.GetMemoryFdKHR(device, &own, fd);
}

// The device knows regular files only.
VKAPI_ATTR VkResult VKAPI_CALL GetMemoryFdPropertiesKHR(VkDevice, VkExternalMemoryHandleTypeFlagBits kind, int fd,
                                                        VkMemoryFdPropertiesKHR* into) {
  struct stat at {};
  if (kind != dma_buf || fstat(fd, &at) != 0 || !S_ISREG(at.st_mode)) return VK_ERROR_INVALID_EXTERNAL_HANDLE;
  into->memoryTypeBits = 1;
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceExternalSemaphoreProperties(
    VkPhysicalDevice device, const VkPhysicalDeviceExternalSemaphoreInfo* asked, VkExternalSemaphoreProperties* into) {
  real.GetPhysicalDeviceExternalSemaphoreProperties(device, asked, into);
  if (faulty_state().sync_files) into->externalSemaphoreFeatures = faulty_state().semaphore_features;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateSemaphore(VkDevice device, const VkSemaphoreCreateInfo* info,
                                               const VkAllocationCallbacks* allocator, VkSemaphore* made) {
  const auto* shared =
      find_in<VkExportSemaphoreCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO);
  if (shared == nullptr) return real.CreateSemaphore(device, info, allocator, made);
  if (shared->handleTypes != VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT) return VK_ERROR_UNKNOWN;
  VkSemaphoreCreateInfo own = *info;
  own.pNext = nullptr;
  ++faulty_state().shared_semaphores;
  return real.CreateSemaphore(device, &own, allocator, made);
}

// The file has the semaphore's signal: it is not signalled any more.
VKAPI_ATTR VkResult VKAPI_CALL GetSemaphoreFdKHR(VkDevice, const VkSemaphoreGetFdInfoKHR* info, int* fd) {
  if (info->handleType != VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT) return VK_ERROR_UNKNOWN;
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.waitSemaphoreCount = 1;
  submit.pWaitSemaphores = &info->semaphore;
  submit.pWaitDstStageMask = &stage;
  *fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return real.QueueSubmit(last_queue, 1, &submit, VK_NULL_HANDLE);
}

VKAPI_ATTR VkResult VKAPI_CALL GetQueryPoolResults(VkDevice device, VkQueryPool pool, std::uint32_t first,
                                                   std::uint32_t count, std::size_t bytes, void* into,
                                                   VkDeviceSize stride, VkQueryResultFlags flags) {
  const VkResult result = real.GetQueryPoolResults(device, pool, first, count, bytes, into, stride, flags);
  if (result == VK_SUCCESS && faulty_state().stamps) {
    std::memcpy(into, faulty_state().stamps->data(), std::min(bytes, sizeof *faulty_state().stamps));
  }
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL GetCalibratedTimestampsEXT(VkDevice device, std::uint32_t count,
                                                          const VkCalibratedTimestampInfoEXT* infos,
                                                          std::uint64_t* stamps, std::uint64_t* deviation) {
  const VkResult result = real.GetCalibratedTimestampsEXT(device, count, infos, stamps, deviation);
  for (std::uint32_t i = 0; i < count && faulty_state().clocks; ++i) {
    stamps[i] = (*faulty_state().clocks)[infos[i].timeDomain == VK_TIME_DOMAIN_DEVICE_EXT ? 0 : 1];
  }
  return result;
}

}  // namespace

PFN_vkVoidFunction pretended_call(const char* name, PFN_vkVoidFunction found) {
  if (std::strcmp(name, "vkGetMemoryFdPropertiesKHR") == 0 && faulty_state().dma_bufs) {
    return reinterpret_cast<PFN_vkVoidFunction>(&GetMemoryFdPropertiesKHR);
  }
  if (std::strcmp(name, "vkGetSemaphoreFdKHR") == 0 && faulty_state().sync_files) {
    return reinterpret_cast<PFN_vkVoidFunction>(&GetSemaphoreFdKHR);
  }
  if (found == nullptr) return nullptr;
  if (std::strcmp(name, "vkQueueSubmit") == 0) real.QueueSubmit = reinterpret_cast<PFN_vkQueueSubmit>(found);
#define KILN_REPLACE(function)                                 \
  if (std::strcmp(name, "vk" #function) == 0) {                \
    real.function = reinterpret_cast<PFN_vk##function>(found); \
    return reinterpret_cast<PFN_vkVoidFunction>(&function);    \
  }
  KILN_REPLACE(EnumerateInstanceLayerProperties)
  KILN_REPLACE(EnumeratePhysicalDevices)
  KILN_REPLACE(GetPhysicalDeviceProperties)
  KILN_REPLACE(GetPhysicalDeviceProperties2)
  KILN_REPLACE(GetPhysicalDeviceFeatures2)
  KILN_REPLACE(EnumerateDeviceExtensionProperties)
  KILN_REPLACE(GetPhysicalDeviceQueueFamilyProperties)
  KILN_REPLACE(GetPhysicalDeviceMemoryProperties)
  KILN_REPLACE(GetPhysicalDeviceExternalBufferProperties)
  KILN_REPLACE(GetPhysicalDeviceExternalSemaphoreProperties)
  KILN_REPLACE(CreateDevice)
  KILN_REPLACE(CreateSemaphore)
  KILN_REPLACE(GetDeviceQueue)
  KILN_REPLACE(CreateCommandPool)
  KILN_REPLACE(GetBufferMemoryRequirements)
  KILN_REPLACE(GetImageMemoryRequirements)
  KILN_REPLACE(CreateBuffer)
  KILN_REPLACE(AllocateMemory)
  KILN_REPLACE(MapMemory)
  KILN_REPLACE(GetMemoryFdKHR)
  KILN_REPLACE(GetQueryPoolResults)
  KILN_REPLACE(GetCalibratedTimestampsEXT)
#undef KILN_REPLACE
  return found;
}

}  // namespace kiln::vulkan
