#include "amdgpu_pm4/safety/packet_check.hpp"

#include <algorithm>
#include <string>

#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/safety/validator.hpp"

namespace kiln::amdgpu_pm4 {

PacketCheck::PacketCheck(const SubmissionScope& scope, RangeFinder& finder)
    : finder_(finder), capabilities_(capabilities_of(scope.shape.generation)), dispatch_(scope, finder) {}

Status PacketCheck::check(const PacketView& packet) {
  if (packet.finding == Finding::filler && packet.header == filler_dword) return {};
  // Barriers are many and equal, and what is said of one depends on nothing else.
  const bool is_acquire = packet.finding == Finding::known && packet.opcode() == Opcode::acquire_mem;
  if (is_acquire && packet.header == acquire_header_ && std::ranges::equal(packet.body, acquire_body_)) return {};
  if (Status status = check_form(packet); !status.ok()) return status;
  if (Status status = check_body(packet); !status.ok()) return status;
  if (is_acquire) {
    acquire_header_ = packet.header;
    std::ranges::copy(packet.body, acquire_body_.begin());
  }
  return {};
}

Status PacketCheck::check_form(const PacketView& packet) const {
  switch (packet.finding) {
    case Finding::known:
      break;
    case Finding::filler:
      return wrong_word(0, "the header", packet.header, hex_text(filler_dword) + " of a NOP without a body");
    case Finding::cut_off:
      return invalid_argument("the body of " + std::to_string(packet_count(packet.header) + 1) +
                              " dwords is truncated after " + std::to_string(packet.body.size()));
    case Finding::wrong_length:
      return invalid_argument("the body has " + std::to_string(packet.body.size()) + " dwords, expected " +
                              std::to_string(packet.layout->least_body) + " to " +
                              std::to_string(packet.layout->most_body));
    default:
      return unsupported("header " + hex_text(packet.header) + ": not a packet type for compute rings");
  }
  if (!capabilities_.knows(packet.opcode())) {
    return unsupported("opcode " + hex_text(static_cast<std::uint8_t>(packet.opcode())) +
                       " is not on the allow-list of " + std::string(to_string(capabilities_.generation)));
  }
  if ((packet.header & 0xFF) != compute_shader_type) {
    return wrong_word(0, "the header's low byte", packet.header & 0xFF, "2: for compute, without a predicate");
  }
  const std::size_t column = column_of(capabilities_.generation);
  for (std::size_t i = 0; i < packet.layout->words.size(); ++i) {
    const std::uint32_t known = packet.layout->words[i].known[column];
    if ((packet.body[i] & ~known) != 0) {
      return wrong_word(1 + i, packet.layout->words[i].name, packet.body[i], "no bits outside " + hex_text(known));
    }
    if (packet.layout->words[i].kind == WordKind::address_low && packet.opcode() != Opcode::copy_data &&
        packet.opcode() != Opcode::dma_data && !is_address(address_at(packet.body, i))) {
      return wrong_word(2 + i, packet.layout->words[i + 1].name, packet.body[i + 1],
                        "the upper half of a 48-bit address");
    }
  }
  return {};
}

Status PacketCheck::check_body(const PacketView& packet) {
  const Body body = packet.body;
  switch (packet.opcode()) {
    case Opcode::nop:
      return {};
    case Opcode::set_sh_reg:
    case Opcode::set_sh_reg_index:
    case Opcode::set_uconfig_reg:
      return set_registers(packet);
    case Opcode::dispatch_direct:
      if (body[0] == 0 || body[1] == 0 || body[2] == 0) {
        return invalid_argument("a grid of " + std::to_string(body[0]) + "x" + std::to_string(body[1]) + "x" +
                                std::to_string(body[2]) + " groups, expected at least 1 on each axis");
      }
      return dispatch_.check(registers_, body[3]);
    case Opcode::dispatch_indirect:
      return dispatch_indirect(body);
    case Opcode::acquire_mem:
      return acquire(body);
    case Opcode::release_mem:
      return release(body);
    case Opcode::event_write:
      return event(body);
    case Opcode::write_data:
      return write(body);
    case Opcode::copy_data:
      return copy(body);
    case Opcode::dma_data:
      return dma(body);
    case Opcode::wait_reg_mem:
      return wait(body);
    case Opcode::indirect_buffer:
      return indirect_buffer(body);
    default:
      return internal_error("an allowed packet without a check");
  }
}

Status PacketCheck::indirect_buffer(Body body) const {
  using namespace kiln::amdgpu_pm4::indirect_buffer;
  if (chain.of(body[2]) == 0) return wrong_word(3, "CHAIN", 0, "1: compute rings support only chained buffers");
  constexpr std::uint32_t needed = chain.mask() | valid.mask();
  if ((body[2] & ~size.mask()) != needed) {
    return wrong_word(3, "CONTROL", body[2], "only CHAIN, VALID and the size");
  }
  return {};
}

bool is_address(std::uint64_t address) {
  const std::uint64_t above = address >> 48;
  return above == 0 || address == canonical(address);
}

Status wrong_word(std::size_t dword, std::string_view name, std::uint32_t is, std::string_view expected) {
  return invalid_argument("dword " + std::to_string(dword) + ", " + std::string(name) + " is " + hex_text(is) +
                          ", expected " + std::string(expected));
}

Status check_aligned(std::uint64_t va, std::uint64_t alignment, std::string_view what) {
  if (va % alignment == 0) return {};
  return invalid_argument(std::string(what) + " is at " + hex_text(va) + ", expected a multiple of " +
                          std::to_string(alignment));
}

// What PacketCheck says of packets that change state: registers, caches, events, and the dispatch that reads its size.

namespace {

constexpr std::uint64_t indirect_group_bytes = 12;
constexpr std::string_view mask_registers = "COMPUTE_STATIC_THREAD_MGMT_SE";  // how their names begin

}  // namespace

Status PacketCheck::set_registers(const PacketView& packet) {
  const bool indexed = packet.opcode() == Opcode::set_sh_reg_index;
  const std::uint32_t index = set_register::index.of(packet.body[0]);
  if (index != (indexed ? set_register::through_cu_mask : 0)) {
    return wrong_word(1, "INDEX", index, indexed ? "3: through the mask of compute units" : "0");
  }
  const std::uint32_t first = packet.layout->register_space + 4 * set_register::offset.of(packet.body[0]);
  const std::uint32_t last = first + 4 * static_cast<std::uint32_t>(packet.body.size() - 2);
  if (last >= (packet.opcode() == Opcode::set_uconfig_reg ? uconfig_space_end : sh_space_end)) {
    return unsupported("sets register " + hex_text(last) + ", beyond the register range of the packet");
  }
  const ComputeBits& allowed = allowed_compute_bits(capabilities_.generation);
  for (std::size_t i = 1; i < packet.body.size(); ++i) {
    const std::uint32_t address = first + 4 * static_cast<std::uint32_t>(i - 1);
    const std::size_t at = (address - compute_registers) / 4;
    const bool compute = address >= compute_registers && at < compute_register_count;
    const std::uint32_t bits = compute ? allowed[at] : allowed_bits(address, capabilities_.generation);
    const std::uint32_t value = packet.body[i];
    if (bits == 0) {
      const RegisterInfo* info = find_register(address, capabilities_.generation);
      return unsupported("dword " + std::to_string(1 + i) + " sets register " + hex_text(address) +
                         (info == nullptr ? "" : " (" + std::string(info->name) + ")") +
                         ", which is not on the allow-list of " + std::string(to_string(capabilities_.generation)));
    }
    const bool masked = !indexed || find_register(address, capabilities_.generation)->name.starts_with(mask_registers);
    if (!masked) {
      return unsupported("dword " + std::to_string(1 + i) + " sets register " + hex_text(address) +
                         ", which is not a compute unit mask");
    }
    if ((value & ~bits) != 0) {
      return wrong_word(1 + i, find_register(address, capabilities_.generation)->name, value,
                        "no bits outside " + hex_text(bits));
    }
    if (compute) registers_.set(at, value);
  }
  return {};
}

Status PacketCheck::dispatch_indirect(Body body) {
  const std::uint64_t va = canonical(address_at(body, 0));
  if (Status status = check_aligned(va, 4, "group counts"); !status.ok()) return status;
  if (Status status = finder_.check(va, indirect_group_bytes, may_read, "group counts"); !status.ok()) return status;
  return dispatch_.check(registers_, body[2]);
}

Status PacketCheck::acquire(Body body) const {
  if (body[0] != 0) return wrong_word(1, "COHER_CNTL", body[0], "0");
  if (body[1] != ~0U || body[2] != 0x00FFFFFF || body[3] != 0 || body[4] != 0) {
    return invalid_argument("a range of memory is given, expected all memory: size 0xFFFFFF:0xFFFFFFFF from 0");
  }
  if (acquire_mem::pws_ena.of(body[5]) != 0) return wrong_word(6, "PWS_ENA", 1, "0");
  const std::uint32_t actions = body[6];
  constexpr std::uint32_t refused = gcr::gl1_range.mask() | gcr::gl2_range.mask() | gcr::gl2_us.mask() |
                                    gcr::gl2_discard.mask() | gcr::range_is_pa.mask();
  if ((actions & refused) != 0 || gcr::gli_inv.of(actions) > 1) {
    return wrong_word(7, "GCR_CNTL", actions, "whole caches, and nothing discarded");
  }
  if (gcr::glm_wb.of(actions) > gcr::glm_inv.of(actions)) {
    return wrong_word(7, "GCR_CNTL", actions, "GLM_WB with GLM_INV");
  }
  return {};
}

Status PacketCheck::event(Body body) const {
  using namespace event_write;
  if (static_cast<Event>(event_type.of(body[0])) == Event::cs_partial_flush &&
      event_index.of(body[0]) == event_index_flush) {
    return {};
  }
  return wrong_word(1, "EVENT", body[0], "CS_PARTIAL_FLUSH with index 4");
}

// What PacketCheck says of packets that read and write memory, and of waits for what is written there.

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
  if ((body[0] & ~caches) != 0) return wrong_word(1, "EVENT", body[0], "no bits outside " + hex_text(caches));
  const std::uint32_t interrupt = int_sel.of(body[1]), data = data_sel.of(body[1]);
  if (interrupt != 0 && interrupt != 3)
    return wrong_word(2, "INT_SEL", interrupt, "0 or 3: interrupts are the kernel's");
  if (data > 3) return wrong_word(2, "DATA_SEL", data, "0 to 3");
  if (dst_sel.of(body[1]) > 1) return wrong_word(2, "DST_SEL", dst_sel.of(body[1]), "0 or 1: memory");
  if (body[6] != 0) return wrong_word(7, "INT_CTXID", body[6], "0");
  if (data == 0) return {};
  const std::uint64_t va = canonical(address_at(body, 2)), bytes = data == 1 ? 4 : 8;
  if (Status status = check_aligned(va, bytes, "RELEASE_MEM destination"); !status.ok()) return status;
  if (data == 3) {
    forget(va, bytes);
  } else {
    remember(va, body.subspan(4, bytes / 4));
  }
  return finder_.check(va, bytes, may_write, "RELEASE_MEM destination");
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
  if (Status status = check_aligned(va, 4, "WRITE_DATA destination"); !status.ok()) return status;
  remember(va, body.subspan(3));
  return finder_.check(va, 4 * (body.size() - 3), may_write, "WRITE_DATA destination");
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
      if (Status status = check_aligned(source, bytes, "COPY_DATA source"); !status.ok()) return status;
      if (Status status = finder_.check(source, bytes, may_read, "COPY_DATA source"); !status.ok()) return status;
      break;
    }
    default:
      return wrong_word(1, "SRC_SEL", from, "memory, an immediate or the clock");
  }
  if (!is_address(address_at(body, 3))) return wrong_word(5, "DST_HI", body[4], "the upper half of a 48-bit address");
  const std::uint64_t va = canonical(address_at(body, 3));
  if (Status status = check_aligned(va, bytes, "COPY_DATA destination"); !status.ok()) return status;
  if (static_cast<CopySource>(from) == CopySource::immediate) {
    remember(va, body.subspan(1, bytes / 4));
  } else {
    forget(va, bytes);
  }
  return finder_.check(va, bytes, may_write, "COPY_DATA destination");
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
  if ((body[5] & ~plain) != 0) return wrong_word(6, "COMMAND", body[5], "no bits outside " + hex_text(plain));
  const std::uint64_t bytes = byte_count.of(body[5]);
  if (bytes == 0 || bytes % 4 != 0)
    return wrong_word(6, "BYTE_COUNT", byte_count.of(body[5]), "a multiple of 4, at least 4");
  if (from != fill) {
    if (!is_address(address_at(body, 1))) return wrong_word(3, "SRC_HI", body[2], "the upper half of a 48-bit address");
    const std::uint64_t source = canonical(address_at(body, 1));
    if (Status status = check_aligned(source, 4, "DMA_DATA source"); !status.ok()) return status;
    if (Status status = finder_.check(source, bytes, may_read, "DMA_DATA source"); !status.ok()) return status;
  }
  if (!is_address(address_at(body, 3))) return wrong_word(5, "DST_HI", body[4], "the upper half of a 48-bit address");
  const std::uint64_t va = canonical(address_at(body, 3));
  if (Status status = check_aligned(va, 4, "DMA_DATA destination"); !status.ok()) return status;
  forget(va, bytes);
  return finder_.check(va, bytes, may_write, "DMA_DATA destination");
}

void PacketCheck::remember(std::uint64_t va, Body values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    written_[written_count_++ % written_.size()] = {va + 4 * i, values[i], true};
  }
}

void PacketCheck::forget(std::uint64_t va, std::uint64_t bytes) {
  for (Written& write : written_) write.known &= write.va - va >= bytes;
}

Status PacketCheck::wait(Body body) {
  using namespace wait_reg_mem;
  const std::uint32_t how = function.of(body[0]), reference = body[3], mask = body[4];
  if (mem_space.of(body[0]) != 1) return wrong_word(1, "MEM_SPACE", mem_space.of(body[0]), "1: memory");
  if (operation.of(body[0]) != 0 || engine_sel.of(body[0]) != 0)
    return wrong_word(1, "CONTROL", body[0], "a plain wait");
  if (poll_interval.of(body[5]) == 0) return wrong_word(6, "POLL_INTERVAL", 0, "at least 1");
  if (!satisfiable(how, reference, mask)) {
    return invalid_argument("the wait can never end: no value under the mask " + hex_text(mask) +
                            " satisfies function " + std::to_string(how) + " with reference " + hex_text(reference));
  }
  const std::uint64_t va = canonical(address_at(body, 1));
  if (Status status = check_aligned(va, 4, "WAIT_REG_MEM source"); !status.ok()) return status;
  if (Status status = finder_.check(va, 4, may_read, "WAIT_REG_MEM source"); !status.ok()) return status;
  if (how == static_cast<std::uint32_t>(Compare::always) || finder_.has_rights(va, is_signalled)) return {};
  // The latest write there decides; an older one may be overwritten before the wait looks.
  for (std::size_t back = 0; back < std::min(written_count_, written_.size()); ++back) {
    const Written& write = written_[(written_count_ - 1 - back) % written_.size()];
    if (write.va != va) continue;
    if (!write.known) return invalid_argument("waits at " + hex_text(va) + ", where the last written value is unknown");
    if (satisfied(how, write.value & mask, reference)) return {};
    return invalid_argument("waits at " + hex_text(va) + " for reference " + hex_text(reference) +
                            ", but the value written there before is " + hex_text(write.value));
  }
  return invalid_argument("waits at " + hex_text(va) +
                          ", where neither an earlier packet of the submission nor a signal writes");
}

}  // namespace kiln::amdgpu_pm4
