#include "gpu.hpp"

#include <dlfcn.h>
#include <drm.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>

#include <kiln/buffer.hpp>
#include <kiln/digest.hpp>
#include <kiln/elf_notes.hpp>
#include <kiln/host_processor.hpp>

namespace kiln::vulkan {
namespace {

namespace fs = std::filesystem;

// In the description of the simulator's DRM node.
constexpr const char* simulated_description = "kiln-simulated";

// Settings of Mesa's drivers that change their code but not their version.
constexpr const char* code_settings[] = {"GALLIVM_PERF",      "LP_NATIVE_VECTOR_WIDTH",
                                         "LP_FORCE_SSE2",     "LP_DEBUG",
                                         "GALLIVM_DEBUG",     "GALLIUM_OVERRIDE_CPU_CAPS",
                                         "GALLIUM_NOSSE",     "RADV_DEBUG",
                                         "RADV_PERFTEST",     "ACO_DEBUG",
                                         "RADV_FORCE_FAMILY", "AMD_DEBUG",
                                         "INTEL_DEBUG"};

// "/dev/dri/renderD128" of the device numbers; empty: there is no such node.
std::string node_of(std::int64_t major_number, std::int64_t minor_number) {
  std::error_code failed;
  for (const fs::directory_entry& each : fs::directory_iterator("/dev/dri", failed)) {
    struct stat at {};
    if (stat(each.path().c_str(), &at) != 0 || !S_ISCHR(at.st_mode)) continue;
    if (major(at.st_rdev) == static_cast<unsigned>(major_number) &&
        minor(at.st_rdev) == static_cast<unsigned>(minor_number)) {
      return each.path();
    }
  }
  return {};
}

std::string description_of(const std::string& node) {
  const UniqueFd fd(open(node.c_str(), O_RDWR | O_CLOEXEC));
  char text[256] = {};
  drm_version version{};
  version.desc = text;
  version.desc_len = sizeof text - 1;
  if (!fd || ioctl(fd.get(), DRM_IOCTL_VERSION, &version) != 0) return {};
  return text;
}

// As the other drivers name the card of a render node.
std::string physical_id_of(const std::string& node, std::int64_t major_number, std::int64_t minor_number) {
  const fs::path device =
      "/sys/dev/char/" + std::to_string(major_number) + ":" + std::to_string(minor_number) + "/device";
  std::error_code failed, no_bus;
  const fs::path place = fs::canonical(device, failed);
  const fs::path bus = fs::canonical(device / "subsystem", no_bus);
  if (!failed && !no_bus) return bus.filename().string() + ":" + place.filename().string();
  return "drm:" + node;
}

// "llvmpipe" out of "llvmpipe (LLVM 15.0.6, 256 bits)".
std::string device_words(const std::string& name) { return name.substr(0, name.find(" (")); }

// 8 out of "llvmpipe (LLVM 15.0.6, 256 bits)"; 0: the name has no width.
std::uint32_t lanes_of(const std::string& name) {
  const std::size_t bits = name.find(" bits)");
  if (bits == std::string::npos) return 0;
  const std::size_t before = name.find_last_not_of("0123456789", bits - 1);
  std::uint32_t width = 0;
  std::from_chars(name.data() + before + 1, name.data() + bits, width);
  return width / 32;
}

void choose_queue(const VulkanApi& api, PhysicalFacts& facts) {
  std::uint32_t count = 0;
  api.vk().GetPhysicalDeviceQueueFamilyProperties(facts.physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.vk().GetPhysicalDeviceQueueFamilyProperties(facts.physical, &count, families.data());
  std::optional<std::uint32_t> chosen;
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    const bool graphics = (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0;
    if (!chosen || !graphics) chosen = i;  // a queue of compute alone does not stand behind a desktop's frames
    if (!graphics) break;
  }
  if (!chosen) {
    facts.info.why_not = facts.info.name + " has no compute queue";
    return;
  }
  facts.queue_family = *chosen;
  facts.timestamp_bits = families[*chosen].timestampValidBits;
}

void add_limits(const VulkanApi& api, PhysicalFacts& facts) {
  DeviceInfo& info = facts.info;
  const VkPhysicalDeviceLimits& limits = facts.properties.limits;
  auto maintenance =
      structure<VkPhysicalDeviceMaintenance3Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
  VkPhysicalDeviceSubgroupProperties subgroup{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, &maintenance, 0, 0, 0, VK_FALSE};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &subgroup, {}};
  api.vk().GetPhysicalDeviceProperties2(facts.physical, &properties);
  std::copy_n(limits.maxComputeWorkGroupCount, 3, info.max_grid.begin());
  std::copy_n(limits.maxComputeWorkGroupSize, 3, info.max_workgroup.begin());
  info.max_workgroup_lanes = limits.maxComputeWorkGroupInvocations;
  for (std::uint32_t& axis : info.max_workgroup) axis = std::min(axis, info.max_workgroup_lanes);
  info.max_bindings = limits.maxPerStageDescriptorStorageBuffers;
  info.max_texel_bindings = limits.maxPerStageDescriptorSampledImages;
  info.max_image_bindings = limits.maxPerStageDescriptorStorageImages;
  info.max_view_texels = limits.maxTexelBufferElements;
  info.max_shared_bytes = limits.maxComputeSharedMemorySize;
  info.max_buffer_bytes = std::min<std::uint64_t>(limits.maxStorageBufferRange, maintenance.maxMemoryAllocationSize);
  info.simd_lanes = info.kind == DeviceKind::software ? lanes_of(info.name) : subgroup.subgroupSize;
  const bool controls = facts.properties.apiVersion >= VK_API_VERSION_1_3 ||
                        facts.extensions.contains(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  if (controls) {
    auto sizes = structure<VkPhysicalDeviceSubgroupSizeControlProperties>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
    properties.pNext = &sizes;
    api.vk().GetPhysicalDeviceProperties2(facts.physical, &properties);
    if ((sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0) {
      facts.least_subgroup = sizes.minSubgroupSize;
      facts.most_subgroup = sizes.maxSubgroupSize;
      facts.most_subgroups = sizes.maxComputeWorkgroupSubgroups;
    }
  }
  if (info.kind == DeviceKind::software) info.roof_gflops = host_roof_gflops();
}

GlslLimits glsl_limits_of(const VkPhysicalDeviceLimits& limits) {
  const auto as_int = [](std::uint32_t value) {
    return static_cast<std::int32_t>(std::min<std::uint32_t>(value, std::numeric_limits<std::int32_t>::max()));
  };
  GlslLimits glsl;
  std::ranges::transform(limits.maxComputeWorkGroupCount, glsl.workgroup_count.begin(), as_int);
  std::ranges::transform(limits.maxComputeWorkGroupSize, glsl.workgroup_size.begin(), as_int);
  glsl.uniform_components = as_int(limits.maxUniformBufferRange / sizeof(float));
  // A texture of GLSL has a sampler of its own.
  glsl.textures = as_int(std::min(limits.maxPerStageDescriptorSampledImages, limits.maxPerStageDescriptorSamplers));
  glsl.all_textures = as_int(std::min(limits.maxDescriptorSetSampledImages, limits.maxDescriptorSetSamplers));
  glsl.images = as_int(limits.maxPerStageDescriptorStorageImages);
  glsl.all_images = as_int(limits.maxDescriptorSetStorageImages);
  glsl.counter_blocks = as_int(limits.maxPerStageDescriptorStorageBuffers);
  glsl.counter_block_bytes = as_int(limits.maxStorageBufferRange);
  glsl.least_texel_offset = limits.minTexelOffset;
  glsl.most_texel_offset = as_int(limits.maxTexelOffset);
  glsl.samples = as_int(std::bit_floor(limits.sampledImageColorSampleCounts));
  glsl.image_samples = as_int(std::bit_floor(limits.storageImageSampleCounts));
  return glsl;
}

std::string text_of(const GlslLimits& limits) {
  std::string text;
  for (const std::int32_t value :
       std::bit_cast<std::array<std::int32_t, sizeof limits / sizeof(std::int32_t)>>(limits)) {
    text += (text.empty() ? "" : ",") + std::to_string(value);
  }
  return text;
}

bool has_host_clock(const VulkanApi& api, const PhysicalFacts& facts) {
  const auto list = api.vk().GetPhysicalDeviceCalibrateableTimeDomainsEXT;
  if (list == nullptr || !facts.extensions.contains(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME)) return false;
  std::uint32_t count = 0;
  list(facts.physical, &count, nullptr);
  std::vector<VkTimeDomainEXT> domains(count);
  list(facts.physical, &count, domains.data());
  const auto has = [&domains](VkTimeDomainEXT one) { return std::ranges::find(domains, one) != domains.end(); };
  return has(VK_TIME_DOMAIN_DEVICE_EXT) && has(VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT);
}

// Whether buffers can be exported and imported as dma-bufs.
bool shares_memory(const VulkanApi& api, const PhysicalFacts& facts) {
  if (!facts.extensions.contains(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME) ||
      !facts.extensions.contains(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME)) {
    return false;
  }
  auto buffer = structure<VkPhysicalDeviceExternalBufferInfo>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO);
  buffer.usage = buffer_usage;
  buffer.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
  auto properties = structure<VkExternalBufferProperties>(VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES);
  api.vk().GetPhysicalDeviceExternalBufferProperties(facts.physical, &buffer, &properties);
  constexpr VkExternalMemoryFeatureFlags both =
      VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
  const VkExternalMemoryFeatureFlags offered = properties.externalMemoryProperties.externalMemoryFeatures;
  return (offered & both) == both && (offered & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) == 0;
}

// Whether semaphores can be exported and imported as sync_files.
bool shares_fences(const VulkanApi& api, const PhysicalFacts& facts) {
  if (!facts.extensions.contains(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME)) return false;
  auto semaphore =
      structure<VkPhysicalDeviceExternalSemaphoreInfo>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO);
  semaphore.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT;
  auto properties = structure<VkExternalSemaphoreProperties>(VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES);
  api.vk().GetPhysicalDeviceExternalSemaphoreProperties(facts.physical, &semaphore, &properties);
  constexpr VkExternalSemaphoreFeatureFlags both =
      VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
  return (properties.externalSemaphoreFeatures & both) == both;
}

void find_hardware(const VulkanApi& api, PhysicalFacts& facts) {
  DeviceInfo& info = facts.info;
  if (facts.extensions.contains(VK_EXT_PHYSICAL_DEVICE_DRM_EXTENSION_NAME)) {
    auto drm = structure<VkPhysicalDeviceDrmPropertiesEXT>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRM_PROPERTIES_EXT);
    VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &drm, {}};
    api.vk().GetPhysicalDeviceProperties2(facts.physical, &properties);
    const bool render = drm.hasRender == VK_TRUE;
    const std::int64_t major_number = render ? drm.renderMajor : drm.primaryMajor;
    const std::int64_t minor_number = render ? drm.renderMinor : drm.primaryMinor;
    if (const std::string node = render || drm.hasPrimary == VK_TRUE ? node_of(major_number, minor_number) : "";
        !node.empty()) {
      info.physical_id = physical_id_of(node, major_number, minor_number);
      if (description_of(node).find(simulated_description) != std::string::npos) info.kind = DeviceKind::simulated;
    }
  }
  if (!info.physical_id.empty() || !facts.extensions.contains(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME)) return;
  auto pci =
      structure<VkPhysicalDevicePCIBusInfoPropertiesEXT>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT);
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &pci, {}};
  api.vk().GetPhysicalDeviceProperties2(facts.physical, &properties);
  char address[32];
  std::snprintf(address, sizeof address, "pci:%04x:%02x:%02x.%x", pci.pciDomain, pci.pciBus, pci.pciDevice,
                pci.pciFunction);
  info.physical_id = address;
}

// A library without a build id is known by its size and the time of its last change.
std::string build_of(const LoadedLibrary& library) {
  if (!library.build_id.empty()) return library.build_id;
  struct stat at {};
  if (stat(library.path.c_str(), &at) != 0) return library.path;
  return std::to_string(at.st_size) + "@" + std::to_string(at.st_mtim.tv_sec) + "." +
         std::to_string(at.st_mtim.tv_nsec);
}

bool is_vulkan_driver(const std::string& path) {
  void* const handle = path.starts_with('/') ? dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (handle == nullptr) return false;
  const bool driver = dlsym(handle, "vk_icdGetInstanceProcAddr") != nullptr;
  dlclose(handle);
  return driver;
}

// address: in the driver; null: all drivers of Vulkan.
std::string builds_of_drivers(const void* address) {
  const auto holding = address == nullptr ? std::nullopt : library_holding(address);
  std::vector<std::string> builds;
  if (holding && is_vulkan_driver(holding->path)) {
    builds.push_back(build_of(*holding));
  } else {
    for (const LoadedLibrary& library : loaded_libraries()) {
      if (is_vulkan_driver(library.path)) builds.push_back(build_of(library));
    }
  }
  std::ranges::sort(builds);
  std::string all;
  for (const std::string& build : builds) all += (all.empty() ? "" : ",") + build;
  return all;
}

}  // namespace

PhysicalFacts read_facts(const VulkanApi& api, VkPhysicalDevice physical) {
  PhysicalFacts facts;
  facts.physical = physical;
  const InstanceFunctions& vk = api.vk();
  vk.GetPhysicalDeviceProperties(physical, &facts.properties);
  // An instance allows no more of a device than its own version has.
  facts.properties.apiVersion = std::min({facts.properties.apiVersion, api.version(), VK_API_VERSION_1_3});
  DeviceInfo& info = facts.info;
  info.name = facts.properties.deviceName;
  info.dialects = {Dialect::glsl, Dialect::code_object};  // code_object: SPIR-V
  info.kind = facts.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ? DeviceKind::software : DeviceKind::gpu;
  if (facts.properties.apiVersion < VK_API_VERSION_1_1) {
    info.why_not = info.name + ": Vulkan 1.0, expected 1.1 or newer";
    return facts;
  }
  std::uint32_t count = 0;
  vk.EnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  vk.EnumerateDeviceExtensionProperties(physical, nullptr, &count, extensions.data());
  for (const VkExtensionProperties& each : extensions) facts.extensions.insert(each.extensionName);
  choose_queue(api, facts);
  find_hardware(api, facts);
  if (info.kind != DeviceKind::gpu) info.shared_resource = "host-cores";
  add_limits(api, facts);
  facts.glsl_limits = glsl_limits_of(facts.properties.limits);
  facts.host_clock = has_host_clock(api, facts);
  info.shares_memory = shares_memory(api, facts);
  info.shares_buffers = true;
  info.indirect_grids = true;
  facts.shares_fences = shares_fences(api, facts);

  char version[16];
  std::snprintf(version, sizeof version, "%08x", facts.properties.driverVersion);
  info.driver = "Vulkan driver " + std::string(version);
  std::string conformance;
  const bool tells = facts.properties.apiVersion >= VK_API_VERSION_1_2 ||
                     facts.extensions.contains(VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME);
  if (tells) {
    auto driver = structure<VkPhysicalDeviceDriverProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES);
    VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &driver, {}};
    vk.GetPhysicalDeviceProperties2(physical, &properties);
    // lavapipe flushes its rasterizer for each stamp and waits, which takes longer than a small dispatch.
    if (driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE) facts.timestamp_bits = 0;
    const std::string words = driver.driverInfo;
    info.driver = words.starts_with("Mesa") ? device_words(words) + " " + driver.driverName
                                            : std::string(driver.driverName) + (words.empty() ? "" : " ") + words;
    conformance = words;
  }
  const bool software = info.kind == DeviceKind::software;
  info.device_identity = {{"vendor", std::to_string(facts.properties.vendorID)},
                          {"device", software ? std::string("software") : std::to_string(facts.properties.deviceID)},
                          {"glsl_limits", text_of(facts.glsl_limits)}};
  info.driver_identity = {{"vulkan", info.driver},
                          {"version", version},
                          {"info", conformance},
                          {"renderer", software ? info.name : device_words(info.name)}};
  if (software) {
    // Code of Mesa's cache is for this processor, and its key contains both numbers of processors.
    info.driver_identity.emplace_back("instructions", host_instructions());
    info.driver_identity.emplace_back("processors",
                                      std::to_string(host_cores()) + " of " + std::to_string(host_processors()));
  }
  for (const char* setting : code_settings) {
    if (const char* value = std::getenv(setting); value != nullptr && *value != 0) {
      info.driver_identity.emplace_back(setting, value);
    }
  }
  info.serializes = true;
  info.builds_apart = true;
  info.usable = info.why_not.empty();
  return facts;
}

void add_driver_build(const Gpu& gpu, DeviceInfo& info) {
  // The address of a function of the driver itself: the loader does not stand between, a layer does.
  const auto address = reinterpret_cast<const void*>(gpu.vk().CmdDispatch);
  std::erase_if(info.driver_identity,
                [](const auto& field) { return field.first == "build"; });  // of an earlier open()
  info.driver_identity.emplace_back("build", builds_of_drivers(gpu.api().validates() ? nullptr : address));
}

}  // namespace kiln::vulkan
