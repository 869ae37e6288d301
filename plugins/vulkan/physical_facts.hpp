// What a physical device tells: names, limits, kind, the hardware it is, and its driver's build.
//
// Thread-safety: free functions, any thread. Ownership: values.
#pragma once

#include "objects/gpu.hpp"

namespace kiln::vulkan {

// A device that Kiln cannot use has DeviceInfo::why_not. The id is the caller's.
PhysicalFacts read_facts(const VulkanApi& api, VkPhysicalDevice physical);

// Adds the build id of the driver's library to the identity: a driver's version may be that of several builds, and
// lavapipe's pipelineCacheUUID is the same for all.
void add_driver_build(const Gpu& gpu, DeviceInfo& info);

}  // namespace kiln::vulkan
