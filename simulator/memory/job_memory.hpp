// Memory as a job sees it, with the L2 cache before it.
//
// L2Cache: a device's copies of the pages it has read or written, by buffer and page.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulator/memory/address_space.hpp"
#include "simulator/memory/device_memory.hpp"

namespace kiln::simulator {

// L2Cache: a device's copies of the pages it has read or written. A copy is by buffer and page, so two addresses of one
// buffer share it. It is infinitely large: nothing is evicted by chance, so missing maintenance shows every time.
//
// Thread-safety: page functions from many threads; invalidate, write_back and settle while no wave runs. One job at a
// time: an invalidation takes the pages from under every wave of the device.
// Ownership: copies live until purge() finds their buffer gone; holds no reference on a buffer.

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

// L2Buffer: L2's copies of one buffer's pages. A copy is `current` from its first use after an invalidation. Beside it
// lies a mark for each byte: whether the device wrote it since the last write-back.
//
// Thread-safety: page(), load() and store() from many threads; the others while no wave runs.
// Ownership: its L2Cache owns it; it owns the copies, and no reference on the buffer.

enum class L2Use : std::uint8_t { invalid = 0, read, write };

class L2Buffer {
 public:
  L2Buffer(L2Cache& cache, const BufferRef& buffer);
  L2Buffer(const L2Buffer&) = delete;
  L2Buffer& operator=(const L2Buffer&) = delete;
  ~L2Buffer();

  // The marks follow the page's bytes: see marks_of().
  std::byte* page(std::uint64_t index, L2Use use);
  static std::byte* marks_of(std::byte* page) noexcept { return page + Page::bytes; }
  // Inside one page; see DeviceMemory.
  void load(std::uint64_t index, std::size_t offset, std::span<std::byte> out);
  void store(std::uint64_t index, std::size_t offset, std::span<const std::byte> bytes);

  bool alive() const { return !buffer_.expired(); }
  void forget_writes();  // the cache was invalidated
  void write_back(L2Counters& counters);
  // Whether pages remain with bytes to write back.
  bool settle();

 private:
  struct Copy {
    std::atomic<std::uint64_t> epoch{0};  // of the cache when it was read; 0: never
    std::atomic<bool> written{false};     // given out for writing: its marks count
    std::unique_ptr<std::byte[]> data;    // Page::bytes, and as many marks
  };
  static constexpr std::size_t copies_a_block = 256;
  struct Block {
    std::array<Copy, copies_a_block> copies;
  };

  Copy* find(std::uint64_t index) const noexcept;
  Copy& made(std::uint64_t index);  // with the lock held
  bool current(const Copy& copy) const noexcept;
  void take_host_changes(Copy& copy, std::uint64_t index);
  std::byte* host_page(std::uint64_t index) const noexcept;

  L2Cache& cache_;
  std::weak_ptr<const BufferMemory> buffer_;
  std::byte* host_;
  std::mutex mutex_;
  std::vector<std::atomic<Block*>> blocks_;
  struct Written {
    std::uint64_t index = 0;  // of the page
    Copy* copy = nullptr;
  };
  std::vector<Written> written_;
};

// JobMemory: the DeviceMemory of one job: the address space of its submission, through the device's L2, restricted to
// the buffers of its list and the always-valid ones.
//
// Thread-safety: as DeviceMemory. Ownership: shares the address space, borrows the cache; the destructor settles it,
// and neither writes back nor invalidates: the kernel's own packets around a job do that.

class JobMemory final : public DeviceMemory {
 public:
  JobMemory(std::shared_ptr<const AddressSpace> space, std::span<const std::uint64_t> listed_buffers, L2Cache& l2);
  ~JobMemory() override;

  std::optional<Fault> page(std::uint64_t address, Access access, Page& out) override;
  bool resident(std::uint64_t address) const noexcept override;
  void invalidate_l2() override;
  void write_back_l2() override;
  std::optional<Fault> load(std::uint64_t address, std::span<std::byte> out) override;
  std::optional<Fault> store(std::uint64_t address, std::span<const std::byte> bytes) override;

 private:
  struct Place;  // a page of a buffer
  std::optional<Fault> find(std::uint64_t address, Access access, Place& out);

  std::shared_ptr<const AddressSpace> space_;
  std::vector<std::uint64_t> listed_;           // sorted
  std::vector<std::atomic<L2Buffer*>> copies_;  // by mapping; null: not asked for yet
  L2Cache& l2_;
};

}  // namespace kiln::simulator
