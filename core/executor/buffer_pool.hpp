// BufferPool: the device buffers of one slot, created on demand and reused by later jobs.
//
// A buffer has exactly the requested size: a program may query the length of a bound buffer, and a driver may compile
// again for another size.
// Thread-safety: none; one thread at a time. Ownership: owns the buffers; destroy it before their device.
#pragma once

#include <kiln/device.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::executor {

class BufferPool {
 public:
  // Returns a buffer for exclusive use until recycle(). Its contents are undefined.
  Result<Buffer*> take(Device& device, BufferUsage usage, std::uint64_t bytes);

  // Ends the job: all buffers may be reused. Retains those of this job and a bounded number of the others, the most
  // recently used first, so that a repeated job allocates nothing.
  void recycle() noexcept;
  void clear() noexcept { entries_.clear(); }

 private:
  struct Entry {
    std::unique_ptr<Buffer> buffer;
    BufferUsage usage = BufferUsage::invalid;
    std::uint64_t last_job = 0;
    bool taken = false;
  };

  std::vector<Entry> entries_;
  std::uint64_t job_ = 1;
};

}  // namespace kiln::executor
