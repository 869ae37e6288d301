#include "amdgpu_pm4/packets/encoders.hpp"

#include <algorithm>

#include "amdgpu_pm4/packets/capabilities.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// Room for a packet of `body` dwords, its header written; the body's start. nullptr: it does not fit.
std::uint32_t* begin_packet(PacketWriter& out, Opcode opcode, std::size_t body) {
  if (body == 0 || body > largest_count) return nullptr;
  std::uint32_t* at = out.take(1 + body);
  if (at == nullptr) return nullptr;
  *at = packet_header(opcode, body);
  return at + 1;
}

template <std::size_t n>
bool append(PacketWriter& out, Opcode opcode, const std::uint32_t (&body)[n]) {
  std::uint32_t* at = begin_packet(out, opcode, n);
  if (at == nullptr) return false;
  std::copy_n(body, n, at);
  return true;
}

bool set_registers(PacketWriter& out, Opcode opcode, std::uint32_t index, std::uint32_t space, std::uint32_t space_end,
                   Register first, std::span<const std::uint32_t> values) {
  const std::uint32_t address = address_of(first);
  if (address < space || address >= space_end || address % 4 != 0) return false;
  if (values.empty() || values.size() > (space_end - address) / 4) return false;
  std::uint32_t* at = begin_packet(out, opcode, 1 + values.size());
  if (at == nullptr) return false;
  *at = set_register::offset.put((address - space) / 4) | set_register::index.put(index);
  std::copy(values.begin(), values.end(), at + 1);
  return true;
}

bool emit_dma(PacketWriter& out, std::uint32_t source_kind, std::uint64_t source, std::uint64_t destination,
              std::uint32_t bytes) {
  if (!dma_data::byte_count.holds(bytes)) return false;
  return append(
      out, Opcode::dma_data,
      {dma_data::src_sel.put(source_kind) | dma_data::dst_sel.put(dma_data::through_l2) | dma_data::cp_sync.put(1),
       low_dword(source), high_dword(source), low_dword(destination), high_dword(destination),
       dma_data::byte_count.put(bytes)});
}

}  // namespace

bool emit_fillers(PacketWriter& out, std::size_t dwords) noexcept {
  std::uint32_t* at = out.take(dwords);
  if (at == nullptr) return false;
  std::fill_n(at, dwords, filler_dword);
  return true;
}

bool emit_nop(PacketWriter& out, std::span<const std::uint32_t> payload) noexcept {
  std::uint32_t* at = begin_packet(out, Opcode::nop, payload.size());
  if (at == nullptr) return false;
  std::copy(payload.begin(), payload.end(), at);
  return true;
}

bool emit_set_sh_reg(PacketWriter& out, Register first, std::span<const std::uint32_t> values) noexcept {
  return set_registers(out, Opcode::set_sh_reg, 0, sh_space, sh_space_end, first, values);
}

bool emit_set_sh_reg(PacketWriter& out, Register which, std::uint32_t value) noexcept {
  return emit_set_sh_reg(out, which, std::span(&value, 1));
}

bool emit_set_sh_reg_index(PacketWriter& out, Register first, std::span<const std::uint32_t> values) noexcept {
  return set_registers(out, Opcode::set_sh_reg_index, set_register::through_cu_mask, sh_space, sh_space_end, first,
                       values);
}

bool emit_set_uconfig_reg(PacketWriter& out, Register which, std::uint32_t value) noexcept {
  return set_registers(out, Opcode::set_uconfig_reg, 0, uconfig_space, uconfig_space_end, which, std::span(&value, 1));
}

bool emit_dispatch_direct(PacketWriter& out, const std::array<std::uint32_t, 3>& groups,
                          std::uint32_t initiator) noexcept {
  return append(out, Opcode::dispatch_direct, {groups[0], groups[1], groups[2], initiator});
}

bool emit_dispatch_indirect(PacketWriter& out, std::uint64_t address, std::uint32_t initiator) noexcept {
  return append(out, Opcode::dispatch_indirect, {low_dword(address), high_dword(address), initiator});
}

bool emit_acquire_mem(PacketWriter& out, std::uint32_t gcr_cntl) noexcept {
  if ((gcr_cntl & ~known_bits(gcr::fields, in_both)) != 0) return false;
  constexpr std::uint32_t everything_low = ~0U, everything_high = 0x00FFFFFF, poll_interval = 10;
  return append(out, Opcode::acquire_mem,
                {0, everything_low, everything_high, 0, 0, acquire_mem::poll_interval.put(poll_interval), gcr_cntl});
}

bool emit_release_mem(PacketWriter& out, const Release& release) noexcept {
  constexpr std::uint32_t not_caches = release_mem::event_type.mask() | release_mem::event_index.mask();
  if ((release.cache_bits & not_caches) != 0) return false;
  constexpr std::uint32_t data_after_write = 3;
  const auto data = static_cast<std::uint32_t>(release.data);
  return append(out, Opcode::release_mem,
                {release_mem::event_type.put(static_cast<std::uint32_t>(release.event)) |
                     release_mem::event_index.put(event_index_end_of_pipe) | release.cache_bits,
                 release_mem::int_sel.put(release.data == ReleasedData::none ? 0 : data_after_write) |
                     release_mem::data_sel.put(data),
                 low_dword(release.address), high_dword(release.address), low_dword(release.value),
                 high_dword(release.value), 0});
}

bool emit_event_write(PacketWriter& out, Event event, std::uint32_t index) noexcept {
  if (!event_write::event_index.holds(index)) return false;
  return append(out, Opcode::event_write,
                {event_write::event_type.put(static_cast<std::uint32_t>(event)) | event_write::event_index.put(index)});
}

bool emit_write_data(PacketWriter& out, std::uint64_t address, std::span<const std::uint32_t> values) noexcept {
  if (values.empty()) return false;
  std::uint32_t* at = begin_packet(out, Opcode::write_data, 3 + values.size());
  if (at == nullptr) return false;
  at[0] = write_data::dst_sel.put(write_data::to_memory) | write_data::wr_confirm.put(1);
  at[1] = low_dword(address);
  at[2] = high_dword(address);
  std::copy(values.begin(), values.end(), at + 3);
  return true;
}

bool emit_copy_data(PacketWriter& out, const CopyData& copy) noexcept {
  return append(
      out, Opcode::copy_data,
      {copy_data::src_sel.put(static_cast<std::uint32_t>(copy.from)) | copy_data::dst_sel.put(write_data::to_memory) |
           copy_data::count_sel.put(copy.bits == CopyBits::b64 ? 1 : 0) | copy_data::wr_confirm.put(1),
       low_dword(copy.source), high_dword(copy.source), low_dword(copy.destination), high_dword(copy.destination)});
}

bool emit_dma_copy(PacketWriter& out, std::uint64_t destination, std::uint64_t source, std::uint32_t bytes) noexcept {
  return emit_dma(out, dma_data::through_l2, source, destination, bytes);
}

bool emit_dma_fill(PacketWriter& out, std::uint64_t destination, std::uint32_t value, std::uint32_t bytes) noexcept {
  return emit_dma(out, dma_data::fill, value, destination, bytes);
}

bool emit_wait_reg_mem(PacketWriter& out, const MemoryWait& wait) noexcept {
  constexpr std::uint32_t in_memory = 1, poll_interval = 4;
  return append(
      out, Opcode::wait_reg_mem,
      {wait_reg_mem::function.put(static_cast<std::uint32_t>(wait.function)) | wait_reg_mem::mem_space.put(in_memory),
       low_dword(wait.address), high_dword(wait.address), wait.reference, wait.mask,
       wait_reg_mem::poll_interval.put(poll_interval)});
}

bool emit_chain(PacketWriter& out, std::uint64_t address, std::uint32_t dwords) noexcept {
  if (!indirect_buffer::size.holds(dwords)) return false;
  return append(out, Opcode::indirect_buffer,
                {low_dword(address), high_dword(address),
                 indirect_buffer::size.put(dwords) | indirect_buffer::chain.put(1) | indirect_buffer::valid.put(1)});
}

}  // namespace kiln::amdgpu_pm4
