// Buffer: device memory that programs can bind.
//
// Thread-safety: every method from any thread. The caller must order accesses against dispatches that use the buffer.
// Ownership: the creator owns the buffer and destroys it after the last dispatch that binds it and before its Device.
// Errors: every fallible method returns a Status. Sizes and offsets are in bytes.
//
//   auto buffer = device.create_buffer({.bytes = 4096, .usage = kiln::BufferUsage::storage, .host = {}});
//   if (!buffer) return buffer.error();
//   if (kiln::Status status = (*buffer)->write(0, bytes); !status.ok()) return status;
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace [[gnu::visibility("default")]] kiln {

// An owned file descriptor. Movable; the destructor closes it.
class UniqueFd {
 public:
  UniqueFd() noexcept = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd();

  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

enum class BufferUsage : std::uint8_t {
  invalid = 0,
  upload,    // written by the host for each job, read by programs
  readback,  // written by programs, read by the host
  storage,   // intermediate data and packed forms: normally used by programs only
  constant,  // written once by the host before its first dispatch, then read-only: a device may store packed forms with
             // the buffer
};

struct BufferDesc {
  std::uint64_t bytes = 0;
  BufferUsage usage = BufferUsage::invalid;
  // Not empty: the buffer uses exactly this host memory without a copy. It must be 64-byte aligned and outlive the
  // buffer. unsupported: DeviceInfo::wraps_host_memory is false. REQUIRES: host.size() == bytes.
  std::span<std::byte> host;
  // Not negative: imports the memory of this descriptor (dma-buf); the device duplicates the descriptor. unsupported:
  // DeviceInfo::shares_memory is false.
  int import_fd = -1;
  // Not null: the new buffer uses the first `bytes` bytes of the memory of `part_of`. REQUIRES: `part_of` has at least
  // `bytes` bytes, the same device, usage storage and no `part_of`, and it outlives the new buffer. The caller orders
  // accesses to both buffers. unsupported: DeviceInfo::shares_buffers is false.
  class Buffer* part_of = nullptr;
};

class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  virtual ~Buffer();

  virtual std::uint64_t bytes() const noexcept = 0;
  // invalid_argument: the range exceeds the buffer; nothing is transferred.
  virtual Status write(std::uint64_t offset, std::span<const std::byte> from) noexcept = 0;
  virtual Status read(std::uint64_t offset, std::span<std::byte> to) noexcept = 0;
  // Returns the buffer's memory if the host can access it at any time, otherwise an empty span.
  virtual std::span<std::byte> mapped() noexcept = 0;
  // Exports a descriptor for another device or API. unsupported: DeviceInfo::shares_memory is false.
  virtual Result<UniqueFd> export_fd() noexcept = 0;
};

}  // namespace kiln
