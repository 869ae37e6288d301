// What PacketCheck says of packets that read and write memory, and of waits for what is written there.
#include <algorithm>

#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/safety/packet_check.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// The wait's comparison, of a value that was written.
bool satisfied(std::uint32_t function, std::uint32_t value, std::uint32_t reference) {
  switch (static_cast<Compare>(function)) {
    case Compare::always:
      return true;
    case Compare::less:
      return value < reference;
    case Compare::less_or_equal:
      return value <= reference;
    case Compare::equal:
      return value == reference;
    case Compare::not_equal:
      return value != reference;
    case Compare::not_less:
      return value >= reference;
    case Compare::greater:
      return value > reference;
  }
  return false;
}

// Whether any value at all can end the wait.
bool satisfiable(std::uint32_t function, std::uint32_t reference, std::uint32_t mask) {
  switch (static_cast<Compare>(function)) {
    case Compare::always:
    case Compare::less_or_equal:  // 0 is there with every mask
      return true;
    case Compare::less:
      return reference != 0;
    case Compare::equal:
      return (reference & ~mask) == 0;
    case Compare::not_equal:
      return mask != 0 || reference != 0;
    case Compare::not_less:
      return mask >= reference;
    case Compare::greater:
      return mask > reference;
  }
  return false;
}

}  // namespace

Status PacketCheck::release(Body body) {
  using namespace release_mem;
  const auto event = static_cast<Event>(event_type.of(body[0]));
  if ((event != Event::cache_flush_and_inv_ts && event != Event::bottom_of_pipe_ts) ||
      event_index.of(body[0]) != event_index_end_of_pipe) {
    return wrong_word(1, "EVENT", body[0], "CACHE_FLUSH_AND_INV_TS or BOTTOM_OF_PIPE_TS with index 5");
  }
  constexpr std::uint32_t caches = glm_wb.mask() | glm_inv.mask() | glv_inv.mask() | gl1_inv.mask() | gl2_inv.mask() |
                                   gl2_wb.mask() | release_mem::seq.mask() | event_type.mask() | event_index.mask();
  if ((body[0] & ~caches) != 0) return wrong_word(1, "EVENT", body[0], "no bits beside " + hex_text(caches));
  const std::uint32_t interrupt = int_sel.of(body[1]), data = data_sel.of(body[1]);
  if (interrupt != 0 && interrupt != 3)
    return wrong_word(2, "INT_SEL", interrupt, "0 or 3: interrupts are the kernel's");
  if (data > 3) return wrong_word(2, "DATA_SEL", data, "0 to 3");
  if (dst_sel.of(body[1]) > 1) return wrong_word(2, "DST_SEL", dst_sel.of(body[1]), "0 or 1: memory");
  if (body[6] != 0) return wrong_word(7, "INT_CTXID", body[6], "0");
  if (data == 0) return {};
  const std::uint64_t va = canonical(address_at(body, 2)), bytes = data == 1 ? 4 : 8;
  if (Status status = check_aligned(va, bytes, "what RELEASE_MEM writes"); !status.ok()) return status;
  if (data != 3) {
    remember(va, body[4]);
    if (data == 2) remember(va + 4, body[5]);
  }
  return finder_.check(va, bytes, may_write, "what RELEASE_MEM writes");
}

Status PacketCheck::write(Body body) {
  const std::uint32_t place = write_data::dst_sel.of(body[0]);
  if (place != write_data::to_memory && place != write_data::to_l2) {
    return wrong_word(1, "DST_SEL", place, "5 or 2: memory");
  }
  if (write_data::engine_sel.of(body[0]) != 0)
    return wrong_word(1, "ENGINE_SEL", write_data::engine_sel.of(body[0]), "0");
  if (write_data::wr_one_addr.of(body[0]) != 0) return wrong_word(1, "WR_ONE_ADDR", 1, "0");
  const std::uint64_t va = canonical(address_at(body, 1));
  if (Status status = check_aligned(va, 4, "what WRITE_DATA writes"); !status.ok()) return status;
  remember(va, body[3]);
  return finder_.check(va, 4 * (body.size() - 3), may_write, "what WRITE_DATA writes");
}

Status PacketCheck::copy(Body body) {
  using namespace copy_data;
  const std::uint32_t from = src_sel.of(body[0]), to = dst_sel.of(body[0]);
  const std::uint64_t bytes = count_sel.of(body[0]) != 0 ? 8 : 4;
  if (to != write_data::to_memory && to != write_data::to_l2) return wrong_word(1, "DST_SEL", to, "5 or 2: memory");
  switch (static_cast<CopySource>(from)) {
    case CopySource::immediate:
    case CopySource::clock:
      break;
    case CopySource::memory:
    case CopySource::l2: {
      if (!is_address(address_at(body, 1)))
        return wrong_word(3, "SRC_HI", body[2], "the upper half of a 48-bit address");
      const std::uint64_t source = canonical(address_at(body, 1));
      if (Status status = check_aligned(source, bytes, "what COPY_DATA reads"); !status.ok()) return status;
      if (Status status = finder_.check(source, bytes, may_read, "what COPY_DATA reads"); !status.ok()) return status;
      break;
    }
    default:
      return wrong_word(1, "SRC_SEL", from, "memory, an immediate or the clock");
  }
  if (!is_address(address_at(body, 3))) return wrong_word(5, "DST_HI", body[4], "the upper half of a 48-bit address");
  const std::uint64_t va = canonical(address_at(body, 3));
  if (Status status = check_aligned(va, bytes, "what COPY_DATA writes"); !status.ok()) return status;
  return finder_.check(va, bytes, may_write, "what COPY_DATA writes");
}

Status PacketCheck::dma(Body body) {
  using namespace dma_data;
  const std::uint32_t from = src_sel.of(body[0]), to = dst_sel.of(body[0]);
  if (engine_sel.of(body[0]) != 0) return wrong_word(1, "ENGINE_SEL", 1, "0");
  if (to != 0 && to != through_l2) return wrong_word(1, "DST_SEL", to, "0 or 3: memory");
  if (from != 0 && from != through_l2 && from != fill)
    return wrong_word(1, "SRC_SEL", from, "0, 2 or 3: memory or a fill");
  if (cp_sync.of(body[0]) == 0) return wrong_word(1, "CP_SYNC", 0, "1: what follows may depend on it");
  constexpr std::uint32_t plain = byte_count.mask() | raw_wait.mask();
  if ((body[5] & ~plain) != 0) return wrong_word(6, "COMMAND", body[5], "no bits beside " + hex_text(plain));
  const std::uint64_t bytes = byte_count.of(body[5]);
  if (bytes == 0 || bytes % 4 != 0)
    return wrong_word(6, "BYTE_COUNT", byte_count.of(body[5]), "a multiple of 4, at least 4");
  if (from != fill) {
    if (!is_address(address_at(body, 1))) return wrong_word(3, "SRC_HI", body[2], "the upper half of a 48-bit address");
    const std::uint64_t source = canonical(address_at(body, 1));
    if (Status status = check_aligned(source, 4, "what DMA_DATA reads"); !status.ok()) return status;
    if (Status status = finder_.check(source, bytes, may_read, "what DMA_DATA reads"); !status.ok()) return status;
  }
  if (!is_address(address_at(body, 3))) return wrong_word(5, "DST_HI", body[4], "the upper half of a 48-bit address");
  const std::uint64_t va = canonical(address_at(body, 3));
  if (Status status = check_aligned(va, 4, "what DMA_DATA writes"); !status.ok()) return status;
  return finder_.check(va, bytes, may_write, "what DMA_DATA writes");
}

void PacketCheck::remember(std::uint64_t va, std::uint32_t value) {
  written_[written_count_ % written_.size()] = {va, value};
  ++written_count_;
}

Status PacketCheck::wait(Body body) {
  using namespace wait_reg_mem;
  const std::uint32_t how = function.of(body[0]), reference = body[3], mask = body[4];
  if (mem_space.of(body[0]) != 1) return wrong_word(1, "MEM_SPACE", mem_space.of(body[0]), "1: memory");
  if (operation.of(body[0]) != 0 || engine_sel.of(body[0]) != 0)
    return wrong_word(1, "CONTROL", body[0], "a plain wait");
  if (poll_interval.of(body[5]) == 0) return wrong_word(6, "POLL_INTERVAL", 0, "at least 1");
  if (!satisfiable(how, reference, mask)) {
    return invalid_argument("no value under the mask " + hex_text(mask) + " compares with " + hex_text(reference) +
                            " by function " + std::to_string(how));
  }
  const std::uint64_t va = canonical(address_at(body, 1));
  if (Status status = check_aligned(va, 4, "what WAIT_REG_MEM reads"); !status.ok()) return status;
  if (Status status = finder_.check(va, 4, may_read, "what WAIT_REG_MEM reads"); !status.ok()) return status;
  if (how == static_cast<std::uint32_t>(Compare::always) || finder_.has_rights(va, is_signalled)) return {};
  // The latest write there decides; an older one may be overwritten before the wait looks.
  for (std::size_t back = 0; back < std::min(written_count_, written_.size()); ++back) {
    const Written& write = written_[(written_count_ - 1 - back) % written_.size()];
    if (write.va != va) continue;
    if (satisfied(how, write.value & mask, reference)) return {};
    return invalid_argument("waits at " + hex_text(va) + " for a value that compares with " + hex_text(reference) +
                            ", what is written there before is " + hex_text(write.value));
  }
  return invalid_argument("waits at " + hex_text(va) +
                          ", where nothing before it in the submission writes and nobody " + "else is known to");
}

}  // namespace kiln::amdgpu_pm4
