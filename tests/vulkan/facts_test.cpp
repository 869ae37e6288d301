// What the plugin tells of a device, from what the driver answers.
#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "vulkan/kernel_under_test.hpp"
#include "vulkan/pretended_card.hpp"

namespace kiln::vulkan {
namespace {

std::string field(const std::vector<std::pair<std::string, std::string>>& identity, const std::string& name) {
  const auto found = std::ranges::find(identity, name, &std::pair<std::string, std::string>::first);
  return found == identity.end() ? "none" : found->second;
}

DeviceInfo first_listed(PluginSettings settings = {}) {
  support::FaultyVulkan vulkan({}, std::move(settings));
  return vulkan.plugin().driver().enumerate().at(0);
}

template <class Structure>
Structure* as(VkBaseOutStructure& structure, VkStructureType type) {
  return structure.sType == type ? reinterpret_cast<Structure*>(&structure) : nullptr;
}

}  // namespace

TEST_CASE("vulkan facts: a device is of the kind that the driver tells, and cards come first", "[vulkan][facts]") {
  if (!on_software()) return;
  const struct {
    VkPhysicalDeviceType type;
    DeviceKind kind;
    const char* resource;
  } types[] = {{VK_PHYSICAL_DEVICE_TYPE_CPU, DeviceKind::software, "host-cores"},
               {VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, DeviceKind::gpu, ""},
               {VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, DeviceKind::gpu, ""},
               {VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU, DeviceKind::gpu, ""},
               {VK_PHYSICAL_DEVICE_TYPE_OTHER, DeviceKind::gpu, ""}};
  const Pretence pretence;
  for (const auto& each : types) {
    INFO("type " << each.type);
    pretence->properties = [&](VkPhysicalDeviceProperties& properties) { properties.deviceType = each.type; };
    const DeviceInfo info = first_listed();
    CHECK(info.kind == each.kind);
    CHECK(info.shared_resource == each.resource);
    CHECK((info.roof_gflops > 0) == (each.kind == DeviceKind::software));
    CHECK(info.usable);
    CHECK(info.serializes);
    CHECK(info.builds_apart);
    CHECK(info.shares_buffers);
    CHECK(info.indirect_grids);
    CHECK(info.dialects == std::vector<Dialect>{Dialect::glsl, Dialect::code_object});
  }
  pretence->copies = 4;
  int listed = 0;
  pretence->properties = [&](VkPhysicalDeviceProperties& properties) {
    const bool software = listed == 0 || listed == 2;
    properties.deviceType = software ? VK_PHYSICAL_DEVICE_TYPE_CPU : VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    std::strcpy(properties.deviceName, std::to_string(listed++).c_str());
  };
  support::FaultyVulkan vulkan({});
  std::string order;
  for (const DeviceInfo& info : vulkan.plugin().driver().enumerate()) order += info.id + " " + info.name + "; ";
  CHECK(order == "vulkan:0 1; vulkan:1 3; vulkan:2 0; vulkan:3 2; ");
  CHECK(vulkan.plugin().driver().open("vulkan:4").error().message ==
        "device 'vulkan:4': expected one of vulkan:0, vulkan:1, vulkan:2, vulkan:3");
}

TEST_CASE("vulkan facts: a driver without devices is told", "[vulkan][facts]") {
  if (!on_software()) return;
  const Pretence pretence;
  pretence->copies = 0;
  CHECK(first_listed().why_not == std::string(KILN_FAULTY_LOADER) + " lists no device");
}

TEST_CASE("vulkan facts: Vulkan 1.0 is refused, of a loader and of a device", "[vulkan][facts]") {
  if (!on_software()) return;
  {
    support::FaultyVulkan vulkan({{"FAULTY_VULKAN_VERSION", "1.0"}});
    CHECK(vulkan.plugin().driver().enumerate().at(0).why_not ==
          std::string(KILN_FAULTY_LOADER) + ": Vulkan 1.0, expected 1.1 or newer");
  }
  const Pretence pretence;
  pretence->properties = [](VkPhysicalDeviceProperties& properties) {
    properties.apiVersion = VK_MAKE_API_VERSION(0, 1, 0, 999);
    std::strcpy(properties.deviceName, "Old");
  };
  const DeviceInfo info = first_listed();
  CHECK_FALSE(info.usable);
  CHECK(info.why_not == "Old: Vulkan 1.0, expected 1.1 or newer");
}

TEST_CASE("vulkan facts: a queue of compute alone is preferred", "[vulkan][facts]") {
  if (!on_software()) return;
  constexpr VkQueueFlags compute = VK_QUEUE_COMPUTE_BIT, graphics = VK_QUEUE_GRAPHICS_BIT,
                         transfer = VK_QUEUE_TRANSFER_BIT;
  const struct {
    std::vector<VkQueueFlags> families;
    std::optional<std::uint32_t> chosen;
  } cases[] = {
      {{compute | graphics}, 0},
      {{compute}, 0},
      {{compute | graphics, transfer, compute, compute}, 2},
      {{transfer, graphics, compute | graphics, compute | graphics}, 2},
      {{compute, compute | graphics}, 0},
      {{transfer, graphics}, std::nullopt},
  };
  for (const auto& each : cases) {
    const Pretence pretence;
    become_card(pretence);
    for (const VkQueueFlags flags : each.families) pretence->families.push_back(family_of(flags));
    support::FaultyVulkan vulkan({});
    const DeviceInfo info = vulkan.plugin().driver().enumerate().at(0);
    CHECK(info.usable == each.chosen.has_value());
    if (!each.chosen) CHECK(info.why_not == "Test Card (of a test) has no compute queue");
    const auto device = vulkan.plugin().driver().open("vulkan:0");
    CHECK(device.has_value() == each.chosen.has_value());
    CHECK(pretence->opened_family == each.chosen);
    if (!device) continue;
    // The commands of copies and of kernels are of that family.
    const auto buffer = buffer_on(**device, 4, BufferUsage::storage);
    write_words(*buffer, {17});
    CHECK(read_words(*buffer) == std::vector<std::uint32_t>{17});
    check(Kernel("", "i + 1u").on(**device), {1, 2, 3});
  }
}

TEST_CASE("vulkan facts: the limits are the driver's", "[vulkan][facts]") {
  if (!on_software()) return;
  const Pretence pretence;
  constexpr std::uint32_t huge = std::numeric_limits<std::uint32_t>::max();
  VkDeviceSize most_allocated = 5000;
  pretence->properties = [](VkPhysicalDeviceProperties& properties) {
    properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    VkPhysicalDeviceLimits& limits = properties.limits;
    const std::uint32_t counts[] = {huge, 2002, 2003}, sizes[] = {101, 128, 7};
    std::copy_n(counts, 3, limits.maxComputeWorkGroupCount);
    std::copy_n(sizes, 3, limits.maxComputeWorkGroupSize);
    limits.maxComputeWorkGroupInvocations = 120;
    limits.maxPerStageDescriptorStorageBuffers = 31;
    limits.maxPerStageDescriptorSampledImages = 32;
    limits.maxPerStageDescriptorSamplers = 33;
    limits.maxDescriptorSetSampledImages = 35;
    limits.maxDescriptorSetSamplers = 34;
    limits.maxPerStageDescriptorStorageImages = 36;
    limits.maxDescriptorSetStorageImages = 37;
    limits.maxTexelBufferElements = 38;
    limits.maxComputeSharedMemorySize = 39;
    limits.maxStorageBufferRange = 4000;
    limits.maxUniformBufferRange = 403;
    limits.minTexelOffset = -8;
    limits.maxTexelOffset = 7;
    limits.sampledImageColorSampleCounts = 1 | 2 | 8;
    limits.storageImageSampleCounts = 1 | 4;
  };
  pretence->more_properties = [&](VkBaseOutStructure& structure) {
    if (auto* subgroup =
            as<VkPhysicalDeviceSubgroupProperties>(structure, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES)) {
      subgroup->subgroupSize = 48;
    }
    if (auto* maintenance = as<VkPhysicalDeviceMaintenance3Properties>(
            structure, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES)) {
      maintenance->maxMemoryAllocationSize = most_allocated;
    }
  };
  const DeviceInfo info = first_listed();
  CHECK(info.max_grid == std::array<std::uint32_t, 3>{huge, 2002, 2003});
  CHECK(info.max_workgroup == std::array<std::uint32_t, 3>{101, 120, 7});
  CHECK(info.max_workgroup_lanes == 120);
  CHECK(info.max_bindings == 31);
  CHECK(info.max_texel_bindings == 32);
  CHECK(info.max_image_bindings == 36);
  CHECK(info.max_view_texels == 38);
  CHECK(info.max_shared_bytes == 39);
  CHECK(info.max_buffer_bytes == 4000);
  CHECK(info.simd_lanes == 48);
  // Counts, sizes, components of uniforms, textures, images, counters, offsets, and the most samples of each.
  CHECK(field(info.device_identity, "glsl_limits") ==
        "2147483647,2002,2003,101,128,7,100,32,34,36,37,31,4000,-8,7,8,4");
  most_allocated = 3999;
  CHECK(first_listed().max_buffer_bytes == 3999);
}

TEST_CASE("vulkan facts: a software device has the lanes of its name", "[vulkan][facts]") {
  if (!on_software()) return;
  const struct {
    const char* name;
    std::uint32_t lanes;
  } names[] = {{"llvmpipe (LLVM 15.0.6, 256 bits)", 8},
               {"llvmpipe (LLVM 15.0.6, 128 bits)", 4},
               {"other (512 bits)", 16},
               {"64 bits)", 2},
               {"llvmpipe", 0},
               {"llvmpipe (256 bits", 0}};
  const Pretence pretence;
  for (const auto& each : names) {
    INFO(each.name);
    pretence->properties = [&](VkPhysicalDeviceProperties& properties) {
      properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_CPU;
      std::strcpy(properties.deviceName, each.name);
    };
    CHECK(first_listed().simd_lanes == each.lanes);
  }
}

TEST_CASE("vulkan facts: the identity names device and driver, and of software the processor", "[vulkan][facts]") {
  if (!on_software()) return;
  const Pretence pretence;
  const auto identify = [&](VkPhysicalDeviceType type, const char* driver_name, const char* driver_info) {
    pretence->properties = [type](VkPhysicalDeviceProperties& properties) {
      properties.deviceType = type;
      properties.vendorID = 4098;
      properties.deviceID = 29823;
      properties.driverVersion = 0x0040a00b;
      std::strcpy(properties.deviceName, "Test Card (of a test)");
    };
    pretence->more_properties = [=](VkBaseOutStructure& structure) {
      auto* driver =
          as<VkPhysicalDeviceDriverProperties>(structure, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES);
      if (driver == nullptr) return;
      std::strcpy(driver->driverName, driver_name);
      std::strcpy(driver->driverInfo, driver_info);
    };
    return first_listed();
  };
  const DeviceInfo card = identify(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, "radv", "Mesa 23.1.2 (git-1234)");
  CHECK(card.driver == "Mesa 23.1.2 radv");
  CHECK(field(card.device_identity, "vendor") == "4098");
  CHECK(field(card.device_identity, "device") == "29823");
  CHECK(field(card.driver_identity, "vulkan") == "Mesa 23.1.2 radv");
  CHECK(field(card.driver_identity, "version") == "0040a00b");
  CHECK(field(card.driver_identity, "info") == "Mesa 23.1.2 (git-1234)");
  CHECK(field(card.driver_identity, "renderer") == "Test Card");
  CHECK(field(card.driver_identity, "instructions") == "none");
  CHECK(field(card.driver_identity, "processors") == "none");
  const DeviceInfo software = identify(VK_PHYSICAL_DEVICE_TYPE_CPU, "maker's", "530.1");
  CHECK(software.driver == "maker's 530.1");
  CHECK(field(software.device_identity, "device") == "software");
  CHECK(field(software.driver_identity, "renderer") == "Test Card (of a test)");
  CHECK(field(software.driver_identity, "instructions") != "none");
  CHECK(field(software.driver_identity, "processors") != "none");
  CHECK(identify(VK_PHYSICAL_DEVICE_TYPE_CPU, "maker's", "").driver == "maker's");

  // A device of 1.1 tells its driver only by an extension.
  const auto of_first = [&](bool told) {
    pretence->properties = [](VkPhysicalDeviceProperties& properties) {
      properties.apiVersion = VK_API_VERSION_1_1;
      properties.driverVersion = 0x12;
    };
    pretence->extensions = [told](std::vector<std::string>& names) {
      std::erase(names, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME);
      if (told) names.emplace_back(VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME);
    };
    return first_listed().driver;
  };
  CHECK(of_first(true) == "maker's");
  CHECK(of_first(false) == "Vulkan driver 00000012");
}

TEST_CASE("vulkan facts: settings that change a driver's code are in the identity", "[vulkan][facts]") {
  if (!on_software()) return;
  // Of drivers that are not used here: none of these has an effect.
  support::FaultyVulkan vulkan({{"RADV_PERFTEST", "kiln"}, {"ACO_DEBUG", "kiln2"}, {"INTEL_DEBUG", ""}});
  const auto identity = vulkan.plugin().driver().enumerate().at(0).driver_identity;
  CHECK(field(identity, "RADV_PERFTEST") == "kiln");
  CHECK(field(identity, "ACO_DEBUG") == "kiln2");
  CHECK(field(identity, "INTEL_DEBUG") == "none");
  CHECK(field(identity, "RADV_DEBUG") == "none");
}

TEST_CASE("vulkan facts: a card is known by the place on its bus", "[vulkan][facts]") {
  if (!on_software()) return;
  for (const bool has_node : {false, true}) {
    const Pretence pretence;
    pretence->extensions = [&](std::vector<std::string>& names) {
      names.emplace_back(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
      if (has_node) names.emplace_back(VK_EXT_PHYSICAL_DEVICE_DRM_EXTENSION_NAME);
    };
    pretence->more_properties = [](VkBaseOutStructure& structure) {
      if (auto* pci = as<VkPhysicalDevicePCIBusInfoPropertiesEXT>(
              structure, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT)) {
        pci->pciDomain = 1, pci->pciBus = 10, pci->pciDevice = 3, pci->pciFunction = 2;
      }
      if (auto* drm =
              as<VkPhysicalDeviceDrmPropertiesEXT>(structure, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRM_PROPERTIES_EXT)) {
        drm->hasRender = VK_TRUE;
        drm->renderMajor = 4000, drm->renderMinor = 5;  // no such node
      }
    };
    CHECK(first_listed().physical_id == "pci:0001:0a:03.2");
    pretence->extensions = nullptr;
    CHECK(first_listed().physical_id.empty());
  }
}

TEST_CASE("vulkan facts: memory is shared where buffers can be exported and imported as dma-bufs", "[vulkan][facts]") {
  if (!on_software()) return;
  constexpr VkExternalMemoryFeatureFlags out = VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT,
                                         in = VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT,
                                         alone = VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
  const struct {
    bool has_fd, has_dma_buf;
    VkExternalMemoryFeatureFlags features;
    bool shares;
  } cases[] = {{true, true, out | in, true},
               {true, true, out, false},
               {true, true, in, false},
               {true, true, 0, false},
               {true, true, out | in | alone, false},
               {false, true, out | in, false},
               {true, false, out | in, false}};
  for (const auto& each : cases) {
    const Pretence pretence;
    pretence->dma_bufs = true;
    pretence->extensions = [&](std::vector<std::string>& names) {
      std::erase(names, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
      std::erase(names, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
      if (each.has_fd) names.emplace_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
      if (each.has_dma_buf) names.emplace_back(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
    };
    pretence->more_properties = [&](VkBaseOutStructure& structure) {
      auto* buffer = as<VkExternalBufferProperties>(structure, VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES);
      if (buffer != nullptr) buffer->externalMemoryProperties.externalMemoryFeatures = each.features;
    };
    CHECK(first_listed().shares_memory == each.shares);
  }
}

TEST_CASE("vulkan facts: a device without what every program needs is refused", "[vulkan][facts]") {
  if (!on_software()) return;
  const Pretence pretence;
  become_card(pretence);
  const auto refused = [](PluginSettings settings = {}) {
    support::FaultyVulkan vulkan({}, std::move(settings));
    const auto opened = vulkan.plugin().driver().open("vulkan:0");
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == StatusCode::unavailable);
    return opened.error().message;
  };
  pretence->features = [](VkPhysicalDeviceFeatures2& features) { features.features.robustBufferAccess = VK_FALSE; };
  CHECK(refused() == "vulkan:0: Test Card (of a test) has no robust buffer access");
  pretence->features = [](VkPhysicalDeviceFeatures2& features) {
    for (auto* at = static_cast<VkBaseOutStructure*>(features.pNext); at != nullptr; at = at->pNext) {
      if (auto* core =
              as<VkPhysicalDeviceVulkan12Features>(*at, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)) {
        core->timelineSemaphore = VK_FALSE;
      }
    }
  };
  CHECK(refused() ==
        "vulkan:0: Test Card (of a test) has no timeline semaphores (Vulkan 1.2 or VK_KHR_timeline_semaphore)");
  pretence->features = nullptr;
  pretence.fail("vkCreateDevice", 0, VK_ERROR_FEATURE_NOT_PRESENT);
  CHECK(refused() == "vulkan:0: vkCreateDevice: VK_ERROR_FEATURE_NOT_PRESENT");

  std::uint32_t least = 8, most = 32, groups = 3;
  VkShaderStageFlags stages = VK_SHADER_STAGE_COMPUTE_BIT;
  const auto card = pretence->more_properties;
  pretence->more_properties = [&, card](VkBaseOutStructure& structure) {
    card(structure);
    auto* sizes = as<VkPhysicalDeviceSubgroupSizeControlProperties>(
        structure, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
    if (sizes == nullptr) return;
    sizes->minSubgroupSize = least;
    sizes->maxSubgroupSize = most;
    sizes->maxComputeWorkgroupSubgroups = groups;
    sizes->requiredSubgroupSizeStages = stages;
  };
  const auto of = [](std::int64_t size) { return PluginSettings{{"subgroup_size", size}}; };
  const std::string range = ": Test Card (of a test) supports powers of two from 8 to 32";
  for (const std::int64_t size : {4, 7, 24, 33, 64}) {
    CHECK(refused(of(size)) == "vulkan:0: [plugin.vulkan] subgroup_size = " + std::to_string(size) + range);
  }
  for (const std::int64_t size : {8, 16, 32}) {
    INFO("subgroups of " << size);
    const DeviceInfo info = first_listed(of(size));
    CHECK(info.simd_lanes == size);
    CHECK(info.max_workgroup_lanes == 3 * size);
    CHECK(info.max_workgroup ==
          std::array<std::uint32_t, 3>({static_cast<std::uint32_t>(3 * size), static_cast<std::uint32_t>(3 * size),
                                        static_cast<std::uint32_t>(3 * size)}));
    CHECK(field(info.driver_identity, "subgroup_size") == std::to_string(size));
  }
  CHECK(field(first_listed().driver_identity, "subgroup_size") == "none");
  stages = VK_SHADER_STAGE_FRAGMENT_BIT;
  CHECK(refused(of(16)) ==
        "vulkan:0: [plugin.vulkan] subgroup_size = 16: Test Card (of a test) does not support this setting");
}

}  // namespace kiln::vulkan
