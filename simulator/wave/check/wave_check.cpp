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

bool WaveCheck::before(Wave& wave, const DecodedAt& at, const Effects& effects, std::span<const Op> ops) {
  std::optional<std::string> reason = waits_.hazard(wave, at, effects);
  if (!reason) reason = wave_size(wave, at.instruction, effects);
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

bool is_compare_swap(const Instruction& in) {
  const std::string_view name = info(in.opcode).name;
  return name.find("cmp") != std::string_view::npos;
}

unsigned bytes_of(DataType type) { return (bits_of(type) + 7) / 8; }

}  // namespace

std::optional<std::string> WaveCheck::memory(Wave& wave, const DecodedAt& at, const Effects& effects, const Op& op) {
  const Instruction& in = at.instruction;
  AccessOf access;
  access.code = static_cast<std::uint32_t>(at.address - program_);
  access.time = races_->now;
  access.returns = effects.load;
  access.exchange = effects.atomic && is_compare_swap(in);
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
      return lds(wave, in, op, access, bytes);
    }
    case Format::flat:
    case Format::global:
    case Format::mubuf: {
      if (in.has(flag::format) || !in.has(flag::load | flag::store | flag::atomic)) return std::nullopt;
      access.done = waits_.memory_done(races_->now);
      const DataType type = effects.store && !effects.atomic ? info(in.opcode).src[1] : info(in.opcode).dst;
      return lanes(wave, in, op, access, bytes_of(type));
    }
    default:
      return std::nullopt;
  }
}

// Calls body(lane, address) for the lanes that an instruction reaches, each address once if neighbours share it.
template <class Body>
std::optional<std::string> each_lane(const Addresses& at, bool merge, const Body& body) {
  std::uint64_t last = ~std::uint64_t{0};
  for (std::uint32_t left = at.active & ~at.outside; left != 0; left &= left - 1) {
    const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
    if (merge && at.lane[i] == last) continue;
    last = at.lane[i];
    if (auto reason = body(i, at.lane[i])) return reason;
  }
  return std::nullopt;
}

std::optional<std::string> WaveCheck::lds(Wave& wave, const Instruction& in, const Op& op, AccessOf access,
                                          unsigned bytes) {
  const auto bound = [&wave](std::uint64_t address, unsigned size) { return address + size <= wave.lds.bytes; };
  const auto put = [&](std::uint64_t address, std::uint32_t size, unsigned row, unsigned half,
                       unsigned lane) -> std::optional<std::string> {
    if (!bound(address, size)) return std::nullopt;
    access.address = address;
    access.bytes = size;
    access.same_value = false;
    if (access.kind == AccessKind::write && !in.has(flag::d16)) {
      std::array<std::uint32_t, 4> words{};
      for (unsigned w = 0; w < (size + 3) / 4; ++w) words[w] = wave.row(row + w, half)[lane];
      access.same_value = std::memcmp(wave.lds.data + address, words.data(), size) == 0;
    }
    return races_->access(order_, access);
  };
  const bool by_m0 = in.has(flag::m0_in);
  const unsigned pairs = in.has(flag::two_addresses) ? 2 : 1;
  // Offsets of pairs count in elements, or in 64 of them.
  const unsigned stride = info(in.opcode).name.find("stride64") != std::string_view::npos ? bytes * 64 : bytes;
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    if (by_m0) {
      const std::uint32_t base = (wave.scalar[scalar_index::m0] & 0xFFFFU) + static_cast<std::uint32_t>(op.offset);
      for (std::uint32_t left = wave.exec(half); left != 0; left &= left - 1) {
        const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
        const bool counts = access.kind == AccessKind::atomic;
        if (auto reason = put(base + (counts ? 0 : (half * 32 + i) * word_bytes), word_bytes, op.reg[1], half, i)) {
          return reason;
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
      auto reason = each_lane(at, reads, [&](unsigned i, std::uint64_t address) {
        return put(address, bytes, op.reg[1 + which], half, i);
      });
      if (reason) return reason;
    }
  }
  return std::nullopt;
}

std::optional<std::string> WaveCheck::lanes(Wave& wave, const Instruction& in, const Op& op, AccessOf access,
                                            unsigned bytes) {
  const bool whole = !in.has(flag::d16) && bytes >= 4;
  const auto put = [&](std::uint64_t address, unsigned half, unsigned lane) -> std::optional<std::string> {
    if (in.format == Format::flat && address >> 32U == private_aperture >> 32U) return std::nullopt;
    access.address = address;
    access.bytes = bytes;
    access.same_value = false;
    if (in.format == Format::flat && address >> 32U == shared_aperture >> 32U) {
      access.address = address & 0xFFFFFFFFU;
      if (access.address + bytes > wave.lds.bytes) return std::nullopt;
      AccessOf local = access;
      local.space = Space::local;
      local.done = waits_.local_done(races_->now);
      if (local.kind == AccessKind::coherent_read) local.kind = AccessKind::read;
      return races_->access(order_, local);
    }
    if (access.kind == AccessKind::write) {
      std::array<std::uint32_t, 4> words{}, memory{};
      for (unsigned w = 0; w < (bytes + 3) / 4; ++w) words[w] = wave.row(op.reg[1] + w, half)[lane];
      if (in.has(flag::high)) words[0] >>= 16U;
      if (!wave.port->load(address, memory.data(), bytes)) return std::nullopt;  // it will fault itself
      access.same_value = std::memcmp(memory.data(), words.data(), bytes) == 0;
    }
    return races_->access(order_, access);
  };
  static_cast<void>(whole);
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
    auto reason = each_lane(at, reads, [&](unsigned i, std::uint64_t address) { return put(address, half, i); });
    if (reason) return reason;
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
  return races_->access(order_, access);
}

void GroupCheck::start(Races& races, std::uint64_t index, unsigned waves, unsigned waves_per_group,
                       std::uint32_t lds_bytes, std::uint32_t vgprs, std::uint64_t program) {
  while (waves_.size() < waves) waves_.push_back(std::make_unique<WaveCheck>());
  count_ = waves;
  order_.first_wave = static_cast<std::uint32_t>(index * waves_per_group + 1);
  order_.ordered.assign(waves, {});
  order_.local.assign((lds_bytes + 3) / 4, {});
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
