// Buffers and the memory that they lie in.
//
// Memory of a device with a buffer over it: its own, or another driver's by file descriptor.
//
// Thread-safety: functions from any thread. Ownership: a PlainBuffer is destroyed before its device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "gpu.hpp"
#include "texture.hpp"

#include <kiln/buffer.hpp>

namespace kiln::vulkan {

// as_dma_buf: the memory is shared with other drivers, to which it is exported or from which it is imported.
enum class Export : std::uint8_t { no, as_dma_buf };

// A buffer in memory, mapped where the host can reach it.
struct PlainBuffer {
  OwnedMemory memory;  // destroyed after the buffer; empty: the buffer is a part
  OwnedBuffer buffer;
  std::byte* mapped = nullptr;
  std::uint64_t memory_bytes = 0;
  Export exported = Export::no;
  VkDeviceMemory lies_in = VK_NULL_HANDLE;  // `memory`, or the whole's
};

// host: memory that the host reads and writes. readback: likewise, fast to read. device: the device's own. writable:
// the device's own, which the host writes to; only where Gpu::writable_memory().
enum class Placement : std::uint8_t { invalid = 0, host, readback, device, writable };

// unavailable: there is no memory for it.
Result<PlainBuffer> make_buffer(Gpu& gpu, std::uint64_t bytes, Placement placement, Export exported = Export::no);
// A buffer of `bytes` bytes over the beginning of the memory of `whole`, or of all that the memory has. The memory
// outlives it. unsupported: the device wants more memory for such a buffer.
Result<PlainBuffer> make_part(Gpu& gpu, std::uint64_t bytes, const PlainBuffer& whole,
                              VkBufferUsageFlags usage = buffer_usage);
// The memory behind a dma-buf, which stays the caller's. invalid_argument: it is smaller, or not a dma-buf.
Result<PlainBuffer> import_buffer(Gpu& gpu, std::uint64_t bytes, int fd);

// Buffers of a device, and the copies between them and host memory.

// Transfers: copies on the device's queue between memory that the host cannot reach and host memory, through one
// staging buffer. Each copy ends before its function returns.
//
// Thread-safety: any thread; one copy at a time. Ownership: keeps the device alive.
class Transfers {
 public:
  explicit Transfers(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}

  Status write(VkBuffer to, std::uint64_t offset, std::span<const std::byte> from);
  Status read(VkBuffer from, std::uint64_t offset, std::span<std::byte> to);
  Status copy(VkBuffer from, VkBuffer to, std::uint64_t bytes);

 private:
  Status prepare();  // at the first copy
  Status run(VkBuffer from, std::uint64_t from_offset, VkBuffer to, std::uint64_t to_offset, std::uint64_t bytes);

  std::shared_ptr<Gpu> gpu_;
  std::mutex mutex_;
  PlainBuffer staging_;
  OwnedCommandPool pool_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  OwnedSemaphore done_;
  std::uint64_t copies_ = 0;
};

// VulkanBuffer: a buffer of the device. On a device whose memory the host reaches at no cost it is mapped. Elsewhere
// the host writes large inputs and constants through the bus where it can; any other buffer that the host writes or
// reads for each job has a second buffer in host memory, which the queue copies.
//
// Thread-safety: any thread. Ownership: keeps the device alive. The memory is padded to 64 bytes beyond what is bound,
// so that the last texel of a view lies inside.
class VulkanBuffer final : public Buffer {
 public:
  // REQUIRES: desc is checked: 0 < bytes, a usage, no host memory, a descriptor only where the device shares memory.
  static Result<std::unique_ptr<Buffer>> create(std::shared_ptr<Gpu> gpu, std::shared_ptr<Transfers> transfers,
                                                const BufferDesc& desc);

  std::uint64_t bytes() const noexcept override { return bytes_; }
  Status write(std::uint64_t offset, std::span<const std::byte> from) noexcept override;
  Status read(std::uint64_t offset, std::span<std::byte> to) noexcept override;
  std::span<std::byte> mapped() noexcept override;
  Result<UniqueFd> export_fd() noexcept override;

  const Gpu& gpu() const noexcept { return *gpu_; }
  std::uint64_t number() const noexcept { return number_; }  // Gpu::next_number()
  VkBuffer handle() const noexcept { return main_.buffer.get(); }
  // The view as an array of texels of four floats. type: of a uniform or storage texel buffer.
  Result<VkBufferView> texels(VkDescriptorType type) {
    return texels(type, VK_FORMAT_R32G32B32A32_SFLOAT, (bytes_ + 15) / 16 * 16);
  }
  // The view as `bytes` bytes of texels of a format. unsupported: the device has no such texel buffers.
  Result<VkBufferView> texels(VkDescriptorType type, VkFormat format, std::uint64_t bytes);
  // The texture of this form, made at its first use.
  Result<const PixelTexture*> texture(VkImageViewType type, const TextureSource& form, VkDescriptorType use);

  // The copies that the queue records around a dispatch; a null handle: none.
  VkBuffer shadow() const noexcept { return shadow_.buffer.get(); }
  bool take_newer() noexcept { return newer_.exchange(false, std::memory_order_acquire); }
  void mark_newer() noexcept { newer_.store(true, std::memory_order_release); }
  bool comes_back() const noexcept { return comes_back_; }
  // The last submission that may write it; 0: none.
  std::uint64_t written_by() const noexcept { return written_by_.load(std::memory_order_acquire); }
  void mark_written(std::uint64_t value) noexcept { written_by_.store(value, std::memory_order_release); }
  // What it holds after that submission, where the host can read it; empty: read() has to be called.
  std::span<const std::byte> written() const noexcept;

 private:
  VulkanBuffer(std::shared_ptr<Gpu> gpu, std::shared_ptr<Transfers> transfers, const BufferDesc& desc)
      : gpu_(std::move(gpu)),
        transfers_(std::move(transfers)),
        number_(gpu_->next_number()),
        bytes_(desc.bytes),
        usage_(desc.usage) {}
  Status in_range(std::string_view doing, std::uint64_t offset, std::size_t bytes) const;

  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<Transfers> transfers_;
  std::uint64_t number_;
  std::uint64_t bytes_;
  BufferUsage usage_;
  PlainBuffer main_;
  PlainBuffer shadow_;
  bool comes_back_ = false;
  bool only_written_ = false;       // main_.mapped is slow to read
  bool exports_ = false;            // its memory can be exported
  std::atomic<bool> newer_{false};  // the host has written since the queue copied it in
  std::atomic<std::uint64_t> written_by_{0};
  std::mutex view_mutex_;
  struct Texels {
    PlainBuffer alias;  // the view's; empty: it is main_'s
    OwnedBufferView view;
  };
  std::map<std::tuple<VkDescriptorType, VkFormat, std::uint64_t>, Texels> texels_;
  std::vector<std::unique_ptr<PixelTexture>> textures_;  // one in flight may use any of them: none is dropped before
};

}  // namespace kiln::vulkan
