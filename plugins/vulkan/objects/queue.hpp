// The queue of a device: submissions in order, each a value of one timeline semaphore.
//
// Thread-safety: submit() and wait() from any thread. Ownership: keeps the device alive; programs and buffers of a
// submission live until its value is reached. A result is stored until it is taken, once.
#pragma once

#include <kiln/device.hpp>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "objects/buffer.hpp"
#include "objects/program.hpp"

namespace kiln::vulkan {

// One descriptor of a pass: a buffer, a view of texels, a texture, or the values of a block.
struct BoundDescriptor {
  std::uint32_t slot = 0, element = 0;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize bytes = 0;
  VkBufferView view = VK_NULL_HANDLE;
  const PixelTexture* texture = nullptr;
  std::optional<std::size_t> values;  // index into BoundPass::values
};

// A texture that is filled before its pass, and copied back after it where the pass writes it.
struct BoundTexture {
  const PixelTexture* texture = nullptr;
  VkBuffer buffer = VK_NULL_HANDLE;
  std::optional<std::size_t> values;  // the texels, converted; nullopt: the buffer has them
  bool written = false;
};

struct BoundPass {
  const VulkanProgram* program = nullptr;
  std::array<std::uint32_t, 3> grid{1, 1, 1};  // PassLaunch::nothing: the rest is empty
  std::vector<VulkanBuffer*> buffers;
  std::vector<BoundDescriptor> descriptors;  // of every slot and element of the program
  std::vector<BoundTexture> textures;
  std::vector<std::vector<std::byte>> values;  // of blocks and converted texels
  std::optional<std::size_t> push_constants;   // index into `values`
};

class Queue {
 public:
  static Result<std::unique_ptr<Queue>> create(std::shared_ptr<Gpu> gpu);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();

  Result<std::uint64_t> submit(std::span<const BoundPass> passes);
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline);

 private:
  // What one submission uses until its value is reached, then another.
  struct Slot {
    std::uint64_t value = 0;  // 0: free
    std::uint64_t begun_ns = 0;
    OwnedCommandPool pool;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    OwnedDescriptorPool descriptors;
    std::map<VkDescriptorType, std::uint32_t> room;  // descriptors in the pool
    std::uint32_t sets = 0;
    PlainBuffer values;  // of uniform blocks
    std::uint64_t values_bytes = 0;
    OwnedQueryPool stamps;
  };

  explicit Queue(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  Status prepare();
  Result<Slot*> free_slot();
  Status make_slot(Slot& slot);
  Status make_room(Slot& slot, std::span<const BoundPass> passes);
  Status record(Slot& slot, std::span<const BoundPass> passes);
  Status record_pass(Slot& slot, const BoundPass& pass, std::uint64_t& values_used);
  Status write_descriptors(Slot& slot, const BoundPass& pass, std::span<const std::uint64_t> offsets,
                           VkDescriptorSet& set);
  std::vector<std::uint64_t> place_values(Slot& slot, const BoundPass& pass, std::uint64_t& values_used);
  void fill(VkCommandBuffer commands, const BoundTexture& bound, VkBuffer from, std::uint64_t offset);
  void read_back(VkCommandBuffer commands, const BoundTexture& bound);
  bool copy_in(VkCommandBuffer commands, std::span<const BoundPass> passes);
  void copy_back(VkCommandBuffer commands, std::span<const BoundPass> passes);
  void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to,
               VkAccessFlags read);
  void retire();
  FenceResult time_of(Slot& slot);

  BoundPass over_nothing(const VulkanProgram& program) const;

  std::shared_ptr<Gpu> gpu_;
  std::mutex mutex_;
  PlainBuffer zeros_;  // a grid of no workgroups, and the resources of such a dispatch
  OwnedBufferView zero_texels_;
  OwnedSemaphore timeline_;
  std::deque<Slot> slots_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::optional<Result<FenceResult>>> results_;  // nullopt: pending
};

}  // namespace kiln::vulkan
