// Buffer: memory that a device's programs can bind.
//
// Thread-safety: any thread may call; the caller orders accesses against the dispatches that use the buffer.
// Ownership: owned by whoever created it; must die before its Device, and not before the last dispatch that binds it.
#pragma once

#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace kiln {

// An owned file descriptor: closed by the destructor. Moved, never copied.
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
  storage,   // scratch and packed forms: programs only, as a rule
  constant,  // written once by the host before its first dispatch, then read-only: a device may keep packed forms with
             // it
};

struct BufferDesc {
  std::uint64_t bytes = 0;
  BufferUsage usage = BufferUsage::invalid;
  // Not empty: the buffer shall be exactly this host memory, without a copy (64-byte aligned; it outlives the buffer).
  // unsupported where DeviceInfo::wraps_host_memory is false. REQUIRES: host.size() == bytes.
  std::span<std::byte> host;
  // Not negative: import the memory behind this descriptor (dma-buf); the device duplicates it. Otherwise typed
  // unsupported where DeviceInfo::shares_memory is false.
  int import_fd = -1;
};

class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  virtual ~Buffer();

  virtual std::uint64_t bytes() const noexcept = 0;
  // invalid_argument where the range leaves the buffer: nothing is transferred then.
  virtual Status write(std::uint64_t offset, std::span<const std::byte> from) noexcept = 0;
  virtual Status read(std::uint64_t offset, std::span<std::byte> to) noexcept = 0;
  // The buffer's memory where the host can touch it at any time, else empty.
  virtual std::span<std::byte> mapped() noexcept = 0;
  // A descriptor that another device or API can import. Optional: unsupported unless DeviceInfo::shares_memory.
  virtual Result<UniqueFd> export_fd() noexcept = 0;
};

}  // namespace kiln
