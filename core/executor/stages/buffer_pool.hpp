// BufferPool: the device buffers of one slot, made on demand and used again by later jobs.
//
// Thread-safety: none; one thread at a time. Ownership: owns the buffers; must die before their device.
// A buffer has exactly the size that was asked for: a program may query the length of what is bound to it, and a driver
// may compile anew for another size.
#pragma once

#include <kiln/device.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::executor {

class BufferPool {
 public:
  // A buffer that is nobody else's until recycle(). Its contents are undefined.
  Result<Buffer*> take(Device& device, BufferUsage usage, std::uint64_t bytes);

  // The job is over: all buffers may be taken again. Those of this job are kept, of the others a bounded number of the
  // most recently used, so that a job that is repeated allocates nothing.
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
