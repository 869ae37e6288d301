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

// host: memory that the host reads and writes. device: the device's own. readback: likewise, fast to read.
enum class Placement : std::uint8_t { invalid = 0, host, readback, device };

enum class Export : std::uint8_t { no, as_dma_buf };

// unavailable: there is no memory for it.
Result<PlainBuffer> make_buffer(Gpu& gpu, std::uint64_t bytes, Placement placement, Export exported = Export::no);
// The memory behind a dma-buf, which stays the caller's. invalid_argument: it is smaller, or not a dma-buf.
Result<PlainBuffer> import_buffer(Gpu& gpu, std::uint64_t bytes, int fd);

}  // namespace kiln::vulkan
