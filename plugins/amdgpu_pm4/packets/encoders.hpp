// Encoders: one function a packet, over a writer that never passes the end of its room.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "amdgpu_pm4/packets/packet_fields.hpp"
#include "amdgpu_pm4/packets/registers.hpp"

namespace kiln::amdgpu_pm4 {

// The two dwords of an address or a value of 64 bits.
constexpr std::uint32_t low_dword(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t high_dword(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

// PacketWriter: appends dwords to room that somebody else owns, and never past its end.
//
// Thread-safety: one thread at a time. Ownership: borrows the room, which may be write-combined memory: dwords are
// written once, upwards, and never read back.
class PacketWriter {
 public:
  PacketWriter() = default;
  explicit PacketWriter(std::span<std::uint32_t> room) noexcept : room_(room) {}

  std::size_t size() const noexcept { return size_; }  // dwords written
  std::size_t left() const noexcept { return room_.size() - size_; }
  std::span<const std::uint32_t> written() const noexcept { return room_.first(size_); }

  // The next `count` dwords, which count as written: the caller writes each. nullptr where fewer are left; then nothing
  // is taken.
  std::uint32_t* take(std::size_t count) noexcept {
    if (count > left()) return nullptr;
    std::uint32_t* at = room_.data() + size_;
    size_ += count;
    return at;
  }

 private:
  std::span<std::uint32_t> room_;
  std::size_t size_ = 0;
};

// One function a packet. Each appends the whole packet and answers true; or appends nothing and answers false, where
// the writer has no room left for all of it or a value does not fit its field. What is sensible or allowed is the
// validator's business, what a generation has the Capabilities'.
//
// Thread-safety: as PacketWriter. Ownership: borrows everything for the call.

// Dwords that a packet takes.
inline constexpr std::size_t dispatch_direct_dwords = 5;
inline constexpr std::size_t dispatch_indirect_dwords = 4;
inline constexpr std::size_t acquire_mem_dwords = 8;
inline constexpr std::size_t release_mem_dwords = 8;
inline constexpr std::size_t event_write_dwords = 2;
inline constexpr std::size_t indirect_buffer_dwords = 4;
inline constexpr std::size_t indirect_buffer_size_at = 3;  // which of them holds the size

// Nothing, `dwords` long: one-dword fillers, or a NOP with a body of zeros where a payload is wanted.
[[nodiscard]] bool emit_fillers(PacketWriter& out, std::size_t dwords) noexcept;
[[nodiscard]] bool emit_nop(PacketWriter& out, std::span<const std::uint32_t> payload) noexcept;  // 1 dword at least

// Consecutive registers from `first`, which lies in the packet's register space; 1 value at least.
[[nodiscard]] bool emit_set_sh_reg(PacketWriter& out, Register first, std::span<const std::uint32_t> values) noexcept;
[[nodiscard]] bool emit_set_sh_reg(PacketWriter& out, Register which, std::uint32_t value) noexcept;
// Compute-unit masks, narrowed by the mask that the kernel imposes.
[[nodiscard]] bool emit_set_sh_reg_index(PacketWriter& out, Register first,
                                         std::span<const std::uint32_t> values) noexcept;
[[nodiscard]] bool emit_set_uconfig_reg(PacketWriter& out, Register which, std::uint32_t value) noexcept;

[[nodiscard]] bool emit_dispatch_direct(PacketWriter& out, const std::array<std::uint32_t, 3>& groups,
                                        std::uint32_t initiator) noexcept;
// The compute ring's form. Three dwords of group counts lie at `address`.
[[nodiscard]] bool emit_dispatch_indirect(PacketWriter& out, std::uint64_t address, std::uint32_t initiator) noexcept;

// Waits for the caches' work that `gcr_cntl` (fields of namespace gcr) asks for, over all of memory.
[[nodiscard]] bool emit_acquire_mem(PacketWriter& out, std::uint32_t gcr_cntl) noexcept;

enum class ReleasedData : std::uint8_t { none = 0, value_32 = 1, value_64 = 2, clock = 3 };

struct Release {
  Event event = Event::invalid;
  std::uint32_t cache_bits = 0;  // cache fields of namespace release_mem, put together
  ReleasedData data = ReleasedData::none;
  std::uint64_t address = 0;
  std::uint64_t value = 0;
};
// At the end of the pipe: after all work before it, and without an interrupt, which is the kernel's to ask for.
[[nodiscard]] bool emit_release_mem(PacketWriter& out, const Release& release) noexcept;

[[nodiscard]] bool emit_event_write(PacketWriter& out, Event event, std::uint32_t index) noexcept;

// To memory, in order with what follows; 1 dword at least.
[[nodiscard]] bool emit_write_data(PacketWriter& out, std::uint64_t address,
                                   std::span<const std::uint32_t> values) noexcept;

enum class CopySource : std::uint8_t { memory = 1, l2 = 2, immediate = 5, clock = 9 };
enum class CopyBits : std::uint8_t { b32, b64 };

struct CopyData {
  CopySource from = CopySource::memory;
  std::uint64_t source = 0;  // an address, or the immediate; of the clock: 0
  std::uint64_t destination = 0;
  CopyBits bits = CopyBits::b32;
};
[[nodiscard]] bool emit_copy_data(PacketWriter& out, const CopyData& copy) noexcept;

inline constexpr std::uint32_t most_dma_bytes = (1U << 26) - 1;

// By the command processor's own engine, through L2; done before what follows begins.
[[nodiscard]] bool emit_dma_copy(PacketWriter& out, std::uint64_t destination, std::uint64_t source,
                                 std::uint32_t bytes) noexcept;
[[nodiscard]] bool emit_dma_fill(PacketWriter& out, std::uint64_t destination, std::uint32_t value,
                                 std::uint32_t bytes) noexcept;

enum class Compare : std::uint8_t { always, less, less_or_equal, equal, not_equal, not_less, greater };

struct MemoryWait {
  Compare function = Compare::equal;
  std::uint64_t address = 0;
  std::uint32_t reference = 0;  // (value at address & mask) FUNCTION reference
  std::uint32_t mask = ~0U;
};
[[nodiscard]] bool emit_wait_reg_mem(PacketWriter& out, const MemoryWait& wait) noexcept;

// Jumps there and does not come back: must be the last packet of its buffer.
[[nodiscard]] bool emit_chain(PacketWriter& out, std::uint64_t address, std::uint32_t dwords) noexcept;

// CommandBuffer: dwords that a command processor is given, where it finds them and where the host reads them.
//
// Thread-safety: value. Ownership: borrows the dwords.
struct CommandBuffer {
  std::uint64_t va = 0;
  std::span<const std::uint32_t> dwords;  // REQUIRES: memory that is cheap to read, so not write-combined
};

// Addresses are 48 bits, their top bit repeated above. Fields of packets and registers may leave those copies out.
constexpr std::uint64_t canonical(std::uint64_t address) noexcept {
  constexpr std::uint64_t top = std::uint64_t{1} << 47;
  return ((address & (2 * top - 1)) ^ top) - top;
}

}  // namespace kiln::amdgpu_pm4
