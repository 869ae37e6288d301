#include "simulator/wave/check/wave_check.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "simulator/wave/memory/buffer_space.hpp"
#include "simulator/wave/memory/space.hpp"

namespace kiln::simulator {

using memory_unit::Addresses;
using memory_unit::word_bytes;

void WaveCheck::start(Races& races, GroupOrder& group, unsigned number, std::uint32_t vgprs, std::uint64_t program) {
  races_ = &races;
  order_ = {};
  order_.wave = group.first_wave + number;
  order_.group = &group;
  waits_.start(vgprs);
  program_ = program;
  ended_ = exec_low_alone_ = vcc_low_alone_ = false;
}

void WaveCheck::define(const Wave& wave, unsigned scalars, unsigned vectors, std::vector<std::uint8_t>& lds) {
  undefined_.start(wave, wave.vgpr_count, scalars, vectors, lds);
}

std::uint32_t WaveCheck::done(Space space) const {
  if (ended_) return races_->now;
  return space == Space::local ? waits_.local_done(races_->now) : waits_.memory_done(races_->now);
}

namespace {

// With the registers that M0 leads to; nothing where the wave lacks one of them, which the instruction itself refuses.
std::optional<Instruction> moved_by_m0(const Wave& wave, const Instruction& in) {
  const RelativeOffsets offsets = relative_offsets(in.opcode, wave.scalar[scalar_index::m0]);
  Instruction moved = in;
  const auto move = [&](Operand& operand, std::uint32_t by) {
    if (by == 0) return true;
    if (operand.is_vgpr()) {
      const std::uint32_t index = operand.index() + by;
      if (index >= wave.vgpr_count) return false;
      operand.code = static_cast<std::uint16_t>(operand::vgpr + index);
      return true;
    }
    const std::uint64_t code = std::uint64_t{operand.code} + by;
    if (code + dwords_of(operand.type, WaveSize::wave32) > scalar_index::vcc) return false;
    operand.code = static_cast<std::uint16_t>(code);
    return true;
  };
  if (!move(moved.src[0], offsets.source) || !move(moved.dst, offsets.destination)) return std::nullopt;
  return moved;
}

}  // namespace

bool WaveCheck::before_others(Wave& wave, const DecodedAt& at, const Effects& effects, std::span<const Op> ops) {
  if (effects.relative) {
    const std::optional<Instruction> moved = moved_by_m0(wave, at.instruction);
    if (!moved) return true;
    DecodedAt there = at;
    there.instruction = *moved;
    Effects found = effects_of(*moved, wave.halves == 2 ? WaveSize::wave64 : WaveSize::wave32);
    found.relative = false;
    return before_others(wave, there, found, ops);
  }
  std::optional<std::string> reason = waits_.hazard(wave, at, effects);
  if (!reason && (effects.masks || exec_low_alone_)) reason = wave_size(wave, at.instruction, effects);
  if (!reason && effects.reach != Reach::none) {
    ++races_->now;
    if (!ops.empty()) reason = memory(wave, at, effects, ops.front());
    wave.fault.reset();  // what the instruction itself will say
  }
  if (!reason) {
    reason = undefined_.step(wave, at, effects, ops);
    wave.fault.reset();
  }
  if (reason) {
    wave.fault = Fault{FaultKind::hazard, at.address, at.word,
                       std::string(mnemonic(at.instruction.opcode, wave.generation)) + ": " + *reason};
    return false;
  }
  waits_.run(wave, at, effects, races_->now);
  empty_caches(at.instruction);
  return true;
}

void WaveCheck::empty_caches(const Instruction& in) {
  if (in.opcode == Opcode::s_dcache_inv) order_.scalar_cache_emptied = ++races_->now;
  if (in.opcode == Opcode::buffer_gl0_inv) order_.vector_cache_emptied = ++races_->now;
}

// Compilers handle EXEC and VCC whole, with the wave's number of lanes.
std::optional<std::string> WaveCheck::wave_size(const Wave& wave, const Instruction& in, const Effects& effects) {
  constexpr const char* wave32_code = "code for waves of 32 lanes runs in a wave of 64: ";
  if (wave.halves == 1) {
    const bool whole = in.format == Format::sop1 || in.format == Format::sop2;
    for (const Registers& registers : effects.writes) {
      if (whole && !registers.vector && registers.first == scalar_index::exec && registers.count == 2) {
        return "code for waves of 64 lanes runs in a wave of 32: it writes 64 bits of EXEC";
      }
    }
    if (in.has(flag::exec_out) && in.format == Format::sop1 && dwords_of(in.dst.type, WaveSize::wave32) == 2) {
      return "code for waves of 64 lanes runs in a wave of 32: it saves 64 bits of EXEC";
    }
    return std::nullopt;
  }
  const bool both_halves = wave.exec(1) != 0;
  if (in.has(flag::exec_out) && in.format == Format::sop1 && dwords_of(in.dst.type, WaveSize::wave64) == 1) {
    if (both_halves) return std::string(wave32_code) + "it saves 32 bits of EXEC";
    exec_low_alone_ = true;
  }
  if (effects.vector && exec_low_alone_ && both_halves) {
    return std::string(wave32_code) + "EXEC_LO was written without EXEC_HI";
  }
  const bool by_vcc = in.opcode == Opcode::s_cbranch_vccz || in.opcode == Opcode::s_cbranch_vccnz;
  if (by_vcc && vcc_low_alone_) return std::string(wave32_code) + "VCC_LO was written without VCC_HI";
  for (const Registers& registers : effects.writes) {
    if (registers.vector) continue;
    const unsigned first = registers.first, last = first + registers.count - 1U;
    const auto note = [&](bool& alone, unsigned low) {
      if (first <= low + 1 && low + 1 <= last) {
        alone = false;
      } else if (first <= low && low <= last) {
        alone = true;
      }
    };
    note(exec_low_alone_, scalar_index::exec);
    note(vcc_low_alone_, scalar_index::vcc);
  }
  return std::nullopt;
}

namespace {

unsigned bytes_of(DataType type) { return (bits_of(type) + 7) / 8; }

template <class Bits, class Number>
bool keeps(Change change, Bits old, Bits data) {
  switch (change) {
    case Change::add:
      return data == 0;
    case Change::bit_or:
      return (old | data) == old;
    case Change::bit_and:
      return (old & data) == old;
    case Change::swap:
      return data == old;
    case Change::min_signed:
      return static_cast<Number>(data) >= static_cast<Number>(old);
    case Change::max_signed:
      return static_cast<Number>(data) <= static_cast<Number>(old);
    case Change::min:
      return data >= old;
    case Change::max:
      return data <= old;
    default:
      return false;
  }
}

// Whether a store or an atomic leaves what memory holds.
bool leaves_value(Wave& wave, const Effects& effects, const void* old, unsigned bytes, unsigned row, unsigned half,
                  unsigned lane, bool high) {
  std::array<std::uint32_t, 4> words{};
  for (unsigned w = 0; w < (bytes + 3) / 4; ++w) words[w] = wave.row(row + w, half)[lane];
  if (high) words[0] >>= 16U;
  if (!effects.atomic) return std::memcmp(old, words.data(), bytes) == 0;
  const std::uint64_t data = words[0] | static_cast<std::uint64_t>(words[1]) << 32U;
  std::uint64_t before = 0;
  std::memcpy(&before, old, bytes);
  if (bytes == 8) return keeps<std::uint64_t, std::int64_t>(effects.change, before, data);
  return keeps<std::uint32_t, std::int32_t>(effects.change, static_cast<std::uint32_t>(before), words[0]);
}

}  // namespace

std::optional<std::string> WaveCheck::memory(Wave& wave, const DecodedAt& at, const Effects& effects, const Op& op) {
  const Instruction& in = at.instruction;
  AccessOf access;
  access.code = static_cast<std::uint32_t>(at.address - program_);
  access.time = races_->now;
  access.returns = effects.load;
  access.exchange = effects.exchange;
  access.kind = effects.atomic  ? AccessKind::atomic
                : effects.store ? AccessKind::write
                : in.glc        ? AccessKind::coherent_read
                                : AccessKind::read;
  switch (in.format) {
    case Format::smem:
      return scalar_memory(wave, in, op, access);
    case Format::ds: {
      if (!in.has(flag::load | flag::store | flag::atomic)) return std::nullopt;
      access.space = Space::local;
      access.done = waits_.local_done(races_->now);
      if (!effects.store) access.kind = AccessKind::read;
      const DataType type =
          effects.store && info(in.opcode).src[1] != DataType::none ? info(in.opcode).src[1] : info(in.opcode).dst;
      unsigned bytes = bytes_of(type);
      if (in.has(flag::two_addresses) && !effects.store) bytes /= 2;
      return lds(wave, at, effects, op, access, bytes);
    }
    case Format::flat:
    case Format::global:
    case Format::mubuf: {
      if (in.has(flag::format) || !in.has(flag::load | flag::store | flag::atomic)) return std::nullopt;
      access.done = waits_.memory_done(races_->now);
      const DataType type = effects.store && !effects.atomic ? info(in.opcode).src[1] : info(in.opcode).dst;
      return lanes(wave, in, effects, op, access, bytes_of(type));
    }
    default:
      return std::nullopt;
  }
}

// Calls body(lane, address) for the lanes that an instruction reaches. `merge`: mostly once for an address that several
// of them share, the lane before or the one eight before. False where body answers it.
template <class Body>
[[gnu::always_inline]] inline bool each_lane(const Addresses& at, bool merge, const Body& body) {
  for (std::uint32_t left = at.active & ~at.outside; left != 0; left &= left - 1) {
    const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
    const auto repeats = [&](unsigned by) {
      return i >= by && (at.active >> (i - by) & 1U) != 0 && at.lane[i] == at.lane[i - by];
    };
    if (merge && (repeats(1) || repeats(8))) continue;
    if (!body(i, at.lane[i])) return false;
  }
  return true;
}

std::optional<std::string> WaveCheck::lds(Wave& wave, const DecodedAt& decoded, const Effects& effects, const Op& op,
                                          AccessOf access, unsigned bytes) {
  const Instruction& in = decoded.instruction;
  const auto put = [&](std::uint64_t address, std::uint32_t size, unsigned row, unsigned half, unsigned lane) {
    if (address + size > wave.lds.bytes) return true;  // it will fault itself
    access.address = address;
    access.bytes = size;
    return races_->access(order_, access, [&] {
      if (in.has(flag::d16)) return false;
      return leaves_value(wave, effects, wave.lds.data + address, size, row, half, lane, false);
    });
  };
  const bool by_m0 = in.has(flag::m0_in);
  const unsigned pairs = in.has(flag::two_addresses) ? 2 : 1;
  // Offsets of pairs count in elements, or in 64 of them.
  const unsigned stride = effects.stride64 ? bytes * 64 : bytes;
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    if (by_m0) {
      const std::uint32_t base = (wave.scalar[scalar_index::m0] & 0xFFFFU) + static_cast<std::uint32_t>(op.offset);
      for (std::uint32_t left = wave.exec(half); left != 0; left &= left - 1) {
        const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
        const bool counts = access.kind == AccessKind::atomic;
        if (!put(base + (counts ? 0 : (half * 32 + i) * word_bytes), word_bytes, op.reg[1], half, i)) {
          return races_->take_reason();
        }
        if (counts) break;
      }
      continue;
    }
    for (unsigned which = 0; which < pairs; ++which) {
      const std::uint32_t offset = pairs == 1
                                       ? static_cast<std::uint32_t>(op.offset)
                                       : (which == 0 ? static_cast<std::uint32_t>(op.offset) : op.extra) * stride;
      Addresses at;
      if (!memory_unit::Local(wave, op, offset).addresses(half, bytes, at)) return std::nullopt;
      const bool reads = access.kind == AccessKind::read;
      const bool right = each_lane(at, reads, [&](unsigned i, std::uint64_t address) {
        return put(address, bytes, op.reg[1 + which], half, i);
      });
      if (!right) return races_->take_reason();
    }
  }
  return std::nullopt;
}

std::optional<std::string> WaveCheck::lanes(Wave& wave, const Instruction& in, const Effects& effects, const Op& op,
                                            AccessOf access, unsigned bytes) {
  const bool flat = in.format == Format::flat;
  const auto put = [&](std::uint64_t address, unsigned half, unsigned lane) {
    if (flat && address >> 32U == private_aperture >> 32U) return true;
    access.address = address;
    access.bytes = bytes;
    if (flat && address >> 32U == shared_aperture >> 32U) {
      AccessOf local = access;
      local.address = address & 0xFFFFFFFFU;
      if (local.address + bytes > wave.lds.bytes) return true;
      local.space = Space::local;
      local.done = waits_.local_done(races_->now);
      if (local.kind == AccessKind::coherent_read) local.kind = AccessKind::read;
      return races_->access(order_, local, [&] {
        return effects.atomic &&
               leaves_value(wave, effects, wave.lds.data + local.address, bytes, op.reg[1], half, lane, false);
      });
    }
    return races_->access(order_, access, [&] {
      std::array<std::uint32_t, 4> memory{};
      return wave.port->load(address, memory.data(), bytes) &&
             leaves_value(wave, effects, memory.data(), bytes, op.reg[1], half, lane, in.has(flag::high));
    });
  };
  const bool reads = access.kind == AccessKind::read || access.kind == AccessKind::coherent_read;
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    Addresses at;
    if (in.format == Format::mubuf) {
      memory_unit::Buffer space(wave, op);
      if (!space.addresses(half, bytes, at) || space.descriptor().element_bytes != 0) return std::nullopt;
    } else if (!memory_unit::Global(wave, op).addresses(half, bytes, at)) {
      return std::nullopt;
    }
    if (!each_lane(at, reads, [&](unsigned i, std::uint64_t address) { return put(address, half, i); })) {
      return races_->take_reason();
    }
  }
  return std::nullopt;
}

std::optional<std::string> WaveCheck::scalar_memory(Wave& wave, const Instruction& in, const Op& op, AccessOf access) {
  if (!in.has(flag::load)) return std::nullopt;
  const std::uint32_t moved = op.kind[1] == SourceKind::none ? 0 : scalar_source32(wave, op, 1);
  const auto offset = static_cast<std::uint64_t>(static_cast<std::int64_t>(op.offset)) + moved;
  const bool buffer = in.src[0].type == DataType::b128;
  std::uint64_t bytes = bytes_of(in.dst.type);
  std::uint64_t base = wave.scalar64(op.reg[0]);
  if (buffer) {
    const BufferDescriptor descriptor(wave.scalar + op.reg[0], wave.generation);
    const std::uint64_t limit = descriptor.stride == 0
                                    ? descriptor.records
                                    : static_cast<std::uint64_t>(descriptor.stride) * descriptor.records;
    base = descriptor.base;
    if (offset >= limit) return std::nullopt;
    bytes = std::min(bytes, limit - offset);
  }
  access.kind = in.glc ? AccessKind::coherent_read : AccessKind::scalar_read;
  access.address = ((base & ~std::uint64_t{3}) + offset) & ~std::uint64_t{3};
  access.bytes = static_cast<std::uint32_t>(bytes);
  access.done = waits_.memory_done(races_->now);
  if (!races_->access(order_, access, [] { return false; })) return races_->take_reason();
  return std::nullopt;
}

void GroupCheck::start(Races& races, std::uint64_t index, unsigned waves, unsigned waves_per_group,
                       std::uint32_t lds_bytes, std::uint32_t vgprs, std::uint64_t program) {
  while (waves_.size() < waves) waves_.push_back(std::make_unique<WaveCheck>());
  count_ = waves;
  order_.first_wave = static_cast<std::uint32_t>(races.first_wave() + index * waves_per_group);
  order_.ordered.assign(waves, {});
  order_.stamp = races.new_stamp();
  if (order_.local.size() < (lds_bytes + 3) / 4) order_.local.resize((lds_bytes + 3) / 4);
  lds_.assign(lds_bytes, 0xFF);
  for (unsigned i = 0; i < waves; ++i) waves_[i]->start(races, order_, i, vgprs, program);
}

void GroupCheck::barrier() {
  std::array<std::uint32_t, 2> seen{};
  for (unsigned i = 0; i < count_; ++i) {
    for (const Space space : {Space::local, Space::memory}) {
      const auto which = static_cast<std::size_t>(space);
      order_.ordered[i][which] = std::max(order_.ordered[i][which], waves_[i]->done(space));
      seen[which] = std::max(seen[which], waves_[i]->order().seen[which]);
    }
  }
  for (unsigned i = 0; i < count_; ++i) waves_[i]->order().seen = seen;
}

}  // namespace kiln::simulator
