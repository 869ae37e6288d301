// The features of a device that Kiln enables, and what they let programs do.
//
// FeatureChain: the structures that a device knows, those of its extensions or of its version, filled with what it
// offers; it is opened with them.
//
// Thread-safety: none. Ownership: the structures point to each other, so a chain is not copied.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "vulkan_api.hpp"

namespace kiln::vulkan {

struct PhysicalFacts;

struct Features {
  VkPhysicalDeviceFeatures2 base = structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  VkPhysicalDevice16BitStorageFeatures storage16 =
      structure<VkPhysicalDevice16BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  VkPhysicalDeviceVariablePointersFeatures pointers =
      structure<VkPhysicalDeviceVariablePointersFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VARIABLE_POINTERS_FEATURES);
  // What Kiln uses of it. Before Vulkan 1.2 the next structures are in the chain instead, and it has their values.
  VkPhysicalDeviceVulkan12Features core12 =
      structure<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
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
  VkPhysicalDeviceScalarBlockLayoutFeatures scalar = structure<VkPhysicalDeviceScalarBlockLayoutFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES);
  VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures group_types =
      structure<VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES);
  VkPhysicalDeviceDescriptorIndexingFeatures indexing = structure<VkPhysicalDeviceDescriptorIndexingFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_FEATURES);
  // Of Vulkan 1.3 or extensions.
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup = structure<VkPhysicalDeviceSubgroupSizeControlFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
  VkPhysicalDevicePipelineCreationCacheControlFeatures cache_control =
      structure<VkPhysicalDevicePipelineCreationCacheControlFeatures>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES);
  VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures zero_init =
      structure<VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES);
  VkPhysicalDeviceMaintenance4Features maintenance4 =
      structure<VkPhysicalDeviceMaintenance4Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES);
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot_product =
      structure<VkPhysicalDeviceShaderIntegerDotProductFeatures>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
  VkPhysicalDeviceShaderClockFeaturesKHR clock =
      structure<VkPhysicalDeviceShaderClockFeaturesKHR>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CLOCK_FEATURES_KHR);
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT float_atomics = structure<VkPhysicalDeviceShaderAtomicFloatFeaturesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT);
  VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT more_float_atomics =
      structure<VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_2_FEATURES_EXT);
  // No features, but properties of the same kind; all are zero where the device tells none.
  VkPhysicalDeviceFloatControlsProperties float_controls =
      structure<VkPhysicalDeviceFloatControlsProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES);
  VkPhysicalDeviceSubgroupProperties groups =
      structure<VkPhysicalDeviceSubgroupProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
};

class FeatureChain {
 public:
  // Asks the device. REQUIRES: `facts` outlives it.
  FeatureChain(const VulkanApi& api, const PhysicalFacts& facts);
  FeatureChain(const FeatureChain&) = delete;
  FeatureChain& operator=(const FeatureChain&) = delete;

  // Enables the extension, unless the version has it already. Whether the device has it at all.
  bool enable(const char* extension, std::uint32_t core_version);

  // Those of SPIR-V that Kiln enables where a device has them, and whether this one has. Enables extensions.
  std::map<std::uint32_t, bool> capabilities();
  // Those of programs that the features allow (codec/module_uses.hpp).
  std::uint64_t uses() const;

  Features features;
  std::vector<const char*> extensions;

 private:
  const PhysicalFacts& facts_;
};

}  // namespace kiln::vulkan
