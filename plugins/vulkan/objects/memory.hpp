// Memory of a device with a buffer over it: its own, or another driver's by file descriptor.
//
// Thread-safety: functions from any thread. Ownership: a PlainBuffer is destroyed before its device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "objects/gpu.hpp"

namespace kiln::vulkan {

// A buffer with memory of its own, mapped where the host can reach it.
struct PlainBuffer {
  OwnedMemory memory;  // destroyed after the buffer
  OwnedBuffer buffer;
  std::byte* mapped = nullptr;
};

// host: memory that the host reads and writes. readback: likewise, fast to read. device: the device's own. writable: the
// device's own, which the host writes to; only where Gpu::writable_memory().
enum class Placement : std::uint8_t { invalid = 0, host, readback, device, writable };

enum class Export : std::uint8_t { no, as_dma_buf };

// unavailable: there is no memory for it.
Result<PlainBuffer> make_buffer(Gpu& gpu, std::uint64_t bytes, Placement placement, Export exported = Export::no);
// A buffer of `bytes` bytes over the beginning of the memory of `whole`, which is as large and outlives it.
Result<PlainBuffer> make_part(Gpu& gpu, std::uint64_t bytes, const PlainBuffer& whole, Export exported);
// The memory behind a dma-buf, which stays the caller's. invalid_argument: it is smaller, or not a dma-buf.
Result<PlainBuffer> import_buffer(Gpu& gpu, std::uint64_t bytes, int fd);

}  // namespace kiln::vulkan
