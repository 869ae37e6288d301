#include "gpu.hpp"

#include <kiln/clock.hpp>

#include <glslang/SPIRV/spirv.hpp>

#include <algorithm>
#include <vector>

namespace kiln::vulkan {
namespace {

// The features that Kiln looks at, as one chain.
struct Features {
  VkPhysicalDeviceFeatures2 base = structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  VkPhysicalDevice16BitStorageFeatures storage16 =
      structure<VkPhysicalDevice16BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  VkPhysicalDeviceVariablePointersFeatures pointers =
      structure<VkPhysicalDeviceVariablePointersFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VARIABLE_POINTERS_FEATURES);
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline = structure<VkPhysicalDeviceTimelineSemaphoreFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
  VkPhysicalDevice8BitStorageFeatures storage8 =
      structure<VkPhysicalDevice8BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES);
  VkPhysicalDeviceShaderFloat16Int8Features small = structure<VkPhysicalDeviceShaderFloat16Int8Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES);
  VkPhysicalDeviceShaderAtomicInt64Features atomics = structure<VkPhysicalDeviceShaderAtomicInt64Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_INT64_FEATURES);
  VkPhysicalDeviceVulkanMemoryModelFeatures model = structure<VkPhysicalDeviceVulkanMemoryModelFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES);
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup = structure<VkPhysicalDeviceSubgroupSizeControlFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
  VkPhysicalDeviceScalarBlockLayoutFeatures scalar = structure<VkPhysicalDeviceScalarBlockLayoutFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES);
  VkPhysicalDevicePipelineCreationCacheControlFeatures cache_control =
      structure<VkPhysicalDevicePipelineCreationCacheControlFeatures>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES);
};

// The chain of the structures that a device knows: those of its extensions or of its version.
class FeatureChain {
 public:
  explicit FeatureChain(const PhysicalFacts& facts) : facts_(facts) {
    last_ = &features.base.pNext;
    link(features.storage16, VK_API_VERSION_1_1, "");
    link(features.pointers, VK_API_VERSION_1_1, "");
    link(features.timeline, VK_API_VERSION_1_2, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
    link(features.storage8, VK_API_VERSION_1_2, VK_KHR_8BIT_STORAGE_EXTENSION_NAME);
    link(features.small, VK_API_VERSION_1_2, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
    link(features.atomics, VK_API_VERSION_1_2, VK_KHR_SHADER_ATOMIC_INT64_EXTENSION_NAME);
    link(features.model, VK_API_VERSION_1_2, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME);
    link(features.subgroup, VK_API_VERSION_1_3, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    link(features.scalar, VK_API_VERSION_1_2, VK_EXT_SCALAR_BLOCK_LAYOUT_EXTENSION_NAME);
    link(features.cache_control, VK_API_VERSION_1_3, VK_EXT_PIPELINE_CREATION_CACHE_CONTROL_EXTENSION_NAME);
  }
  FeatureChain(const FeatureChain&) = delete;
  FeatureChain& operator=(const FeatureChain&) = delete;

  // Enables the extension, unless the version has it already. Whether the device has it at all.
  bool enable(const char* extension, std::uint32_t core_version) {
    if (core_version != 0 && facts_.properties.apiVersion >= core_version) return true;
    if (!facts_.extensions.contains(extension)) return false;
    extensions.push_back(extension);
    return true;
  }

  Features features;
  std::vector<const char*> extensions;

 private:
  template <class Structure>
  void link(Structure& structure, std::uint32_t core_version, const char* extension) {
    if (!enable(extension, core_version)) return;
    *last_ = &structure;
    last_ = &structure.pNext;
  }

  const PhysicalFacts& facts_;
  void** last_ = nullptr;
};

std::set<std::uint32_t> capabilities_of(const Features& f, VkPhysicalDevice physical, const VulkanApi& api) {
  std::set<std::uint32_t> offered{spv::CapabilityMatrix,        spv::CapabilityShader,
                                  spv::CapabilitySampled1D,     spv::CapabilityImage1D,
                                  spv::CapabilitySampledBuffer, spv::CapabilityImageBuffer,
                                  spv::CapabilityImageQuery,    spv::CapabilityDerivativeControl};
  const auto add = [&offered](VkBool32 feature, std::initializer_list<std::uint32_t> capabilities) {
    if (feature == VK_TRUE) offered.insert(capabilities);
  };
  const VkPhysicalDeviceFeatures& base = f.base.features;
  add(base.shaderFloat64, {spv::CapabilityFloat64});
  add(base.shaderInt64, {spv::CapabilityInt64});
  add(base.shaderInt16, {spv::CapabilityInt16});
  add(f.small.shaderInt8, {spv::CapabilityInt8});
  add(f.small.shaderFloat16, {spv::CapabilityFloat16});
  add(f.storage16.storageBuffer16BitAccess, {spv::CapabilityStorageBuffer16BitAccess});
  add(f.storage16.uniformAndStorageBuffer16BitAccess, {spv::CapabilityUniformAndStorageBuffer16BitAccess});
  add(f.storage16.storagePushConstant16, {spv::CapabilityStoragePushConstant16});
  add(f.storage8.storageBuffer8BitAccess, {spv::CapabilityStorageBuffer8BitAccess});
  add(f.storage8.uniformAndStorageBuffer8BitAccess, {spv::CapabilityUniformAndStorageBuffer8BitAccess});
  add(f.storage8.storagePushConstant8, {spv::CapabilityStoragePushConstant8});
  add(f.atomics.shaderBufferInt64Atomics | f.atomics.shaderSharedInt64Atomics, {spv::CapabilityInt64Atomics});
  add(f.pointers.variablePointers, {spv::CapabilityVariablePointers});
  add(f.pointers.variablePointersStorageBuffer, {spv::CapabilityVariablePointersStorageBuffer});
  add(f.model.vulkanMemoryModel, {spv::CapabilityVulkanMemoryModel});
  add(f.model.vulkanMemoryModelDeviceScope, {spv::CapabilityVulkanMemoryModelDeviceScope});
  add(base.shaderImageGatherExtended, {spv::CapabilityImageGatherExtended});
  add(base.shaderStorageImageExtendedFormats, {spv::CapabilityStorageImageExtendedFormats});
  add(base.shaderStorageImageReadWithoutFormat, {spv::CapabilityStorageImageReadWithoutFormat});
  add(base.shaderStorageImageWriteWithoutFormat, {spv::CapabilityStorageImageWriteWithoutFormat});
  add(base.imageCubeArray, {spv::CapabilitySampledCubeArray, spv::CapabilityImageCubeArray});
  add(base.shaderUniformBufferArrayDynamicIndexing, {spv::CapabilityUniformBufferArrayDynamicIndexing});
  add(base.shaderStorageBufferArrayDynamicIndexing, {spv::CapabilityStorageBufferArrayDynamicIndexing});
  add(base.shaderSampledImageArrayDynamicIndexing, {spv::CapabilitySampledImageArrayDynamicIndexing});
  add(base.shaderStorageImageArrayDynamicIndexing, {spv::CapabilityStorageImageArrayDynamicIndexing});
  auto subgroup = structure<VkPhysicalDeviceSubgroupProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &subgroup, {}};
  api.vk().GetPhysicalDeviceProperties2(physical, &properties);
  if ((subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) == 0) return offered;
  const auto has = [&](VkSubgroupFeatureFlags bit) {
    return (subgroup.supportedOperations & bit) != 0 ? VK_TRUE : VK_FALSE;
  };
  add(has(VK_SUBGROUP_FEATURE_BASIC_BIT), {spv::CapabilityGroupNonUniform});
  add(has(VK_SUBGROUP_FEATURE_VOTE_BIT), {spv::CapabilityGroupNonUniformVote});
  add(has(VK_SUBGROUP_FEATURE_ARITHMETIC_BIT), {spv::CapabilityGroupNonUniformArithmetic});
  add(has(VK_SUBGROUP_FEATURE_BALLOT_BIT), {spv::CapabilityGroupNonUniformBallot});
  add(has(VK_SUBGROUP_FEATURE_SHUFFLE_BIT), {spv::CapabilityGroupNonUniformShuffle});
  add(has(VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT), {spv::CapabilityGroupNonUniformShuffleRelative});
  add(has(VK_SUBGROUP_FEATURE_CLUSTERED_BIT), {spv::CapabilityGroupNonUniformClustered});
  add(has(VK_SUBGROUP_FEATURE_QUAD_BIT), {spv::CapabilityGroupNonUniformQuad});
  return offered;
}

}  // namespace

Result<std::shared_ptr<Gpu>> Gpu::open(std::shared_ptr<const VulkanApi> api, const PhysicalFacts& facts) {
  auto gpu = std::make_shared<Gpu>();
  gpu->api_ = std::move(api);
  if (Status status = gpu->create(facts); !status.ok()) return status;
  return gpu;
}

Status Gpu::create(const PhysicalFacts& facts) {
  facts_ = facts;
  const InstanceFunctions& vk = api_->vk();
  FeatureChain chain(facts_);
  vk.GetPhysicalDeviceFeatures2(facts.physical, &chain.features.base);
  if (chain.features.timeline.timelineSemaphore != VK_TRUE) {
    return unavailable(facts.info.name + " has no timeline semaphores (Vulkan 1.2 or VK_KHR_timeline_semaphore)");
  }
  VkPhysicalDeviceFeatures& base = chain.features.base.features;
  if (base.robustBufferAccess != VK_TRUE) return unavailable(facts.info.name + " has no robust buffer access");
  if (facts.subgroup != 0) {
    const bool controls = chain.features.subgroup.subgroupSizeControl == VK_TRUE && facts.least_subgroup != 0;
    if (!controls || facts.subgroup < facts.least_subgroup || facts.subgroup > facts.most_subgroup) {
      return unavailable(
          "[plugin.vulkan] subgroup_size = " + std::to_string(facts.subgroup) + ": " + facts.info.name +
          (controls ? " takes " + std::to_string(facts.least_subgroup) + " to " + std::to_string(facts.most_subgroup)
                    : " has no control of it"));
    }
  }
  capabilities_ = capabilities_of(chain.features, facts.physical, *api_);
  creation_feedback_ = chain.enable(VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME, VK_API_VERSION_1_3);
  shared_int64_atomics_ = chain.features.atomics.shaderSharedInt64Atomics == VK_TRUE;
  scalar_blocks_ = chain.features.scalar.scalarBlockLayout == VK_TRUE;
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
  vk_.DeviceWaitIdle(device_);
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
  return device_lost(id() + ": the Vulkan device was lost; open the device again");
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
