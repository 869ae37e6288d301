// The command stream of one submission: ring state, cache actions, dispatches, reports.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <kiln/status.hpp>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/packets/packet_fields.hpp"
#include "amdgpu_pm4/packets/recorded_dispatch.hpp"

namespace kiln::amdgpu_pm4 {

// CommandStream: one submission's packets for a compute ring, in buffers that are asked for as they fill and are
// chained.
//
//   begin() · any of dispatch, barrier, copy, fill, wait, timestamp, signal · finish()
//
// Dispatches that no barrier parts may overlap and run in any order. Nothing is counted on that another submission left
// in registers or caches. A failed stream stays failed until the next begin().
// Thread-safety: one thread at a time. Ownership: borrows its ChunkSource, and the chunks until begin() or its end.
// Allocates nothing once it has held as many chunks before.

struct StreamChunk {
  std::span<std::uint32_t> dwords;  // as CommandBuffer's: not write-combined
  std::uint64_t va = 0;             // a multiple of 32
};

class ChunkSource {
 public:
  ChunkSource() = default;
  ChunkSource(const ChunkSource&) = delete;
  ChunkSource& operator=(const ChunkSource&) = delete;
  virtual ~ChunkSource() = default;

  // Room that no submission in flight reads.
  virtual Result<StreamChunk> next_chunk() noexcept = 0;
};

inline constexpr std::size_t least_chunk_dwords = 96;
inline constexpr std::size_t most_chunk_dwords = 0xFFFF8;  // a buffer's size has 20 bits
inline constexpr std::size_t chunk_granule_dwords = 8;

class CommandStream {
 public:
  CommandStream(const DeviceShape& shape, ChunkSource& chunks);

  // Takes a chunk and writes what every submission starts with: caches made to see what the host wrote, and the state
  // that no dispatch sets.
  Status begin();
  Status dispatch(const RecordedDispatch& recorded, const DispatchArguments& arguments);
  // What follows sees what the dispatches, copies and fills before it wrote.
  Status barrier();
  // By the command processor, in order: a slow engine, for small things. Multiples of 4 bytes at multiples of 4.
  Status copy(std::uint64_t destination, std::uint64_t source, std::uint64_t bytes);
  Status fill(std::uint64_t destination, std::uint32_t value, std::uint64_t bytes);
  // Until (value at address & mask) >= reference. The validator must know who ends it.
  Status wait(std::uint64_t address, std::uint32_t reference, std::uint32_t mask);
  // The device's clock, once all before is done: 8 bytes.
  Status timestamp(std::uint64_t address);
  // `value` at `address` (8 bytes), once all before is done and the host can see it.
  Status signal(std::uint64_t address, std::uint64_t value);

  // The buffers in order; the first is what is submitted. Valid until begin().
  Result<std::span<const CommandBuffer>> finish();

 private:
  Status open_chunk();
  void close_chunk(std::span<const std::uint32_t> last_packet);
  Status reserve(std::size_t dwords) { return open_ && dwords <= out_.left() ? Status() : make_room(dwords); }
  Status make_room(std::size_t dwords);
  Status fail(Status why);

  DeviceShape shape_;
  ChunkSource& source_;
  std::vector<CommandBuffer> closed_;
  StreamChunk chunk_;                                                 // being written
  PacketWriter out_;                                                  // into it, less the room for its end
  std::uint32_t* size_of_next_ = nullptr;                             // in the packet that chains to chunk_
  std::array<std::uint32_t, RecordedDispatch::most_dwords> state_{};  // that the last dispatch left
  std::size_t state_size_ = 0;
  std::uint64_t kernarg_va_ = 0;  // the address of its arguments
  bool open_ = false;             // begun, not finished, and not failed
  Status failure_;
};

// What a compute ring does about caches, and when. Vector (GLV), scalar (GLK) and instruction (GLI) caches and the
// shader arrays' L1 (GL1) are not coherent with each other; L2 (GL2, its metadata GLM) is shared by the whole GPU, and
// the host is behind it.
//
// Thread-safety and ownership: constants.

// A dispatch reads what an earlier one of the queue wrote: 0x380.
inline constexpr std::uint32_t acquire_after_dispatch = gcr::glk_inv.put(1) | gcr::glv_inv.put(1) | gcr::gl1_inv.put(1);

// The first dispatch of a submission reads what the host wrote, its own code included: 0xC3B1.
inline constexpr std::uint32_t acquire_after_host = acquire_after_dispatch | gcr::gli_inv.put(1) | gcr::glm_wb.put(1) |
                                                    gcr::glm_inv.put(1) | gcr::gl2_inv.put(1) | gcr::gl2_wb.put(1);

// The host reads what dispatches wrote; in RELEASE_MEM's bits: 0x603000.
inline constexpr std::uint32_t release_to_host =
    release_mem::glm_wb.put(1) | release_mem::glm_inv.put(1) | release_mem::gl2_wb.put(1) | release_mem::seq.put(1);

// What every submission starts with: registers keep what other contexts left in them, so all that no dispatch sets is
// set here.
//
// Thread-safety and ownership: a function without state.

inline constexpr std::size_t most_ring_state_dwords = 40;

// false: no room; what was written then is not whole.
[[nodiscard]] bool emit_ring_state(PacketWriter& out, const Capabilities& capabilities) noexcept;

}  // namespace kiln::amdgpu_pm4
