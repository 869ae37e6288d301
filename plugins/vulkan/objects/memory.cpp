#include "objects/memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
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
Status create(Gpu& gpu, std::uint64_t bytes, bool shared, OwnedBuffer& buffer) {
  auto external = structure<VkExternalMemoryBufferCreateInfo>(VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  external.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
  auto info = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.pNext = shared ? &external : nullptr;
  info.size = bytes;
  info.usage = buffer_usage;
  return gpu.check(gpu.vk().CreateBuffer(gpu.handle(), &info, nullptr, buffer.out()), words_of(bytes));
}

Status bind_memory(Gpu& gpu, const VkMemoryAllocateInfo& info, std::uint64_t bytes, PlainBuffer& made) {
  const DeviceFunctions& vk = gpu.vk();
  Status status = gpu.check(vk.AllocateMemory(gpu.handle(), &info, nullptr, made.memory.out()), words_of(bytes));
  if (!status.ok()) return status;
  return gpu.check(vk.BindBufferMemory(gpu.handle(), made.buffer.get(), made.memory.get(), 0), words_of(bytes));
}

}  // namespace

Result<PlainBuffer> make_buffer(Gpu& gpu, std::uint64_t bytes, Placement placement, Export exported) {
  const DeviceFunctions& vk = gpu.vk();
  PlainBuffer made{OwnedMemory(gpu), OwnedBuffer(gpu), nullptr};
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

Result<PlainBuffer> make_part(Gpu& gpu, std::uint64_t bytes, const PlainBuffer& whole, Export exported) {
  PlainBuffer made{OwnedMemory(gpu), OwnedBuffer(gpu), whole.mapped};
  if (Status status = create(gpu, bytes, exported == Export::as_dma_buf, made.buffer); !status.ok()) return status;
  Status status = gpu.check(gpu.vk().BindBufferMemory(gpu.handle(), made.buffer.get(), whole.memory.get(), 0),
                            "a part of " + words_of(bytes));
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
    return invalid_argument(doing + ": descriptor " + std::to_string(fd) + " is no dma-buf that the driver takes");
  }
  PlainBuffer made{OwnedMemory(gpu), OwnedBuffer(gpu), nullptr};
  // Whole texels, where the memory has them.
  const std::uint64_t whole = std::min((bytes + 15) / 16 * 16, there);
  if (Status status = create(gpu, whole, true, made.buffer); !status.ok()) return status;
  VkMemoryRequirements needs{};
  vk.GetBufferMemoryRequirements(gpu.handle(), made.buffer.get(), &needs);
  const auto type = gpu.memory_type(needs.memoryTypeBits & known.memoryTypeBits, 0);
  if (!type) return unsupported(doing + ": the device has no kind of memory for it");
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

}  // namespace kiln::vulkan
