#include "gpu.hpp"

#include <kiln/clock.hpp>

#include <algorithm>
#include <bit>

#include "features.hpp"

namespace kiln::vulkan {

Result<std::shared_ptr<Gpu>> Gpu::open(std::shared_ptr<const VulkanApi> api, const PhysicalFacts& facts) {
  auto gpu = std::make_shared<Gpu>();
  gpu->api_ = std::move(api);
  if (Status status = gpu->create(facts); !status.ok()) return status;
  return gpu;
}

Status Gpu::create(const PhysicalFacts& facts) {
  facts_ = facts;
  const InstanceFunctions& vk = api_->vk();
  FeatureChain chain(*api_, facts_);
  if (chain.features.core12.timelineSemaphore != VK_TRUE) {
    return unavailable(facts.info.name + " has no timeline semaphores (Vulkan 1.2 or VK_KHR_timeline_semaphore)");
  }
  if (chain.features.base.features.robustBufferAccess != VK_TRUE) {
    return unavailable(facts.info.name + " has no robust buffer access");
  }
  if (facts.subgroup != 0) {
    const bool controls = chain.features.subgroup.subgroupSizeControl == VK_TRUE && facts.least_subgroup != 0;
    if (!controls || facts.subgroup < facts.least_subgroup || facts.subgroup > facts.most_subgroup ||
        !std::has_single_bit(facts.subgroup)) {
      return unavailable("[plugin.vulkan] subgroup_size = " + std::to_string(facts.subgroup) + ": " + facts.info.name +
                         (controls ? " supports powers of two from " + std::to_string(facts.least_subgroup) + " to " +
                                         std::to_string(facts.most_subgroup)
                                   : " does not support this setting"));
    }
  }
  capabilities_ = chain.capabilities();
  uses_ = chain.uses();
  creation_feedback_ = chain.enable(VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME, VK_API_VERSION_1_3);
  scalar_blocks_ = chain.features.core12.scalarBlockLayout == VK_TRUE;
  cache_control_ = chain.features.cache_control.pipelineCreationCacheControl == VK_TRUE;
  if (facts.host_clock) chain.enable(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME, 0);
  if (facts.info.shares_memory) {
    chain.enable(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, 0);
    chain.enable(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME, 0);
  }
  if (facts.shares_fences) chain.enable(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME, 0);
  const std::uint32_t version = facts.properties.apiVersion;
  spirv_version_ = version >= VK_API_VERSION_1_3 ? 0x00010600 : version >= VK_API_VERSION_1_2 ? 0x00010500 : 0x00010300;

  const float priority = 1.0F;
  auto queue = structure<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = facts.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto info = structure<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &chain.features.base;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(chain.extensions.size());
  info.ppEnabledExtensionNames = chain.extensions.data();
  if (const VkResult made = vk.CreateDevice(facts.physical, &info, nullptr, &device_); made != VK_SUCCESS) {
    device_ = VK_NULL_HANDLE;
    return unavailable("vkCreateDevice: " + result_name(made));
  }
  if (Status status = find_functions(*api_, device_, vk_); !status.ok()) return status;
  vk_.GetDeviceQueue(device_, facts.queue_family, 0, &queue_);
  vk.GetPhysicalDeviceMemoryProperties(facts.physical, &memory_);
  // Of a card of its own a part of the memory may be mapped too: that part is slow to read.
  const bool discrete = facts.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  unified_ = !discrete && memory_type(~0U, unified_memory_flags).has_value();
  writable_ = discrete && maps_most_memory();
  return {};
}

// Without a resizable BAR the host reaches a small window of the memory only, which drivers need themselves.
bool Gpu::maps_most_memory() const noexcept {
  const auto type = memory_type(~0U, writable_memory_flags);
  if (!type) return false;
  VkDeviceSize most = 0;
  for (std::uint32_t i = 0; i < memory_.memoryHeapCount; ++i) {
    const bool local = (memory_.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
    if (local) most = std::max(most, memory_.memoryHeaps[i].size);
  }
  return memory_.memoryHeaps[memory_.memoryTypes[*type].heapIndex].size >= most / 2;
}

Gpu::~Gpu() {
  if (device_ == VK_NULL_HANDLE || vk_.DestroyDevice == nullptr) return;
  if (vk_.DeviceWaitIdle != nullptr) vk_.DeviceWaitIdle(device_);
  vk_.DestroyDevice(device_, nullptr);
}

std::optional<std::uint32_t> Gpu::memory_type(std::uint32_t bits, VkMemoryPropertyFlags wanted) const noexcept {
  for (std::uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
    if ((bits >> i & 1U) != 0 && (memory_.memoryTypes[i].propertyFlags & wanted) == wanted) return i;
  }
  return std::nullopt;
}

Status Gpu::alive() const {
  if (!lost_.load(std::memory_order_relaxed)) return {};
  return device_lost(id() + ": the Vulkan device was lost. Open the device again");
}

Status Gpu::check(VkResult result, std::string_view doing) {
  if (result == VK_ERROR_DEVICE_LOST) lost_.store(true, std::memory_order_relaxed);
  return status_of(result, doing).within(id());
}

std::uint64_t Gpu::nanoseconds(std::uint64_t ticks) const noexcept {
  return static_cast<std::uint64_t>(static_cast<double>(ticks) *
                                    static_cast<double>(facts_.properties.limits.timestampPeriod));
}

std::uint64_t Gpu::host_time(std::uint64_t stamp) {
  if (!facts_.host_clock || vk_.GetCalibratedTimestampsEXT == nullptr) return 0;
  const VkCalibratedTimestampInfoEXT clocks[] = {
      {VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, nullptr, VK_TIME_DOMAIN_DEVICE_EXT},
      {VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, nullptr, VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT}};
  std::uint64_t now[2] = {0, 0}, deviation = 0;
  if (vk_.GetCalibratedTimestampsEXT(device_, 2, clocks, now, &deviation) != VK_SUCCESS) return 0;
  const std::uint64_t mask = facts_.timestamp_bits >= 64 ? ~0ULL : (1ULL << facts_.timestamp_bits) - 1;
  const std::uint64_t ago = nanoseconds((now[0] - stamp) & mask);
  return ago < now[1] ? now[1] - ago : 0;
}

}  // namespace kiln::vulkan
