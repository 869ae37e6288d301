// Spaces: how the instructions of each family form their lanes' addresses, and how an address is reached.
//
// A space is made for one instruction. addresses() fills in 32 lanes; load(), store() and pointer() reach one lane's
// bytes, whatever page they lie in. Where side_by_side() finds the active lanes so, linear_read() and linear_write()
// give all of them at once, or null; after a write there, wrote() says which bytes it was. What fails otherwise has
// recorded its fault with the wave. Thread-safety: as Wave's. Ownership: borrows wave and Op.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "simulator/wave/memory_port.hpp"
#include "simulator/wave/op.hpp"
#include "simulator/wave/wave.hpp"

namespace kiln::simulator::memory_unit {

using Word = std::uint32_t;
using Wide = std::uint64_t;

inline constexpr unsigned group = 32;
inline constexpr unsigned word_bytes = 4;

struct Addresses {
  alignas(64) Wide lane[group];
  Word active = 0;       // lanes to reach
  Word outside = 0;      // active lanes beyond a buffer: an atomic does nothing and returns zero
  bool careful = false;  // every lane by load() and store(), which know of what lies outside or apart
};

class Global {
 public:
  Global(Wave& wave, const Op& op) : wave_(wave), op_(op) {}

  bool addresses(unsigned half, unsigned, Addresses& out) const {
    out.active = wave_.exec(half);
    const Wide offset = static_cast<Wide>(static_cast<std::int64_t>(op_.offset));
    if (op_.kind[2] == SourceKind::scalar) {
      const Wide base = wave_.scalar64(op_.sdst) + offset;
      if (op_.kind[0] == SourceKind::row) {
        const Word* low = wave_.row(op_.reg[0], half);
        for (unsigned i = 0; i < group; ++i) out.lane[i] = base + low[i];
      } else {
        for (unsigned i = 0; i < group; ++i) out.lane[i] = base;
      }
    } else {
      const Word* low = wave_.row(op_.reg[0], half);
      const Word* high = wave_.row(op_.reg[0] + 1U, half);
      for (unsigned i = 0; i < group; ++i) out.lane[i] = (low[i] | static_cast<Wide>(high[i]) << 32U) + offset;
    }
    return true;
  }

  bool side_by_side(unsigned half, unsigned bytes, Wide& base) const {
    return wave_.lane_memory->side_by_side_global(wave_, op_, half, bytes, base);
  }

  bool load(unsigned, Wide address, void* out, unsigned bytes) const {
    return wave_.port->load(address, out, bytes) || failed();
  }
  bool store(unsigned, Wide address, const void* in, unsigned bytes) const {
    return wave_.port->store(address, in, bytes) || failed();
  }
  // `bytes` bytes, a power of two, that do not cross a page because they are aligned.
  std::byte* pointer(unsigned, Wide address, unsigned bytes) const {
    if ((address & (bytes - 1)) != 0) {
      refuse(wave_, op_, FaultKind::misaligned, "atomic of " + std::to_string(bytes) + " bytes at " + hex(address));
      return nullptr;
    }
    std::byte* at = wave_.port->write(address);
    if (at == nullptr) {
      failed();
    } else if (wave_.port->is_unbacked(at)) {
      std::memset(at, 0, bytes);
    } else {
      wave_.port->mark(address, bytes);
    }
    return at;
  }
  // `bytes` bytes from `address` on, if they lie in one page; a fault is left to the lanes.
  const std::byte* linear_read(Wide address, unsigned bytes) const {
    if ((address & (Page::bytes - 1)) + bytes > Page::bytes) return nullptr;
    return wave_.port->read(address);
  }
  std::byte* linear_write(Wide address, unsigned bytes) const {
    if ((address & (Page::bytes - 1)) + bytes > Page::bytes) return nullptr;
    return wave_.port->write(address);
  }
  void wrote(Wide address, unsigned bytes) const { wave_.port->mark(address, bytes); }

  bool failed() const {
    refuse(wave_, op_, wave_.port->take_fault());
    return false;
  }

 private:
  Wave& wave_;
  const Op& op_;
};

class Local {  // LDS by DS instructions
 public:
  Local(Wave& wave, const Op& op) : wave_(wave), op_(op), offset_(static_cast<Word>(op.offset)) {}
  Local(Wave& wave, const Op& op, Word offset) : wave_(wave), op_(op), offset_(offset) {}

  bool addresses(unsigned half, unsigned bytes, Addresses& out) const {
    out.active = wave_.exec(half);
    alignas(64) Word storage[group];
    const Word* base = storage;
    if (op_.kind[0] == SourceKind::row) {
      base = wave_.row(op_.reg[0], half);
    } else {
      const Word value = op_.kind[0] == SourceKind::none ? 0 : scalar_source32(wave_, op_, 0);
      for (unsigned i = 0; i < group; ++i) storage[i] = value;
    }
    // The sum has 32 bits: compilers put a negative number in the register and what makes up for it in the offset.
    for (unsigned i = 0; i < group; ++i) out.lane[i] = base[i] + offset_;
    for (Word left = out.active; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      if (out.lane[i] + bytes > wave_.lds.bytes) return beyond(out.lane[i], bytes);
    }
    return true;
  }

  bool side_by_side(unsigned half, unsigned bytes, Wide& base) const {
    return wave_.lane_memory->side_by_side_local(wave_, op_, half, bytes, offset_, base);
  }

  bool load(unsigned, Wide address, void* out, unsigned bytes) const {
    std::memcpy(out, wave_.lds.data + address, bytes);
    return true;
  }
  bool store(unsigned, Wide address, const void* in, unsigned bytes) const {
    std::memcpy(wave_.lds.data + address, in, bytes);
    return true;
  }
  std::byte* pointer(unsigned, Wide address, unsigned bytes) const {
    if ((address & (bytes - 1)) != 0) {
      refuse(wave_, op_, FaultKind::misaligned, "LDS atomic of " + std::to_string(bytes) + " bytes at " + hex(address));
      return nullptr;
    }
    return wave_.lds.data + address;
  }
  const std::byte* linear_read(Wide address, unsigned bytes) const { return linear_write(address, bytes); }
  std::byte* linear_write(Wide address, unsigned bytes) const {
    return address + bytes <= wave_.lds.bytes ? wave_.lds.data + address : nullptr;
  }
  void wrote(Wide, unsigned) const {}

  bool beyond(Wide address, unsigned bytes) const {
    refuse(wave_, op_, FaultKind::overrun,
           std::to_string(bytes) + " bytes at LDS " + hex(address) + " of " + std::to_string(wave_.lds.bytes));
    return false;
  }

 private:
  Wave& wave_;
  const Op& op_;
  Word offset_;
};

// A lane's private memory. Words of one offset stand side by side for all lanes of the wave.
class Scratch {
 public:
  Scratch(Wave& wave, const Op& op)
      : wave_(wave),
        op_(op),
        global_(wave, op),
        base_(wave.generation == Generation::gfx11 ? wave.scratch.base : wave.flat_scratch) {}

  bool addresses(unsigned half, unsigned, Addresses& out) const {
    out.active = wave_.exec(half);
    out.careful = true;  // these are offsets, not addresses
    const Word moved = op_.kind[2] == SourceKind::scalar ? wave_.scalar[op_.sdst] : 0;
    const Word offset = moved + static_cast<Word>(op_.offset);
    if (op_.kind[0] == SourceKind::row) {
      const Word* from = wave_.row(op_.reg[0], half);
      for (unsigned i = 0; i < group; ++i) out.lane[i] = from[i] + offset;
    } else {
      for (unsigned i = 0; i < group; ++i) out.lane[i] = offset;
    }
    return true;
  }
  // All lanes at one offset, as compilers spill: their words stand side by side.
  bool side_by_side(unsigned half, unsigned bytes, Wide& base) const {
    if (bytes != word_bytes) return false;
    Addresses at;
    addresses(half, bytes, at);
    const Wide offset = at.lane[__builtin_ctz(at.active)];
    if (offset % word_bytes != 0 || offset + bytes > wave_.scratch.bytes / wave_.lanes()) return false;
    for (Word left = at.active; left != 0; left &= left - 1) {
      if (at.lane[__builtin_ctz(left)] != offset) return false;
    }
    base = place(half * group, offset);
    return true;
  }
  bool load(unsigned lane, Wide offset, void* out, unsigned bytes) const {
    if (!inside(offset, bytes)) return false;
    auto* to = static_cast<std::byte*>(out);
    for (unsigned part; bytes > 0; offset += part, to += part, bytes -= part) {
      part = piece(offset, bytes);
      if (!global_.load(lane, place(lane, offset), to, part)) return false;
    }
    return true;
  }
  bool store(unsigned lane, Wide offset, const void* in, unsigned bytes) const {
    if (!inside(offset, bytes)) return false;
    const auto* from = static_cast<const std::byte*>(in);
    for (unsigned part; bytes > 0; offset += part, from += part, bytes -= part) {
      part = piece(offset, bytes);
      if (!global_.store(lane, place(lane, offset), from, part)) return false;
    }
    return true;
  }
  std::byte* pointer(unsigned lane, Wide offset, unsigned bytes) const {
    if (bytes != word_bytes) {  // two words of a lane do not stand side by side
      refuse(wave_, op_, FaultKind::unknown_opcode, "atomic of 64 bits in scratch");
      return nullptr;
    }
    return inside(offset, bytes) ? global_.pointer(lane, place(lane, offset), bytes) : nullptr;
  }
  const std::byte* linear_read(Wide address, unsigned bytes) const { return global_.linear_read(address, bytes); }
  std::byte* linear_write(Wide address, unsigned bytes) const { return global_.linear_write(address, bytes); }
  void wrote(Wide address, unsigned bytes) const { global_.wrote(address, bytes); }

 private:
  static unsigned piece(Wide offset, unsigned bytes) {
    const unsigned rest = word_bytes - static_cast<unsigned>(offset % word_bytes);
    return bytes < rest ? bytes : rest;
  }
  Wide place(unsigned lane, Wide offset) const {
    return base_ + offset / word_bytes * word_bytes * wave_.lanes() + lane * word_bytes + offset % word_bytes;
  }
  bool inside(Wide offset, unsigned bytes) const {
    const Wide limit = wave_.scratch.bytes / wave_.lanes();
    if (offset + bytes <= limit) return true;
    refuse(wave_, op_, FaultKind::overrun,
           std::to_string(bytes) + " bytes at scratch " + hex(offset) + " of " + std::to_string(limit) + " for a lane");
    return false;
  }

  Wave& wave_;
  const Op& op_;
  Global global_;
  Wide base_;
};

// One address space over memory, LDS and scratch, told apart by the high word.
class Flat {
 public:
  Flat(Wave& wave, const Op& op) : wave_(wave), global_(wave, op), local_(wave, op, 0), scratch_(wave, op) {}

  bool addresses(unsigned half, unsigned bytes, Addresses& out) const { return global_.addresses(half, bytes, out); }
  bool side_by_side(unsigned half, unsigned bytes, Wide& base) const { return global_.side_by_side(half, bytes, base); }
  bool load(unsigned lane, Wide address, void* out, unsigned bytes) const {
    if (is(address, shared_aperture)) return shared(address, bytes) && local_.load(lane, low(address), out, bytes);
    if (is(address, private_aperture)) return scratch_.load(lane, low(address), out, bytes);
    return global_.load(lane, address, out, bytes);
  }
  bool store(unsigned lane, Wide address, const void* in, unsigned bytes) const {
    if (is(address, shared_aperture)) return shared(address, bytes) && local_.store(lane, low(address), in, bytes);
    if (is(address, private_aperture)) return scratch_.store(lane, low(address), in, bytes);
    return global_.store(lane, address, in, bytes);
  }
  std::byte* pointer(unsigned lane, Wide address, unsigned bytes) const {
    if (is(address, shared_aperture)) {
      return shared(address, bytes) ? local_.pointer(lane, low(address), bytes) : nullptr;
    }
    if (is(address, private_aperture)) return scratch_.pointer(lane, low(address), bytes);
    return global_.pointer(lane, address, bytes);
  }
  const std::byte* linear_read(Wide address, unsigned bytes) const {
    return apart(address) ? nullptr : global_.linear_read(address, bytes);
  }
  std::byte* linear_write(Wide address, unsigned bytes) const {
    return apart(address) ? nullptr : global_.linear_write(address, bytes);
  }
  void wrote(Wide address, unsigned bytes) const { global_.wrote(address, bytes); }

 private:
  static bool is(Wide address, Wide aperture) { return address >> 32U == aperture >> 32U; }
  static bool apart(Wide address) { return is(address, shared_aperture) || is(address, private_aperture); }
  static Wide low(Wide address) { return address & 0xFFFFFFFFU; }
  bool shared(Wide address, unsigned bytes) const {
    return low(address) + bytes <= wave_.lds.bytes || local_.beyond(low(address), bytes);
  }

  Wave& wave_;
  Global global_;
  Local local_;
  Scratch scratch_;
};

}  // namespace kiln::simulator::memory_unit
