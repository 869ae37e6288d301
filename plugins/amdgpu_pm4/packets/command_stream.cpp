#include "amdgpu_pm4/packets/command_stream.hpp"

#include <algorithm>
#include <array>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/encoders.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// A chunk's end: fillers to the granule, and where another follows, the packet that chains to it.
constexpr std::size_t end_dwords = indirect_buffer_dwords + chunk_granule_dwords - 1;
constexpr std::size_t barrier_dwords = event_write_dwords + acquire_mem_dwords;
constexpr std::size_t dma_dwords = 7;
constexpr std::size_t wait_dwords = 7;
constexpr std::uint64_t chunk_alignment = 32;

static_assert(least_chunk_dwords >= end_dwords + most_ring_state_dwords);
static_assert(least_chunk_dwords >= end_dwords + RecordedDispatch::most_dwords + dispatch_direct_dwords);

constexpr std::uint32_t chain_control(std::size_t dwords) {
  return indirect_buffer::size.put(static_cast<std::uint32_t>(dwords)) | indirect_buffer::chain.put(1) |
         indirect_buffer::valid.put(1);
}

Status not_begun() { return internal_error("command stream: not begun, or already finished"); }

Status room_missing() { return internal_error("a packet is longer than the reserved space"); }

}  // namespace

CommandStream::CommandStream(const DeviceShape& shape, ChunkSource& chunks) : shape_(shape), source_(chunks) {}

Status CommandStream::fail(Status why) {
  failure_ = std::move(why).within("command stream");
  open_ = false;
  return failure_;
}

Status CommandStream::open_chunk() {
  auto chunk = source_.next_chunk();
  if (!chunk) return chunk.error();
  if (chunk->va % chunk_alignment != 0) {
    return invalid_argument("buffer address is " + std::to_string(chunk->va) + ", expected a multiple of " +
                            std::to_string(chunk_alignment));
  }
  if (chunk->dwords.size() < least_chunk_dwords) {
    return invalid_argument("buffer has " + std::to_string(chunk->dwords.size()) + " dwords, expected at least " +
                            std::to_string(least_chunk_dwords));
  }
  chunk_ = *chunk;
  chunk_.dwords = chunk_.dwords.first(std::min(chunk_.dwords.size(), most_chunk_dwords));
  out_ = PacketWriter(chunk_.dwords.first(chunk_.dwords.size() - end_dwords));
  return {};
}

void CommandStream::close_chunk(std::span<const std::uint32_t> last_packet) {
  std::size_t size = out_.size();
  while ((size + last_packet.size()) % chunk_granule_dwords != 0) chunk_.dwords[size++] = filler_dword;
  std::copy(last_packet.begin(), last_packet.end(), chunk_.dwords.data() + size);
  size += last_packet.size();
  if (size_of_next_ != nullptr) *size_of_next_ = chain_control(size);
  size_of_next_ = nullptr;
  closed_.push_back({chunk_.va, chunk_.dwords.first(size)});
}

Status CommandStream::make_room(std::size_t dwords) {
  if (!failure_.ok()) return failure_;
  if (!open_) return not_begun();
  const StreamChunk full = chunk_;
  const PacketWriter written = out_;
  if (Status status = open_chunk(); !status.ok()) return fail(std::move(status));
  const StreamChunk next = std::exchange(chunk_, full);
  const PacketWriter room = std::exchange(out_, written);
  std::array<std::uint32_t, indirect_buffer_dwords> chain{};
  PacketWriter end(chain);
  if (!emit_chain(end, next.va, 0)) return fail(room_missing());
  close_chunk(chain);
  size_of_next_ = full.dwords.data() + closed_.back().dwords.size() - indirect_buffer_dwords + indirect_buffer_size_at;
  chunk_ = next;
  out_ = room;
  return dwords <= out_.left() ? ok_status() : fail(room_missing());
}

Status CommandStream::begin() {
  failure_ = {};
  closed_.clear();
  size_of_next_ = nullptr;
  state_size_ = 0;
  if (shape_.generation == Generation::invalid) return fail(unsupported("unknown device generation"));
  if (Status status = open_chunk(); !status.ok()) return fail(std::move(status));
  if (!emit_ring_state(out_, capabilities_of(shape_.generation))) return fail(room_missing());
  open_ = true;
  return {};
}

Status CommandStream::dispatch(const RecordedDispatch& recorded, const DispatchArguments& arguments) {
  const auto state = recorded.state();
  if (Status status = reserve(state.size() + dispatch_direct_dwords); !status.ok()) return status;
  if (std::equal(state.begin(), state.end(), state_.begin(), state_.begin() + state_size_)) {
    const bool same_arguments = std::exchange(kernarg_va_, arguments.kernarg_va) == arguments.kernarg_va;
    const bool fits = same_arguments ? recorded.append_launch(out_, arguments) : recorded.append_again(out_, arguments);
    return fits ? ok_status() : fail(room_missing());
  }
  kernarg_va_ = arguments.kernarg_va;
  std::copy(state.begin(), state.end(), state_.begin());
  state_size_ = state.size();
  return recorded.append(out_, arguments) ? ok_status() : fail(room_missing());
}

Status CommandStream::barrier() {
  if (Status status = reserve(barrier_dwords); !status.ok()) return status;
  const bool fits = emit_event_write(out_, Event::cs_partial_flush, event_index_flush) &&
                    emit_acquire_mem(out_, acquire_after_dispatch);
  return fits ? ok_status() : fail(room_missing());
}

Status CommandStream::copy(std::uint64_t destination, std::uint64_t source, std::uint64_t bytes) {
  constexpr std::uint64_t most = most_dma_bytes / 4096 * 4096;
  for (std::uint64_t done = 0; done < bytes;) {
    if (Status status = reserve(dma_dwords); !status.ok()) return status;
    const std::uint64_t part = std::min(bytes - done, most);
    if (!emit_dma_copy(out_, destination + done, source + done, static_cast<std::uint32_t>(part))) {
      return fail(room_missing());
    }
    done += part;
  }
  return failure_;
}

Status CommandStream::fill(std::uint64_t destination, std::uint32_t value, std::uint64_t bytes) {
  constexpr std::uint64_t most = most_dma_bytes / 4096 * 4096;
  for (std::uint64_t done = 0; done < bytes;) {
    if (Status status = reserve(dma_dwords); !status.ok()) return status;
    const std::uint64_t part = std::min(bytes - done, most);
    if (!emit_dma_fill(out_, destination + done, value, static_cast<std::uint32_t>(part))) return fail(room_missing());
    done += part;
  }
  return failure_;
}

Status CommandStream::wait(std::uint64_t address, std::uint32_t reference, std::uint32_t mask) {
  if (Status status = reserve(wait_dwords); !status.ok()) return status;
  return emit_wait_reg_mem(out_, {Compare::not_less, address, reference, mask}) ? ok_status() : fail(room_missing());
}

Status CommandStream::timestamp(std::uint64_t address) {
  if (Status status = reserve(release_mem_dwords); !status.ok()) return status;
  return emit_release_mem(out_, {Event::bottom_of_pipe_ts, 0, ReleasedData::clock, address, 0}) ? ok_status()
                                                                                                : fail(room_missing());
}

Status CommandStream::signal(std::uint64_t address, std::uint64_t value) {
  if (Status status = reserve(release_mem_dwords); !status.ok()) return status;
  const Release release{Event::cache_flush_and_inv_ts, release_to_host, ReleasedData::value_64, address, value};
  return emit_release_mem(out_, release) ? ok_status() : fail(room_missing());
}

Result<std::span<const CommandBuffer>> CommandStream::finish() {
  if (!failure_.ok()) return failure_;
  if (!open_) return not_begun();
  close_chunk({});
  open_ = false;
  return std::span<const CommandBuffer>(closed_);
}

namespace {

constexpr std::uint32_t every_compute_unit = ~0U;
constexpr std::uint32_t start_delay = 0x20;
constexpr std::uint32_t groups_interleaved = 64;

}  // namespace

// The order is RADV's: see docs/amdgpu-dispatch.md.
bool emit_ring_state(PacketWriter& out, const Capabilities& capabilities) noexcept {
  constexpr std::array<std::uint32_t, 3> start{};
  constexpr std::array two_engines{every_compute_unit, every_compute_unit};
  constexpr std::array four_engines{every_compute_unit, every_compute_unit, every_compute_unit, every_compute_unit};
  constexpr std::array<std::uint32_t, 4> accumulators{};
  return emit_acquire_mem(out, acquire_after_host) && emit_set_sh_reg(out, Register::start_x, start) &&
         emit_set_sh_reg(out, Register::static_thread_mgmt_se0, two_engines) &&
         emit_set_sh_reg(out, Register::static_thread_mgmt_se2, two_engines) &&
         (!capabilities.coherence_start_delay ||
          emit_set_uconfig_reg(out, Register::cp_coher_start_delay, start_delay)) &&
         emit_set_sh_reg(out, Register::user_accum_0, accumulators) &&
         (capabilities.shader_engine_registers <= 4 ||
          emit_set_sh_reg(out, Register::static_thread_mgmt_se4, four_engines)) &&
         (!capabilities.dispatch_interleave || emit_set_sh_reg(out, Register::dispatch_interleave, groups_interleaved));
}

}  // namespace kiln::amdgpu_pm4
