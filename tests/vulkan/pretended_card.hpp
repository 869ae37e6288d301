// The first device as another one: what the faulty loader pretends, and memory as a card has it.
//
// Thread-safety: from a test's own thread. Ownership: the loader's state is as it was once a Pretence ends.
#pragma once

#include <catch2/catch.hpp>

#include <dlfcn.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vulkan/faulty_state.hpp"
#include "vulkan/vulkan_under_test.hpp"

namespace kiln::vulkan {

// Whether the first device can stand for another: one in software, of which it is known what it offers.
inline bool on_software() {
  support::Vulkan& vulkan = support::Vulkan::instance();
  return vulkan.usable() && vulkan.device()->info().kind == DeviceKind::software;
}

class Pretence {
 public:
  Pretence() {
    void* const library = dlopen(KILN_FAULTY_LOADER, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    state_ = static_cast<FaultyState*>(dlsym(library, faulty_state_symbol));
    REQUIRE(state_ != nullptr);
  }
  Pretence(const Pretence&) = delete;
  Pretence& operator=(const Pretence&) = delete;
  ~Pretence() { *state_ = {}; }

  FaultyState* operator->() const { return state_; }
  FaultyState& operator*() const { return *state_; }

  // From here on the call of this function that comes behind so many others of it fails.
  void fail(const std::string& function, int calls_before = 0, VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY) const {
    state_->failing = function;
    state_->calls_before = calls_before;
    state_->result = result;
    state_->has_failed = false;
  }

 private:
  FaultyState* state_ = nullptr;
};

inline constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                       host =
                                           VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                                       cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
inline constexpr VkDeviceSize gibibyte = VkDeviceSize{1} << 30;

// Types in heaps: 0 of 8 GiB, the device's; 1 of 16 GiB, the host's; 2 the device's too, of `window` bytes.
inline VkPhysicalDeviceMemoryProperties memory_of(
    const std::vector<std::pair<VkMemoryPropertyFlags, std::uint32_t>>& types, VkDeviceSize window = 256 << 20) {
  VkPhysicalDeviceMemoryProperties memory{};
  memory.memoryHeapCount = 3;
  memory.memoryHeaps[0] = {8 * gibibyte, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  memory.memoryHeaps[1] = {16 * gibibyte, 0};
  memory.memoryHeaps[2] = {window, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  for (const auto& [flags, heap] : types) memory.memoryTypes[memory.memoryTypeCount++] = {flags, heap};
  return memory;
}

// A card whose memory the host reaches through a window of so many bytes.
inline void become_card(const Pretence& pretence, VkDeviceSize window = 256 << 20) {
  pretence->properties = [](VkPhysicalDeviceProperties& properties) {
    properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    std::strcpy(properties.deviceName, "Test Card (of a test)");
    properties.limits.timestampPeriod = 2;
  };
  pretence->more_properties = [](VkBaseOutStructure& structure) {
    if (structure.sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES) return;
    auto& driver = reinterpret_cast<VkPhysicalDeviceDriverProperties&>(structure);
    driver.driverID = VK_DRIVER_ID_MAX_ENUM;
    std::strcpy(driver.driverName, "tester");
    std::strcpy(driver.driverInfo, "7.1");
  };
  pretence->memory = memory_of({{local, 0}, {host, 1}, {host | cached, 1}, {local | host, 2}}, window);
}

inline VkQueueFamilyProperties family_of(VkQueueFlags flags, std::uint32_t timestamp_bits = 64) {
  VkQueueFamilyProperties family{};
  family.queueFlags = flags;
  family.queueCount = 1;
  family.timestampValidBits = timestamp_bits;
  return family;
}

inline std::unique_ptr<Buffer> buffer_on(Device& device, std::uint64_t bytes, BufferUsage usage) {
  BufferDesc desc;
  desc.bytes = bytes;
  desc.usage = usage;
  auto made = device.create_buffer(desc);
  INFO((made ? std::string() : made.error().text()));
  REQUIRE(made.has_value());
  return std::move(*made);
}

inline std::vector<std::uint32_t> read_words(Buffer& buffer, std::uint64_t offset = 0, std::size_t count = 0) {
  std::vector<std::uint32_t> words(count == 0 ? (buffer.bytes() - offset) / 4 : count);
  const Status status = buffer.read(offset, std::as_writable_bytes(std::span(words)));
  INFO(status.text());
  REQUIRE(status.ok());
  return words;
}

inline void write_words(Buffer& buffer, const std::vector<std::uint32_t>& words, std::uint64_t offset = 0) {
  const Status status = buffer.write(offset, std::as_bytes(std::span(words)));
  INFO(status.text());
  REQUIRE(status.ok());
}

}  // namespace kiln::vulkan
