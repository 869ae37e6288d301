// An opened GPU: what is shared on it, and the facts that it reports.
//
// Gpu: an opened Vulkan device with what its buffers, programs and queue share, and the owners of its objects.
//
// Thread-safety: every method from any thread; a user of the queue holds queue_mutex(). Ownership: shared by the device
// and everything made from it; the destructor waits for the device and destroys it.
#pragma once

#include <kiln/device.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "codec/glslang_module.hpp"
#include "vulkan_api.hpp"

namespace kiln::vulkan {

// What a physical device offers to Kiln, known before it is opened.
struct PhysicalFacts {
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};  // apiVersion: no more than the instance's
  DeviceInfo info;  // as enumerate() lists it; limits and identity but for the driver's build
  std::set<std::string> extensions;
  GlslLimits glsl_limits;  // also in the identity: programs may read them
  std::uint32_t queue_family = 0;
  std::uint32_t timestamp_bits = 0;  // 0: no times of the device
  bool host_clock = false;                              // calibrated timestamps with CLOCK_MONOTONIC
  bool shares_fences = false;                           // semaphores as sync_files
  std::uint32_t least_subgroup = 0, most_subgroup = 0;  // sizes that a pipeline can require; 0: none
  std::uint32_t most_subgroups = 0;                     // of a workgroup whose pipeline requires a size
  std::uint32_t subgroup = 0;                           // what each pipeline requires; 0: the driver chooses
};

inline constexpr VkBufferUsageFlags buffer_usage =
    VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
    VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
    VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;

// Of memory of the device that the host can write to.
inline constexpr VkMemoryPropertyFlags writable_memory_flags =
    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
// Of memory that device and host reach at no cost.
inline constexpr VkMemoryPropertyFlags unified_memory_flags =
    writable_memory_flags | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

class Gpu {
 public:
  // unavailable: the device refuses to open, or lacks timeline semaphores.
  static Result<std::shared_ptr<Gpu>> open(std::shared_ptr<const VulkanApi> api, const PhysicalFacts& facts);
  Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  const DeviceFunctions& vk() const noexcept { return vk_; }
  const VulkanApi& api() const noexcept { return *api_; }
  VkDevice handle() const noexcept { return device_; }
  VkQueue queue() const noexcept { return queue_; }
  std::mutex& queue_mutex() noexcept { return queue_mutex_; }
  const PhysicalFacts& facts() const noexcept { return facts_; }
  // Another number for each program and buffer of this device: unlike addresses, none comes twice.
  std::uint64_t next_number() noexcept { return numbers_.fetch_add(1, std::memory_order_relaxed) + 1; }
  const std::string& id() const noexcept { return facts_.info.id; }
  bool creation_feedback() const noexcept { return creation_feedback_; }
  bool cache_control() const noexcept { return cache_control_; }

  // The capabilities of SPIR-V that Kiln enables where a device has them, and whether this one has.
  const std::map<std::uint32_t, bool>& capabilities() const noexcept { return capabilities_; }
  std::uint32_t spirv_version() const noexcept { return spirv_version_; }
  std::uint64_t uses() const noexcept { return uses_; }  // of programs that it allows (codec/module_uses.hpp)
  bool scalar_blocks() const noexcept { return scalar_blocks_; }  // GL_EXT_scalar_block_layout

  // The index of a memory type that has `wanted` and is in `bits`.
  std::optional<std::uint32_t> memory_type(std::uint32_t bits, VkMemoryPropertyFlags wanted) const noexcept;
  // The host reaches the device's memory at no cost: an integrated GPU or the host's own cores.
  bool unified_memory() const noexcept { return unified_; }
  // The host writes to the memory of a card of its own through the bus. Reading from it is slow.
  bool writable_memory() const noexcept { return writable_; }

  // device_lost after the device was lost.
  Status alive() const;
  // As status_of(), with the device's id; remembers a lost device.
  Status check(VkResult result, std::string_view doing);

  // A stamp of the device in nanoseconds of now_ns(); 0: the clocks cannot be compared.
  std::uint64_t host_time(std::uint64_t stamp);
  std::uint64_t nanoseconds(std::uint64_t ticks) const noexcept;

 private:
  Status create(const PhysicalFacts& facts);
  bool maps_most_memory() const noexcept;

  std::shared_ptr<const VulkanApi> api_;
  PhysicalFacts facts_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  DeviceFunctions vk_;
  VkPhysicalDeviceMemoryProperties memory_{};
  std::map<std::uint32_t, bool> capabilities_;
  std::uint64_t uses_ = 0;
  std::uint32_t spirv_version_ = 0x00010300;
  bool creation_feedback_ = false, cache_control_ = false, scalar_blocks_ = false;
  bool unified_ = false, writable_ = false;
  std::mutex queue_mutex_;
  std::atomic<bool> lost_{false};
  std::atomic<std::uint64_t> numbers_{0};
};

// A handle of an object and the function that destroys it.
template <class Handle, auto destroy>
class Owned {
 public:
  Owned() = default;
  explicit Owned(const Gpu& gpu) : gpu_(&gpu) {}
  Owned(Owned&& other) noexcept : gpu_(other.gpu_), handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != Handle{}) (gpu_->vk().*destroy)(gpu_->handle(), handle_, nullptr);
  }

  Handle get() const noexcept { return handle_; }
  Handle* out() noexcept { return &handle_; }  // for a function that creates one; REQUIRES: empty

 private:
  const Gpu* gpu_ = nullptr;
  Handle handle_{};
};

using OwnedBuffer = Owned<VkBuffer, &DeviceFunctions::DestroyBuffer>;
using OwnedMemory = Owned<VkDeviceMemory, &DeviceFunctions::FreeMemory>;
using OwnedBufferView = Owned<VkBufferView, &DeviceFunctions::DestroyBufferView>;
using OwnedImage = Owned<VkImage, &DeviceFunctions::DestroyImage>;
using OwnedImageView = Owned<VkImageView, &DeviceFunctions::DestroyImageView>;
using OwnedSampler = Owned<VkSampler, &DeviceFunctions::DestroySampler>;
using OwnedShaderModule = Owned<VkShaderModule, &DeviceFunctions::DestroyShaderModule>;
using OwnedPipelineCache = Owned<VkPipelineCache, &DeviceFunctions::DestroyPipelineCache>;
using OwnedPipeline = Owned<VkPipeline, &DeviceFunctions::DestroyPipeline>;
using OwnedSetLayout = Owned<VkDescriptorSetLayout, &DeviceFunctions::DestroyDescriptorSetLayout>;
using OwnedPipelineLayout = Owned<VkPipelineLayout, &DeviceFunctions::DestroyPipelineLayout>;
using OwnedDescriptorPool = Owned<VkDescriptorPool, &DeviceFunctions::DestroyDescriptorPool>;
using OwnedCommandPool = Owned<VkCommandPool, &DeviceFunctions::DestroyCommandPool>;
using OwnedQueryPool = Owned<VkQueryPool, &DeviceFunctions::DestroyQueryPool>;
using OwnedSemaphore = Owned<VkSemaphore, &DeviceFunctions::DestroySemaphore>;

// What a physical device tells: names, limits, kind, the hardware it is, and its driver's build.
//
// Thread-safety: free functions, any thread. Ownership: values.

// A device that Kiln cannot use has DeviceInfo::why_not. The id is the caller's.
PhysicalFacts read_facts(const VulkanApi& api, VkPhysicalDevice physical);

// Adds the build id of the driver's library to the identity: a driver's version may be that of several builds, and
// lavapipe's pipelineCacheUUID is the same for all.
void add_driver_build(const Gpu& gpu, DeviceInfo& info);

}  // namespace kiln::vulkan
