#include "buffer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include <kiln/buffer.hpp>

namespace kiln::vulkan {
namespace {

std::string words_of(std::uint64_t bytes) { return "a buffer of " + std::to_string(bytes) + " bytes"; }

std::optional<std::uint32_t> memory_type_of(const Gpu& gpu, std::uint32_t bits, Placement placement) {
  constexpr VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  std::optional<std::uint32_t> type;
  if (placement == Placement::writable) return gpu.memory_type(bits, writable_memory_flags);
  if (placement == Placement::device) type = gpu.memory_type(bits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  if (placement != Placement::device && gpu.unified_memory()) type = gpu.memory_type(bits, unified_memory_flags);
  if (!type && placement == Placement::readback)
    type = gpu.memory_type(bits, host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
  if (!type) type = gpu.memory_type(bits, placement == Placement::device ? 0 : host);
  return type;
}

// The buffer without memory. `shared`: its memory is another driver's too.
Status create(Gpu& gpu, std::uint64_t bytes, bool shared, OwnedBuffer& buffer,
              VkBufferUsageFlags usage = buffer_usage) {
  auto external = structure<VkExternalMemoryBufferCreateInfo>(VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  external.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
  auto info = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.pNext = shared ? &external : nullptr;
  info.size = bytes;
  info.usage = usage;
  return gpu.check(gpu.vk().CreateBuffer(gpu.handle(), &info, nullptr, buffer.out()), words_of(bytes));
}

Status bind_memory(Gpu& gpu, const VkMemoryAllocateInfo& info, std::uint64_t bytes, PlainBuffer& made) {
  const DeviceFunctions& vk = gpu.vk();
  Status status = gpu.check(vk.AllocateMemory(gpu.handle(), &info, nullptr, made.memory.out()), words_of(bytes));
  if (!status.ok()) return status;
  made.memory_bytes = info.allocationSize;
  made.lies_in = made.memory.get();
  return gpu.check(vk.BindBufferMemory(gpu.handle(), made.buffer.get(), made.memory.get(), 0), words_of(bytes));
}

}  // namespace

Result<PlainBuffer> make_buffer(Gpu& gpu, std::uint64_t bytes, Placement placement, Export exported) {
  const DeviceFunctions& vk = gpu.vk();
  PlainBuffer made{OwnedMemory(gpu), OwnedBuffer(gpu)};
  made.exported = exported;
  const bool shared = exported == Export::as_dma_buf;
  if (Status status = create(gpu, bytes, shared, made.buffer); !status.ok()) return status;
  VkMemoryRequirements needs{};
  vk.GetBufferMemoryRequirements(gpu.handle(), made.buffer.get(), &needs);
  const auto type = memory_type_of(gpu, needs.memoryTypeBits, placement);
  if (!type) return unavailable(gpu.id() + ": " + words_of(bytes) + ": the device has no memory that the host reaches");
  auto external = structure<VkExportMemoryAllocateInfo>(VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO);
  external.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
  auto memory = structure<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  memory.pNext = shared ? &external : nullptr;
  memory.allocationSize = needs.size;
  memory.memoryTypeIndex = *type;
  if (Status status = bind_memory(gpu, memory, bytes, made); !status.ok()) return status;
  if (placement == Placement::device) return made;
  void* mapped = nullptr;
  Status status = gpu.check(vk.MapMemory(gpu.handle(), made.memory.get(), 0, VK_WHOLE_SIZE, 0, &mapped),
                            "mapping " + words_of(bytes));
  if (!status.ok()) return status;
  made.mapped = static_cast<std::byte*>(mapped);
  return made;
}

Result<PlainBuffer> make_part(Gpu& gpu, std::uint64_t bytes, const PlainBuffer& whole, VkBufferUsageFlags usage) {
  PlainBuffer made{OwnedMemory(gpu), OwnedBuffer(gpu), whole.mapped, whole.memory_bytes, whole.exported, whole.lies_in};
  const std::string what = "a part of " + words_of(bytes);
  const bool shared = whole.exported == Export::as_dma_buf;
  Status status = create(gpu, std::min(bytes, whole.memory_bytes), shared, made.buffer, usage);
  if (!status.ok()) return status;
  VkMemoryRequirements needs{};
  gpu.vk().GetBufferMemoryRequirements(gpu.handle(), made.buffer.get(), &needs);
  if (needs.size > whole.memory_bytes) {
    return unsupported(gpu.id() + ": " + what + " needs " + std::to_string(needs.size) +
                       " bytes of memory, the buffer has " + std::to_string(whole.memory_bytes));
  }
  status = gpu.check(gpu.vk().BindBufferMemory(gpu.handle(), made.buffer.get(), whole.lies_in, 0), what);
  if (!status.ok()) return status;
  return made;
}

Result<PlainBuffer> import_buffer(Gpu& gpu, std::uint64_t bytes, int fd) {
  const DeviceFunctions& vk = gpu.vk();
  const std::string doing = gpu.id() + ": importing " + words_of(bytes);
  const off_t end = lseek(fd, 0, SEEK_END);
  const std::uint64_t there = end < 0 ? bytes : static_cast<std::uint64_t>(end);  // some descriptors have no size
  if (there < bytes) {
    return invalid_argument(doing + ": the imported memory has " + std::to_string(there) + " bytes");
  }
  auto known = structure<VkMemoryFdPropertiesKHR>(VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR);
  if (vk.GetMemoryFdPropertiesKHR(gpu.handle(), VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT, fd, &known) !=
      VK_SUCCESS) {
    return invalid_argument(doing + ": descriptor " + std::to_string(fd) + " is not a dma-buf of a supported kind");
  }
  PlainBuffer made{OwnedMemory(gpu), OwnedBuffer(gpu)};
  made.exported = Export::as_dma_buf;
  // Whole texels, where the memory has them.
  const std::uint64_t whole = std::min((bytes + 15) / 16 * 16, there);
  if (Status status = create(gpu, whole, true, made.buffer); !status.ok()) return status;
  VkMemoryRequirements needs{};
  vk.GetBufferMemoryRequirements(gpu.handle(), made.buffer.get(), &needs);
  const auto type = gpu.memory_type(needs.memoryTypeBits & known.memoryTypeBits, 0);
  if (!type) return unsupported(doing + ": no memory type of the device supports the import");
  UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return unavailable(doing + ": descriptor " + std::to_string(fd) + " cannot be duplicated");
  auto external = structure<VkImportMemoryFdInfoKHR>(VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
  external.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
  external.fd = own.get();
  auto memory = structure<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  memory.pNext = &external;
  memory.allocationSize = std::max(needs.size, there);
  memory.memoryTypeIndex = *type;
  Status status = bind_memory(gpu, memory, bytes, made);
  if (made.memory.get() != VK_NULL_HANDLE) (void)own.release();  // the driver's, once it is imported
  if (!status.ok()) return status;
  return made;
}

namespace {

constexpr std::uint64_t padding = 64;
constexpr std::uint64_t staging_bytes = std::uint64_t{4} << 20;
constexpr std::uint64_t most_uniform_bytes = 64 << 10;  // a dispatch reads the values of uniforms on the host

}  // namespace

Status Transfers::prepare() {
  if (commands_ != VK_NULL_HANDLE) return {};
  const DeviceFunctions& vk = gpu_->vk();
  auto staging = make_buffer(*gpu_, staging_bytes, Placement::readback);
  if (!staging) return staging.error();
  staging_ = std::move(*staging);
  auto timeline = structure<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  timeline.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &timeline, 0};
  done_ = OwnedSemaphore(*gpu_);
  Status status = gpu_->check(vk.CreateSemaphore(gpu_->handle(), &semaphore, nullptr, done_.out()), "a semaphore");
  if (!status.ok()) return status;
  auto pool = structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.queueFamilyIndex = gpu_->facts().queue_family;
  pool_ = OwnedCommandPool(*gpu_);
  status = gpu_->check(vk.CreateCommandPool(gpu_->handle(), &pool, nullptr, pool_.out()), "a command pool");
  if (!status.ok()) return status;
  const VkCommandBufferAllocateInfo one{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool_.get(),
                                        VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  return gpu_->check(vk.AllocateCommandBuffers(gpu_->handle(), &one, &commands_), "a command buffer");
}

Status Transfers::run(VkBuffer from, std::uint64_t from_offset, VkBuffer to, std::uint64_t to_offset,
                      std::uint64_t bytes) {
  const DeviceFunctions& vk = gpu_->vk();
  Status status = gpu_->check(vk.ResetCommandPool(gpu_->handle(), pool_.get(), 0), "resetting a command pool");
  auto begin = structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  if (status.ok()) status = gpu_->check(vk.BeginCommandBuffer(commands_, &begin), "recording a copy");
  if (!status.ok()) return status;
  const VkMemoryBarrier before{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                               VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                               VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
  const VkMemoryBarrier after{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT,
                              VK_ACCESS_HOST_READ_BIT | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
  constexpr VkPipelineStageFlags works = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  vk.CmdPipelineBarrier(commands_, works, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &before, 0, nullptr, 0, nullptr);
  const VkBufferCopy region{from_offset, to_offset, bytes};
  vk.CmdCopyBuffer(commands_, from, to, 1, &region);
  vk.CmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_TRANSFER_BIT,
                        VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &after, 0, nullptr, 0,
                        nullptr);
  status = gpu_->check(vk.EndCommandBuffer(commands_), "recording a copy");
  if (!status.ok()) return status;
  const std::uint64_t value = ++copies_;
  auto values = structure<VkTimelineSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &value;
  const VkSemaphore semaphore = done_.get();
  auto submit = structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submit.pNext = &values;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands_;
  submit.signalSemaphoreCount = 1;
  submit.pSignalSemaphores = &semaphore;
  {
    const std::lock_guard lock(gpu_->queue_mutex());
    status = gpu_->check(vk.QueueSubmit(gpu_->queue(), 1, &submit, VK_NULL_HANDLE), "submitting a copy");
  }
  if (!status.ok()) return status;
  const VkSemaphoreWaitInfo wait{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &semaphore, &value};
  status = gpu_->check(vk.WaitSemaphores(gpu_->handle(), &wait, std::numeric_limits<std::uint64_t>::max()),
                       "waiting for a copy");
  if (!status.ok()) {  // for want of memory, the copy may still run
    const std::lock_guard lock(gpu_->queue_mutex());
    vk.DeviceWaitIdle(gpu_->handle());
  }
  return status;
}

Status Transfers::write(VkBuffer to, std::uint64_t offset, std::span<const std::byte> from) {
  const std::lock_guard lock(mutex_);
  Status status = prepare();
  while (status.ok() && !from.empty()) {
    const std::size_t bytes = std::min<std::size_t>(from.size(), staging_bytes);
    std::memcpy(staging_.mapped, from.data(), bytes);
    status = run(staging_.buffer.get(), 0, to, offset, bytes);
    from = from.subspan(bytes);
    offset += bytes;
  }
  return status;
}

Status Transfers::read(VkBuffer from, std::uint64_t offset, std::span<std::byte> to) {
  const std::lock_guard lock(mutex_);
  Status status = prepare();
  while (status.ok() && !to.empty()) {
    const std::size_t bytes = std::min<std::size_t>(to.size(), staging_bytes);
    status = run(from, offset, staging_.buffer.get(), 0, bytes);
    if (status.ok()) std::memcpy(to.data(), staging_.mapped, bytes);
    to = to.subspan(bytes);
    offset += bytes;
  }
  return status;
}

Status Transfers::copy(VkBuffer from, VkBuffer to, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Status status = prepare();
  return status.ok() ? run(from, 0, to, 0, bytes) : status;
}

Result<std::unique_ptr<Buffer>> VulkanBuffer::create(std::shared_ptr<Gpu> gpu, std::shared_ptr<Transfers> transfers,
                                                     const BufferDesc& desc) {
  Gpu& device = *gpu;
  std::unique_ptr<VulkanBuffer> buffer(new VulkanBuffer(std::move(gpu), std::move(transfers), desc));
  if (desc.import_fd >= 0) {
    // The host reaches it by copies: its mapping is the other driver's business.
    auto imported = import_buffer(device, desc.bytes, desc.import_fd);
    if (!imported) return imported.error();
    buffer->main_ = std::move(*imported);
    return std::unique_ptr<Buffer>(std::move(buffer));
  }
  const std::uint64_t store = (desc.bytes + 2 * padding - 1) / padding * padding;
  if (desc.part_of != nullptr) {
    const auto& whole = static_cast<const VulkanBuffer&>(*desc.part_of);
    const bool fits = whole.gpu_.get() == &device && whole.usage_ == BufferUsage::storage &&
                      whole.main_.memory.get() != VK_NULL_HANDLE && desc.bytes <= whole.bytes_;
    if (!fits) {
      return invalid_argument(device.id() + ": part_of is a buffer of " + std::to_string(whole.bytes_) +
                              " bytes, expected a whole storage buffer of this device with at least " +
                              std::to_string(desc.bytes) + " bytes");
    }
    auto part = make_part(device, store, whole.main_);
    if (!part) return part.error();
    buffer->main_ = std::move(*part);
    return std::unique_ptr<Buffer>(std::move(buffer));
  }
  const bool mapped = device.unified_memory();
  const bool filled_by_host = desc.usage == BufferUsage::upload || desc.usage == BufferUsage::constant;
  if (!mapped && filled_by_host && device.writable_memory() && desc.bytes > most_uniform_bytes) {
    auto main = make_buffer(device, store, Placement::writable);
    if (main) {  // else the driver needs that memory itself
      buffer->main_ = std::move(*main);
      buffer->only_written_ = true;
      return std::unique_ptr<Buffer>(std::move(buffer));
    }
  }
  buffer->exports_ = desc.usage == BufferUsage::storage && device.facts().info.shares_memory;
  auto main = make_buffer(device, store, mapped ? Placement::host : Placement::device,
                          buffer->exports_ ? Export::as_dma_buf : Export::no);
  if (!main) return main.error();
  buffer->main_ = std::move(*main);
  if (mapped) return std::unique_ptr<Buffer>(std::move(buffer));
  if (desc.usage != BufferUsage::upload && desc.usage != BufferUsage::readback) {
    return std::unique_ptr<Buffer>(std::move(buffer));
  }
  buffer->comes_back_ = desc.usage == BufferUsage::readback;
  auto shadow = make_buffer(device, store, buffer->comes_back_ ? Placement::readback : Placement::host);
  if (!shadow) return shadow.error();
  buffer->shadow_ = std::move(*shadow);
  return std::unique_ptr<Buffer>(std::move(buffer));
}

Status VulkanBuffer::in_range(std::string_view doing, std::uint64_t offset, std::size_t bytes) const {
  if (offset <= bytes_ && bytes <= bytes_ - offset) return {};
  return invalid_argument(gpu_->id() + ": " + std::string(doing) + " " + std::to_string(bytes) + " bytes at offset " +
                          std::to_string(offset) + " exceeds the buffer of " + std::to_string(bytes_) + " bytes");
}

Status VulkanBuffer::write(std::uint64_t offset, std::span<const std::byte> from) noexcept try {
  if (Status status = in_range("writing", offset, from.size()); !status.ok() || from.empty()) return status;
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  if (main_.mapped != nullptr) {
    std::memcpy(main_.mapped + offset, from.data(), from.size());
    return {};
  }
  if (shadow_.mapped == nullptr) return transfers_->write(handle(), offset, from);
  std::memcpy(shadow_.mapped + offset, from.data(), from.size());
  newer_.store(true, std::memory_order_release);
  return {};
} catch (...) {
  return caught();
}

Status VulkanBuffer::read(std::uint64_t offset, std::span<std::byte> to) noexcept try {
  if (Status status = in_range("reading", offset, to.size()); !status.ok() || to.empty()) return status;
  if (Status lost = gpu_->alive(); !lost.ok()) return lost;
  const std::byte* const memory = comes_back_ ? shadow_.mapped : only_written_ ? nullptr : main_.mapped;
  if (memory != nullptr) {
    std::memcpy(to.data(), memory + offset, to.size());
    return {};
  }
  if (shadow_.mapped != nullptr && take_newer()) {
    if (Status status = transfers_->copy(shadow(), handle(), bytes_); !status.ok()) return status;
  }
  return transfers_->read(handle(), offset, to);
} catch (...) {
  return caught();
}

std::span<std::byte> VulkanBuffer::mapped() noexcept {
  if (main_.mapped == nullptr || only_written_) return {};
  return {main_.mapped, static_cast<std::size_t>(bytes_)};
}

std::span<const std::byte> VulkanBuffer::written() const noexcept {
  // The queue copies into a shadow only what comes back.
  const bool shadowed = comes_back_ || written_by() == 0;
  const std::byte* const memory = main_.mapped != nullptr ? main_.mapped : shadowed ? shadow_.mapped : nullptr;
  if (memory == nullptr || only_written_) return {};
  return {memory, static_cast<std::size_t>(bytes_)};
}

Result<UniqueFd> VulkanBuffer::export_fd() noexcept try {
  if (!exports_) {
    const bool shares = gpu_->facts().info.shares_memory;
    return unsupported(gpu_->id() + ": a buffer cannot be exported as a file descriptor: " +
                       (shares ? "expected a storage buffer" : gpu_->facts().info.name + " does not support dma-bufs"));
  }
  auto info = structure<VkMemoryGetFdInfoKHR>(VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR);
  info.memory = main_.memory.get();
  info.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
  int fd = -1;
  const VkResult made = gpu_->vk().GetMemoryFdKHR(gpu_->handle(), &info, &fd);
  if (Status status = gpu_->check(made, "exporting a buffer"); !status.ok()) return status;
  return UniqueFd(fd);
} catch (...) {
  return caught();
}

Result<VkBufferView> VulkanBuffer::texels(VkDescriptorType type, VkFormat format, std::uint64_t bytes) {
  const std::lock_guard lock(view_mutex_);
  const std::tuple key(type, format, bytes);
  if (const auto found = texels_.find(key); found != texels_.end()) return found->second.view.get();
  VkFormatProperties offered{};
  gpu_->api().vk().GetPhysicalDeviceFormatProperties(gpu_->facts().physical, format, &offered);
  const bool storage = type == VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
  const bool as_uniform = (offered.bufferFeatures & VK_FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT) != 0;
  const bool as_storage = (offered.bufferFeatures & VK_FORMAT_FEATURE_STORAGE_TEXEL_BUFFER_BIT) != 0;
  if (!(storage ? as_storage : as_uniform)) {
    return unsupported(gpu_->facts().info.name + " does not support " + (storage ? "storage" : "uniform") +
                       " texel buffers of VkFormat " + std::to_string(format));
  }
  Texels made{{}, OwnedBufferView(*gpu_)};
  auto info = structure<VkBufferViewCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO);
  info.buffer = handle();
  info.format = format;
  info.range = bytes;
  if (!as_uniform || !as_storage) {  // a format must be fit for all that its buffer may be used for
    auto alias =
        make_part(*gpu_, bytes, main_,
                  storage ? VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT : VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT);
    if (!alias) return alias.error();
    made.alias = std::move(*alias);
    info.buffer = made.alias.buffer.get();
  }
  const VkResult viewed = gpu_->vk().CreateBufferView(gpu_->handle(), &info, nullptr, made.view.out());
  if (Status status = gpu_->check(viewed, "a buffer view"); !status.ok()) return status;
  return texels_.emplace(key, std::move(made)).first->second.view.get();
}

Result<const PixelTexture*> VulkanBuffer::texture(VkImageViewType type, const TextureSource& form,
                                                  VkDescriptorType use) {
  const std::lock_guard lock(view_mutex_);
  for (const auto& texture : textures_) {
    if (texture->is(type, form, use)) return texture.get();
  }
  auto made = PixelTexture::create(*gpu_, type, form, use);
  if (!made) return made.error();
  return textures_.emplace_back(std::move(*made)).get();
}

}  // namespace kiln::vulkan
