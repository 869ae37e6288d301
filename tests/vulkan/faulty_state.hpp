// What the loader of faulty_loader.cpp pretends beside its variables. A test fills the loader's own object of this
// type, which it finds by its symbol.
//
// Thread-safety: none. Ownership: values.
#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln::vulkan {

struct FaultyState {
  // A call that fails: that of this function (empty: none) which comes behind `calls_before` others of it.
  std::string failing;
  int calls_before = 0;
  VkResult result = VK_SUCCESS;
  bool has_failed = false;

  std::string hidden;      // a function that the driver does not have
  bool no_layers = false;  // the loader lists none
  bool misused = false;    // buffers of 128 bytes are asked for with a flag that Vulkan does not have

  // What queries answer: each changes the device's own answer. Null: as it is.
  std::function<void(VkPhysicalDeviceProperties&)> properties;
  std::function<void(VkBaseOutStructure&)> more_properties;  // each structure behind those of a second query
  std::function<void(VkPhysicalDeviceFeatures2&)> features;
  std::function<void(std::vector<std::string>&)> extensions;
  std::uint32_t copies = 1;  // how often the first device is listed

  std::vector<VkQueueFamilyProperties> families;  // empty: the device's; else all of them are its first
  std::optional<std::uint32_t> opened_family;

  std::optional<VkPhysicalDeviceMemoryProperties> memory;  // all of its types are the device's first
  std::map<std::uint32_t, int> allocations;                // of each type

  // Memory that is shared as dma-bufs: descriptors of the device's own kind stand for them.
  bool dma_bufs = false;
  VkDeviceSize imported_bytes = 0;  // of the memory that was imported last

  // Semaphores that are exported as sync_files: files of nothing stand for them.
  bool sync_files = false;
  VkExternalSemaphoreFeatureFlags semaphore_features =
      VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
  int shared_semaphores = 0;  // made so far

  std::optional<std::array<std::uint64_t, 2>> stamps;  // of each submission
  std::optional<std::array<std::uint64_t, 2>> clocks;  // now: the device's, in ticks, and the host's
};

inline constexpr const char* faulty_state_symbol = "faulty_vulkan_state";

}  // namespace kiln::vulkan
