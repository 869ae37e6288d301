// L2Cache: a device's copies of the pages it has read or written. A copy is by buffer and page, so two addresses of one
// buffer share it. It is infinitely large: nothing is evicted by chance, so missing maintenance shows every time.
//
// Thread-safety: page functions from many threads; invalidate, write_back and settle while no wave runs. One job at a
// time: an invalidation takes the pages from under every wave of the device.
// Ownership: copies live until purge() finds their buffer gone; holds no reference on a buffer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "simulator/memory/buffer_memory.hpp"

namespace kiln::simulator {

class L2Buffer;

struct L2Counters {
  std::uint64_t pages_read = 0;          // copied from the host's memory
  std::uint64_t pages_written_back = 0;  // with bytes that the device wrote
  std::uint64_t bytes_written_back = 0;
  std::uint64_t invalidations = 0;
};

class L2Cache {
 public:
  L2Cache();
  L2Cache(const L2Cache&) = delete;
  L2Cache& operator=(const L2Cache&) = delete;
  ~L2Cache();

  L2Buffer& copies_of(const BufferRef& buffer);  // valid while the buffer lives

  // What was written and not written back is lost.
  void invalidate();
  // Byte by byte, only what the device wrote: what the host wrote beside it stays.
  void write_back();
  // After a job: its waves write no more, so pages without a mark need no look until they are written again.
  void settle();
  // Lets go of copies whose buffer is gone: call it when buffers were freed.
  void purge();
  L2Counters counters() const;

 private:
  void note_writes(L2Buffer& buffer);

  std::atomic<std::uint64_t> epoch_{1};  // one more with every invalidation: older copies are read again
  std::atomic<std::uint64_t> pages_read_{0};
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::unique_ptr<L2Buffer>> buffers_;
  L2Counters counters_;
  std::mutex written_mutex_;        // taken last
  std::vector<L2Buffer*> written_;  // those with pages that the device may have changed
  friend class L2Buffer;
};

}  // namespace kiln::simulator
