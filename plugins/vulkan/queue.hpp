// The queue of a GPU: its fences, its submissions, and what these bind.
//
// SharedFences: binary semaphores that carry sync_files between this queue and other drivers.
//
// Thread-safety: none: the queue's lock is held. Ownership: keeps each semaphore until the submission that uses it has
// ended, then uses it again.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/device.hpp>
#include <kiln/device_checks.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "buffer.hpp"
#include "gpu.hpp"
#include "launch_plan.hpp"
#include "program.hpp"

namespace kiln::vulkan {

class SharedFences {
 public:
  explicit SharedFences(Gpu& gpu) : gpu_(gpu) {}

  // unsupported: the driver shares no semaphores.
  Status supported() const;
  // A semaphore that submission `value` has to signal.
  Result<VkSemaphore> signalled_by(std::uint64_t value);
  // REQUIRES: the submission that signals it was made.
  Result<UniqueFd> export_file(VkSemaphore semaphore);
  // The next submission has to wait for the descriptor's fence.
  Status import_file(int sync_file);
  // What the next submission waits for.
  std::span<const VkSemaphore> awaited() const noexcept { return awaited_; }
  void awaited_by(std::uint64_t value);  // it was made
  void passed(std::uint64_t value);      // it has ended, and all before it

 private:
  struct Used {
    std::uint64_t value = 0;
    OwnedSemaphore semaphore;
    bool stays_signalled = false;  // it was not exported
  };
  Result<OwnedSemaphore> take();

  Gpu& gpu_;
  std::vector<VkSemaphore> awaited_;
  std::vector<OwnedSemaphore> imported_;  // of awaited_
  std::vector<Used> used_;
  std::vector<OwnedSemaphore> spare_;
};

// The queue of a device: submissions in order, each a value of one timeline semaphore.
//
// Thread-safety: submit() and wait() from any thread. Ownership: keeps the device alive; programs and buffers of a
// submission live until its value is reached. A result is stored until it is taken, once.

inline constexpr std::uint32_t stamps_of_slot = 2;
inline constexpr std::size_t grid_bytes = 3 * sizeof(std::uint32_t);
inline constexpr std::size_t most_kept = 128;  // slots whose commands are stored for an equal submission

using DescriptorCounts = std::array<std::uint32_t, VK_DESCRIPTOR_TYPE_INPUT_ATTACHMENT>;  // by VkDescriptorType

// One descriptor of a pass: a buffer, a view of texels, a texture, a sampler, or the values of a block.
struct BoundDescriptor {
  std::uint32_t slot = 0, element = 0;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize bytes = 0;
  VkBufferView view = VK_NULL_HANDLE;
  const PixelTexture* texture = nullptr;
  VkSampler sampler = VK_NULL_HANDLE;  // without a texture
  std::optional<std::size_t> values;   // index into BoundPass::values
};

// A texture that is filled before its pass, and copied back after it where the pass writes it.
struct BoundTexture {
  const PixelTexture* texture = nullptr;
  VkBuffer buffer = VK_NULL_HANDLE;
  std::optional<std::size_t> values;  // the texels, converted; nullopt: the buffer has them
  bool written = false;
};

struct BoundValues {
  std::vector<std::byte> bytes;
  std::uint64_t offset = 0;  // in the slot's memory, from Queue::record() on
};

// A program with what it is given.
struct BoundPass {
  const VulkanProgram* program = nullptr;
  bool nothing = false;            // a dispatch of no workgroups: the rest is empty
  std::size_t first = 0, end = 0;  // its part of Submission::descriptors: of every slot and element of the program
  std::vector<BoundTexture> textures;
  std::vector<BoundValues> values;            // of blocks and converted texels
  std::optional<std::size_t> push_constants;  // index into `values`
  VkBuffer grid = VK_NULL_HANDLE;             // where the grid is read from; null: it is the step's
  VkDeviceSize grid_at = 0;
};

// An empty dispatch that the device does not make: the driver compiled all when it made the pipeline, or the program
// has images, which have no stand-in, so that it is compiled at its first real dispatch.
bool is_left_out(const BoundPass& pass);

struct Submission {
  std::vector<BoundPass> passes;
  std::vector<BoundDescriptor> descriptors;
  std::vector<VulkanBuffer*> shadowed;  // the buffers that have shadows; may name one twice
  std::vector<VulkanBuffer*> written;   // the buffers that passes may write; likewise
  DispatchKey key;                      // its steps are what runs
  bool again = false;                   // equal keys mean equal commands; false: values are part of the commands
};

class Queue {
 public:
  static Result<std::unique_ptr<Queue>> create(std::shared_ptr<Gpu> gpu);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();

  // Submits the commands that an equal submission before left. nullopt: there are none that are not in flight.
  // REQUIRES: the buffers and programs that the key names exist.
  Result<std::optional<std::uint64_t>> submit_again(const DispatchKey& key);
  // Records commands. Those of a key that was recorded lately are stored for an equal submission.
  // REQUIRES: submit_again() found none.
  Result<std::uint64_t> submit(Submission work);
  Result<FenceResult> wait(std::uint64_t value, Deadline deadline);
  // Waits for the submission, whose result stays for wait(); 0: for none.
  Status reach(std::uint64_t value) const;
  const Gpu& gpu() const noexcept { return *gpu_; }
  // As in FenceExchange.
  Result<UniqueFd> export_fence(std::uint64_t value);
  Status wait_for_fence(int sync_file);

 private:
  // What one submission uses until its value is reached, then an equal one as it is, or another one recorded anew.
  struct Slot {
    std::uint64_t value = 0;  // 0: free
    std::uint64_t last = 0;   // the value before
    bool kept = false;        // for a submission of an equal key
    DispatchKey key;          // of the commands; its words also of the descriptor sets. Empty: there are none
    std::uint64_t begun_ns = 0;
    OwnedCommandPool pool;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    OwnedDescriptorPool descriptors;
    DescriptorCounts room{};  // in the pool
    std::uint32_t room_for_sets = 0;
    std::vector<VkDescriptorSet> sets;  // of each pass
    PlainBuffer values;                 // of uniform blocks
    std::uint64_t values_bytes = 0;
    // The counts that steps read from buffers, copied for the host: Vulkan does not check them.
    PlainBuffer grids;
    std::uint64_t grids_bytes = 0;
    std::vector<std::size_t> grid_steps;  // indices into key.steps
    OwnedQueryPool stamps;
    std::array<std::uint64_t, stamps_of_slot> read_stamps{};  // of the last submission
    // The copies of what the host has written, recorded for each submission that has any.
    OwnedCommandPool copy_pool;
    VkCommandBuffer copies = VK_NULL_HANDLE;
    std::vector<VulkanBuffer*> shadowed;  // the buffers that may need one; they live while the key is used
    std::vector<VulkanBuffer*> copied;    // of these, which `copies` copy in
    std::vector<VulkanBuffer*> written;   // the buffers that the commands may write; likewise
  };
  struct KeptSlot {
    std::uint64_t hash = 0;  // of the slot's key
    Slot* slot = nullptr;
  };

  explicit Queue(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)), fences_(*gpu_) {}
  Status prepare();
  Result<Slot*> free_slot();
  Status make_slot(Slot& slot);
  Status make_commands(OwnedCommandPool& pool, VkCommandBuffer& commands);
  Status make_room(Slot& slot, std::span<const BoundPass> passes);
  Status place_values(Slot& slot, std::span<BoundPass> passes);
  Status write_descriptors(Slot& slot, const Submission& work);
  Status make_grids(Slot& slot, const Submission& work);
  Status check_grids(const Slot& slot) const;
  Status record(Slot& slot, Submission& work);
  void bind_pass(VkCommandBuffer commands, const BoundPass& pass, VkDescriptorSet set, const BoundPass* bound);
  void fill(VkCommandBuffer commands, const BoundTexture& bound, VkBuffer from, std::uint64_t offset);
  void read_back(VkCommandBuffer commands, const BoundTexture& bound);
  Result<bool> record_copies(Slot& slot);
  Status begin_copies(Slot& slot);
  Result<std::uint64_t> hand_over(Slot& slot);
  VkResult submit_next(std::span<const VkCommandBuffer> commands, VkSemaphore signalled);
  void copy_back(const Slot& slot);
  bool came_before(std::uint64_t hash);
  bool room_to_keep();
  void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to,
               VkAccessFlags read);
  // Completes what has ended; after a loss, everything. Any other failure leaves all in flight.
  Status retire();
  Result<FenceResult> time_of(Slot& slot);

  void bind_nothing(Submission& work, BoundPass& pass) const;

  std::shared_ptr<Gpu> gpu_;
  std::mutex mutex_;
  PlainBuffer zeros_;  // a grid of no workgroups, and the resources of such a dispatch
  OwnedBufferView zero_texels_;
  OwnedSemaphore timeline_;
  SharedFences fences_;
  std::deque<Slot> slots_;
  std::deque<Slot*> in_flight_;                      // in the order of their values
  std::vector<Slot*> spare_;                         // free, and not kept
  std::vector<KeptSlot> kept_;                       // at most most_kept
  std::array<std::uint64_t, most_kept> recorded_{};  // hashes of the last keys that were recorded, a ring
  std::size_t recorded_next_ = 0;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::optional<Result<FenceResult>>> results_;  // nullopt: pending
};

// What the launches of a dispatch bind, as descriptors.
//
// Thread-safety: bind() from any thread. Ownership: borrows programs and buffers, which outlive the submission.

// Waits for submissions that write what the host reads for it. invalid_argument or unsupported names the pass and the
// resource. REQUIRES: `plan` is plan_launches(dispatch, queue.gpu()).
Result<Submission> bind(const Dispatch& dispatch, LaunchPlan plan, const DeviceInfo& info, const Queue& queue);

}  // namespace kiln::vulkan
