#include "features.hpp"

#include <glslang/SPIRV/spirv.hpp>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "codec/module_uses.hpp"
#include "gpu.hpp"

namespace kiln::vulkan {
namespace {

using Core12 = VkPhysicalDeviceVulkan12Features;

// Keeps these members alone: of the structure of an extension, or of Vulkan 1.2's where a device has that (`offered`).
template <class Old>
void keep(const Core12* offered, Core12& kept, Old& old,
          std::initializer_list<std::pair<VkBool32 Old::*, VkBool32 Core12::*>> members) {
  auto left = structure<Old>(old.sType);
  left.pNext = old.pNext;
  for (const auto& [before, now] : members) {
    kept.*now = left.*before = offered != nullptr ? offered->*now : old.*before;
  }
  old = left;
}

void keep_of_core12(Features& f, bool has_core12) {
  const Core12* const offered = has_core12 ? &f.core12 : nullptr;
  auto kept = structure<Core12>(f.core12.sType);
  kept.pNext = f.core12.pNext;
  kept.subgroupBroadcastDynamicId = f.core12.subgroupBroadcastDynamicId;
  using Timeline = VkPhysicalDeviceTimelineSemaphoreFeatures;
  keep(offered, kept, f.timeline, {{&Timeline::timelineSemaphore, &Core12::timelineSemaphore}});
  using Storage8 = VkPhysicalDevice8BitStorageFeatures;
  keep(offered, kept, f.storage8,
       {{&Storage8::storageBuffer8BitAccess, &Core12::storageBuffer8BitAccess},
        {&Storage8::uniformAndStorageBuffer8BitAccess, &Core12::uniformAndStorageBuffer8BitAccess},
        {&Storage8::storagePushConstant8, &Core12::storagePushConstant8}});
  using Small = VkPhysicalDeviceShaderFloat16Int8Features;
  keep(offered, kept, f.small,
       {{&Small::shaderFloat16, &Core12::shaderFloat16}, {&Small::shaderInt8, &Core12::shaderInt8}});
  using Atomics = VkPhysicalDeviceShaderAtomicInt64Features;
  keep(offered, kept, f.atomics,
       {{&Atomics::shaderBufferInt64Atomics, &Core12::shaderBufferInt64Atomics},
        {&Atomics::shaderSharedInt64Atomics, &Core12::shaderSharedInt64Atomics}});
  using Model = VkPhysicalDeviceVulkanMemoryModelFeatures;
  keep(offered, kept, f.model,
       {{&Model::vulkanMemoryModel, &Core12::vulkanMemoryModel},
        {&Model::vulkanMemoryModelDeviceScope, &Core12::vulkanMemoryModelDeviceScope},
        {&Model::vulkanMemoryModelAvailabilityVisibilityChains,
         &Core12::vulkanMemoryModelAvailabilityVisibilityChains}});
  using Scalar = VkPhysicalDeviceScalarBlockLayoutFeatures;
  keep(offered, kept, f.scalar, {{&Scalar::scalarBlockLayout, &Core12::scalarBlockLayout}});
  using GroupTypes = VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures;
  keep(offered, kept, f.group_types,
       {{&GroupTypes::shaderSubgroupExtendedTypes, &Core12::shaderSubgroupExtendedTypes}});
  using Indexing = VkPhysicalDeviceDescriptorIndexingFeatures;
  keep(
      offered, kept, f.indexing,
      {{&Indexing::shaderUniformTexelBufferArrayDynamicIndexing, &Core12::shaderUniformTexelBufferArrayDynamicIndexing},
       {&Indexing::shaderStorageTexelBufferArrayDynamicIndexing, &Core12::shaderStorageTexelBufferArrayDynamicIndexing},
       {&Indexing::shaderUniformBufferArrayNonUniformIndexing, &Core12::shaderUniformBufferArrayNonUniformIndexing},
       {&Indexing::shaderSampledImageArrayNonUniformIndexing, &Core12::shaderSampledImageArrayNonUniformIndexing},
       {&Indexing::shaderStorageBufferArrayNonUniformIndexing, &Core12::shaderStorageBufferArrayNonUniformIndexing},
       {&Indexing::shaderStorageImageArrayNonUniformIndexing, &Core12::shaderStorageImageArrayNonUniformIndexing},
       {&Indexing::shaderUniformTexelBufferArrayNonUniformIndexing,
        &Core12::shaderUniformTexelBufferArrayNonUniformIndexing},
       {&Indexing::shaderStorageTexelBufferArrayNonUniformIndexing,
        &Core12::shaderStorageTexelBufferArrayNonUniformIndexing}});
  f.core12 = kept;
}

}  // namespace

FeatureChain::FeatureChain(const VulkanApi& api, const PhysicalFacts& facts) : facts_(facts) {
  Features& f = features;
  void** last = &f.base.pNext;
  const auto link = [&](auto& one, std::uint32_t core_version, const char* extension) {
    if (!enable(extension, core_version)) return;
    *last = &one;
    last = &one.pNext;
  };
  link(f.storage16, VK_API_VERSION_1_1, "");
  link(f.pointers, VK_API_VERSION_1_1, "");
  const bool has_core12 = facts.properties.apiVersion >= VK_API_VERSION_1_2;
  if (has_core12) {
    link(f.core12, VK_API_VERSION_1_2, "");
  } else {
    link(f.timeline, 0, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
    link(f.storage8, 0, VK_KHR_8BIT_STORAGE_EXTENSION_NAME);
    link(f.small, 0, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
    link(f.atomics, 0, VK_KHR_SHADER_ATOMIC_INT64_EXTENSION_NAME);
    link(f.model, 0, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME);
    link(f.scalar, 0, VK_EXT_SCALAR_BLOCK_LAYOUT_EXTENSION_NAME);
    link(f.group_types, 0, VK_KHR_SHADER_SUBGROUP_EXTENDED_TYPES_EXTENSION_NAME);
    link(f.indexing, 0, VK_EXT_DESCRIPTOR_INDEXING_EXTENSION_NAME);
  }
  link(f.subgroup, VK_API_VERSION_1_3, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  link(f.cache_control, VK_API_VERSION_1_3, VK_EXT_PIPELINE_CREATION_CACHE_CONTROL_EXTENSION_NAME);
  link(f.zero_init, VK_API_VERSION_1_3, VK_KHR_ZERO_INITIALIZE_WORKGROUP_MEMORY_EXTENSION_NAME);
  link(f.maintenance4, VK_API_VERSION_1_3, VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
  link(f.dot_product, VK_API_VERSION_1_3, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  link(f.clock, 0, VK_KHR_SHADER_CLOCK_EXTENSION_NAME);
  link(f.float_atomics, 0, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME);
  link(f.more_float_atomics, 0, VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME);
  api.vk().GetPhysicalDeviceFeatures2(facts.physical, &f.base);
  keep_of_core12(f, has_core12);
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &f.groups, {}};
  if (enable(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME, VK_API_VERSION_1_2)) f.groups.pNext = &f.float_controls;
  api.vk().GetPhysicalDeviceProperties2(facts.physical, &properties);
}

bool FeatureChain::enable(const char* extension, std::uint32_t core_version) {
  if (core_version != 0 && facts_.properties.apiVersion >= core_version) return true;
  if (!facts_.extensions.contains(extension)) return false;
  if (std::ranges::find(extensions, std::string_view(extension)) == extensions.end()) extensions.push_back(extension);
  return true;
}

std::map<std::uint32_t, bool> FeatureChain::capabilities() {
  std::map<std::uint32_t, bool> offered;
  const auto add = [&offered](bool has, std::initializer_list<std::uint32_t> capabilities) {
    for (const std::uint32_t each : capabilities) offered[each] = has;
  };
  add(true, {spv::CapabilityMatrix, spv::CapabilityShader, spv::CapabilitySampled1D, spv::CapabilityImage1D,
             spv::CapabilitySampledBuffer, spv::CapabilityImageBuffer, spv::CapabilityImageQuery,
             spv::CapabilityDerivativeControl, spv::CapabilityInputAttachment});
  const VkPhysicalDeviceFeatures& base = features.base.features;
  const Core12& now = features.core12;
  add(base.shaderFloat64, {spv::CapabilityFloat64});
  add(base.shaderInt64, {spv::CapabilityInt64});
  add(base.shaderInt16, {spv::CapabilityInt16});
  add(now.shaderInt8, {spv::CapabilityInt8});
  add(now.shaderFloat16, {spv::CapabilityFloat16});
  add(features.storage16.storageBuffer16BitAccess, {spv::CapabilityStorageBuffer16BitAccess});
  add(features.storage16.uniformAndStorageBuffer16BitAccess, {spv::CapabilityUniformAndStorageBuffer16BitAccess});
  add(features.storage16.storagePushConstant16, {spv::CapabilityStoragePushConstant16});
  add(now.storageBuffer8BitAccess, {spv::CapabilityStorageBuffer8BitAccess});
  add(now.uniformAndStorageBuffer8BitAccess, {spv::CapabilityUniformAndStorageBuffer8BitAccess});
  add(now.storagePushConstant8, {spv::CapabilityStoragePushConstant8});
  add(now.shaderBufferInt64Atomics | now.shaderSharedInt64Atomics, {spv::CapabilityInt64Atomics});
  add(features.pointers.variablePointers, {spv::CapabilityVariablePointers});
  add(features.pointers.variablePointersStorageBuffer, {spv::CapabilityVariablePointersStorageBuffer});
  add(now.vulkanMemoryModel, {spv::CapabilityVulkanMemoryModel});
  add(now.vulkanMemoryModelDeviceScope, {spv::CapabilityVulkanMemoryModelDeviceScope});
  add(base.shaderImageGatherExtended, {spv::CapabilityImageGatherExtended});
  add(base.shaderStorageImageExtendedFormats, {spv::CapabilityStorageImageExtendedFormats});
  add(base.shaderStorageImageReadWithoutFormat, {spv::CapabilityStorageImageReadWithoutFormat});
  add(base.shaderStorageImageWriteWithoutFormat, {spv::CapabilityStorageImageWriteWithoutFormat});
  add(base.shaderStorageImageMultisample, {spv::CapabilityStorageImageMultisample});
  add(base.shaderResourceMinLod, {spv::CapabilityMinLod});
  add(base.imageCubeArray, {spv::CapabilitySampledCubeArray, spv::CapabilityImageCubeArray});
  add(base.shaderUniformBufferArrayDynamicIndexing, {spv::CapabilityUniformBufferArrayDynamicIndexing});
  add(base.shaderStorageBufferArrayDynamicIndexing, {spv::CapabilityStorageBufferArrayDynamicIndexing});
  add(base.shaderSampledImageArrayDynamicIndexing, {spv::CapabilitySampledImageArrayDynamicIndexing});
  add(base.shaderStorageImageArrayDynamicIndexing, {spv::CapabilityStorageImageArrayDynamicIndexing});
  // Of shaders of other kinds: a module may have entry points for them.
  add(base.geometryShader, {spv::CapabilityGeometry});
  add(base.tessellationShader, {spv::CapabilityTessellation});
  add(base.shaderClipDistance, {spv::CapabilityClipDistance});
  add(base.shaderCullDistance, {spv::CapabilityCullDistance});
  add(base.sampleRateShading, {spv::CapabilitySampleRateShading, spv::CapabilityInterpolationFunction});
  add(base.multiViewport, {spv::CapabilityMultiViewport});
  add(enable(VK_EXT_DESCRIPTOR_INDEXING_EXTENSION_NAME, VK_API_VERSION_1_2), {spv::CapabilityShaderNonUniform});
  add(now.shaderUniformTexelBufferArrayDynamicIndexing, {spv::CapabilityUniformTexelBufferArrayDynamicIndexing});
  add(now.shaderStorageTexelBufferArrayDynamicIndexing, {spv::CapabilityStorageTexelBufferArrayDynamicIndexing});
  add(now.shaderUniformBufferArrayNonUniformIndexing, {spv::CapabilityUniformBufferArrayNonUniformIndexing});
  add(now.shaderSampledImageArrayNonUniformIndexing, {spv::CapabilitySampledImageArrayNonUniformIndexing});
  add(now.shaderStorageBufferArrayNonUniformIndexing, {spv::CapabilityStorageBufferArrayNonUniformIndexing});
  add(now.shaderStorageImageArrayNonUniformIndexing, {spv::CapabilityStorageImageArrayNonUniformIndexing});
  add(now.shaderUniformTexelBufferArrayNonUniformIndexing, {spv::CapabilityUniformTexelBufferArrayNonUniformIndexing});
  add(now.shaderStorageTexelBufferArrayNonUniformIndexing, {spv::CapabilityStorageTexelBufferArrayNonUniformIndexing});
  add(features.dot_product.shaderIntegerDotProduct,
      {spv::CapabilityDotProduct, spv::CapabilityDotProductInputAll, spv::CapabilityDotProductInput4x8Bit,
       spv::CapabilityDotProductInput4x8BitPacked});
  add(features.clock.shaderSubgroupClock | features.clock.shaderDeviceClock, {spv::CapabilityShaderClockKHR});
  add(enable(VK_EXT_SHADER_SUBGROUP_BALLOT_EXTENSION_NAME, 0), {spv::CapabilitySubgroupBallotKHR});
  add(enable(VK_EXT_SHADER_SUBGROUP_VOTE_EXTENSION_NAME, 0), {spv::CapabilitySubgroupVoteKHR});
  // Float atomics and controls have one capability for several uses.
  const std::uint64_t allowed = uses();
  constexpr spv::Capability sums[] = {spv::CapabilityAtomicFloat16AddEXT, spv::CapabilityAtomicFloat32AddEXT,
                                      spv::CapabilityAtomicFloat64AddEXT};
  constexpr spv::Capability bounds[] = {spv::CapabilityAtomicFloat16MinMaxEXT, spv::CapabilityAtomicFloat32MinMaxEXT,
                                        spv::CapabilityAtomicFloat64MinMaxEXT};
  for (unsigned width = 0; width < 3; ++width) {
    const auto in_any_place = [&](unsigned kind) {
      return (allowed & (float_atomic(0, width, kind) | float_atomic(1, width, kind) | float_atomic(2, width, kind))) !=
             0;
    };
    add(in_any_place(1), {sums[width]});
    add(in_any_place(2), {bounds[width]});
  }
  for (unsigned mode = 0; mode < 5; ++mode) {  // the capabilities are in the order of the modes
    const std::uint64_t any_width = float_control(mode, 0) | float_control(mode, 1) | float_control(mode, 2);
    add((allowed & any_width) != 0, {spv::CapabilityDenormPreserve + mode});
  }
  const auto groups = [this](VkSubgroupFeatureFlags operations) {
    return (features.groups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
           (features.groups.supportedOperations & operations) != 0;
  };
  add(groups(VK_SUBGROUP_FEATURE_BASIC_BIT), {spv::CapabilityGroupNonUniform});
  add(groups(VK_SUBGROUP_FEATURE_VOTE_BIT), {spv::CapabilityGroupNonUniformVote});
  add(groups(VK_SUBGROUP_FEATURE_ARITHMETIC_BIT), {spv::CapabilityGroupNonUniformArithmetic});
  add(groups(VK_SUBGROUP_FEATURE_BALLOT_BIT), {spv::CapabilityGroupNonUniformBallot});
  add(groups(VK_SUBGROUP_FEATURE_SHUFFLE_BIT), {spv::CapabilityGroupNonUniformShuffle});
  add(groups(VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT), {spv::CapabilityGroupNonUniformShuffleRelative});
  add(groups(VK_SUBGROUP_FEATURE_CLUSTERED_BIT), {spv::CapabilityGroupNonUniformClustered});
  add(groups(VK_SUBGROUP_FEATURE_QUAD_BIT), {spv::CapabilityGroupNonUniformQuad});
  return offered;
}

std::uint64_t FeatureChain::uses() const {
  const Core12& now = features.core12;
  const auto& one = features.float_atomics;
  const auto& two = features.more_float_atomics;
  std::uint64_t allowed = 0;
  const auto allow = [&allowed](VkBool32 feature, std::uint64_t use) { allowed |= feature == VK_TRUE ? use : 0; };
  allow(features.maintenance4.maintenance4, bit_of(ModuleUse::local_size_id));
  allow(features.zero_init.shaderZeroInitializeWorkgroupMemory, bit_of(ModuleUse::shared_initializer));
  allow(now.shaderSubgroupExtendedTypes, bit_of(ModuleUse::group_types));
  allow(now.subgroupBroadcastDynamicId, bit_of(ModuleUse::dynamic_broadcast));
  allow(now.shaderBufferInt64Atomics, bit_of(ModuleUse::buffer_int64_atomics));
  allow(now.shaderSharedInt64Atomics, bit_of(ModuleUse::shared_int64_atomics));
  const VkBool32 atomics[3][3][3] = {
      {{two.shaderBufferFloat16Atomics, two.shaderBufferFloat16AtomicAdd, two.shaderBufferFloat16AtomicMinMax},
       {one.shaderBufferFloat32Atomics, one.shaderBufferFloat32AtomicAdd, two.shaderBufferFloat32AtomicMinMax},
       {one.shaderBufferFloat64Atomics, one.shaderBufferFloat64AtomicAdd, two.shaderBufferFloat64AtomicMinMax}},
      {{two.shaderSharedFloat16Atomics, two.shaderSharedFloat16AtomicAdd, two.shaderSharedFloat16AtomicMinMax},
       {one.shaderSharedFloat32Atomics, one.shaderSharedFloat32AtomicAdd, two.shaderSharedFloat32AtomicMinMax},
       {one.shaderSharedFloat64Atomics, one.shaderSharedFloat64AtomicAdd, two.shaderSharedFloat64AtomicMinMax}},
      {{}, {one.shaderImageFloat32Atomics, one.shaderImageFloat32AtomicAdd, two.shaderImageFloat32AtomicMinMax}, {}}};
  for (unsigned i = 0; i < 27; ++i) {
    allow(atomics[i / 9][i / 3 % 3][i % 3], float_atomic(i / 9, i / 3 % 3, i % 3));
  }
  allow(features.clock.shaderSubgroupClock, bit_of(ModuleUse::subgroup_clock));
  allow(features.clock.shaderDeviceClock, bit_of(ModuleUse::device_clock));
  const auto& c = features.float_controls;
  const VkBool32 controls[5][3] = {
      {c.shaderDenormPreserveFloat16, c.shaderDenormPreserveFloat32, c.shaderDenormPreserveFloat64},
      {c.shaderDenormFlushToZeroFloat16, c.shaderDenormFlushToZeroFloat32, c.shaderDenormFlushToZeroFloat64},
      {c.shaderSignedZeroInfNanPreserveFloat16, c.shaderSignedZeroInfNanPreserveFloat32,
       c.shaderSignedZeroInfNanPreserveFloat64},
      {c.shaderRoundingModeRTEFloat16, c.shaderRoundingModeRTEFloat32, c.shaderRoundingModeRTEFloat64},
      {c.shaderRoundingModeRTZFloat16, c.shaderRoundingModeRTZFloat32, c.shaderRoundingModeRTZFloat64}};
  for (unsigned i = 0; i < 15; ++i) allow(controls[i / 3][i % 3], float_control(i / 3, i % 3));
  const auto differ = [&](VkShaderFloatControlsIndependence widths, ModuleUse one_of_32, ModuleUse any) {
    if (widths != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE) allowed |= bit_of(one_of_32);
    if (widths == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL) allowed |= bit_of(any);
  };
  differ(c.denormBehaviorIndependence, ModuleUse::denorm_differs, ModuleUse::denorm_differs_more);
  differ(c.roundingModeIndependence, ModuleUse::rounding_differs, ModuleUse::rounding_differs_more);
  return allowed;
}

}  // namespace kiln::vulkan
