// Buffers: the resource descriptor, and the address space that it describes.
#pragma once

#include <cstdint>

#include "simulator/fault.hpp"
#include "simulator/wave/memory/space.hpp"

namespace kiln::simulator {

// BufferDescriptor: the four words of a buffer resource, taken apart.
//
// Thread-safety and ownership: values.

enum class RangeCheck : std::uint8_t {  // OOB_SELECT, as encoded
  index_and_offset = 0,
  index = 1,
  none_if_records = 2,
  raw = 3
};

struct BufferDescriptor {
  BufferDescriptor(const std::uint32_t* words, Generation generation) noexcept {
    base = words[0] | static_cast<std::uint64_t>(words[1] & 0xFFFFU) << 32U;
    if ((base >> 47U & 1U) != 0) base |= 0xFFFF'0000'0000'0000U;
    stride = words[1] >> 16U & 0x3FFFU;
    const unsigned swizzle = generation == Generation::gfx11 ? words[1] >> 30U : words[1] >> 31U;
    element_bytes = swizzle == 0 ? 0 : generation == Generation::gfx11 ? 2U << swizzle : 4U;
    records = words[2];
    format = generation == Generation::gfx11 ? words[3] >> 12U & 0x3FU : words[3] >> 12U & 0x7FU;
    select = words[3] & 0xFFFU;
    index_stride = 8U << (words[3] >> 21U & 3U);
    add_lane = (words[3] >> 23U & 1U) != 0;
    range_check = static_cast<RangeCheck>(words[3] >> 28U & 3U);
    type = words[3] >> 30U;
  }

  std::uint64_t base = 0;
  std::uint32_t stride = 0;
  std::uint32_t records = 0;        // bytes, or structures
  std::uint32_t element_bytes = 0;  // of a swizzled buffer; 0: not swizzled
  std::uint32_t index_stride = 0;
  std::uint32_t format = 0;
  std::uint32_t select = 0;  // what each component of a formatted load is
  bool add_lane = false;     // the lane's number is added to the index
  RangeCheck range_check = RangeCheck::raw;
  std::uint32_t type = 0;  // 0: a buffer
};

}  // namespace kiln::simulator

namespace kiln::simulator::memory_unit {

// Buffer: the Space of buffer instructions: addresses by descriptor, index and offset, with its range checks. What lies
// outside reads as zero and is not written, word by word.
//
// Thread-safety and ownership: as of the other spaces.
class Buffer {
 public:
  Buffer(Wave& wave, const Op& op)
      : wave_(wave),
        op_(op),
        global_(wave, op),
        descriptor_(wave.scalar + op.sdst, wave.generation),
        scalar_offset_(op.kind[2] == SourceKind::none ? 0 : scalar_source32(wave, op, 2)) {
    // Without an index nothing is swizzled. RADV relies on it: the upper word of its descriptor of constants is that of
    // the program counter, whose sign sets stride and swizzle.
    if ((op.select & 2U) == 0 && !descriptor_.add_lane) descriptor_.element_bytes = 0;
  }

  const BufferDescriptor& descriptor() const { return descriptor_; }

  bool addresses(unsigned half, unsigned bytes, Addresses& out) {
    if (descriptor_.type != 0) {
      refuse(wave_, op_, FaultKind::bad_state, "buffer descriptor has type " + std::to_string(descriptor_.type));
      return false;
    }
    out.active = wave_.exec(half);
    const bool indexed = (op_.select & 2U) != 0, offset_given = (op_.select & 4U) != 0;
    const Word* index = indexed ? wave_.row(op_.reg[0], half) : nullptr;
    const Word* offset = offset_given ? wave_.row(op_.reg[0] + (indexed ? 1U : 0U), half) : nullptr;
    Word outside = 0;
    for (unsigned i = 0; i < group; ++i) {
      const unsigned lane = half * group + i;
      index_[lane] = (indexed ? index[i] : 0) + (descriptor_.add_lane ? lane : 0);
      // 32 bits, as a lane's address in LDS is: a compiler's a[9 - i] is the register's -4 i and the instruction's 36.
      offset_[lane] = (offset_given ? offset[i] : 0) + static_cast<Word>(op_.offset);
      outside |= inside(lane, 0, bytes) ? 0U : 1U << i;
      out.lane[i] = place(lane, 0);
    }
    out.outside = outside & out.active;
    out.careful = out.outside != 0 || descriptor_.element_bytes != 0;
    return true;
  }

  // A plain buffer of bytes, read at offsets side by side that all lie inside.
  bool side_by_side(unsigned half, unsigned bytes, Wide& base) const {
    const bool plain = descriptor_.type == 0 && descriptor_.element_bytes == 0 && !descriptor_.add_lane &&
                       descriptor_.range_check == RangeCheck::raw && (op_.select & 6U) == 4U;
    // The offset is unsigned here as it is there: 12 bits.
    if (!plain ||
        !wave_.lane_memory->side_by_side_local(wave_, op_, half, bytes, static_cast<Word>(op_.offset), base)) {
      return false;
    }
    if (scalar_offset_ + base + bytes * group > descriptor_.records) return false;
    base += descriptor_.base + scalar_offset_;
    return (base & 3U) == 0;
  }

  bool load(unsigned lane, Wide, void* out, unsigned bytes) const {
    auto* to = static_cast<std::byte*>(out);
    for (unsigned at = 0, part; at < bytes; at += part) {
      part = bytes - at < word_bytes ? bytes - at : word_bytes;
      if (!inside(lane, at, part)) {
        std::memset(to + at, 0, part);
      } else if (!global_.load(lane, place(lane, at), to + at, part)) {
        return false;
      }
    }
    return true;
  }
  bool store(unsigned lane, Wide, const void* in, unsigned bytes) const {
    const auto* from = static_cast<const std::byte*>(in);
    for (unsigned at = 0, part; at < bytes; at += part) {
      part = bytes - at < word_bytes ? bytes - at : word_bytes;
      if (inside(lane, at, part) && !global_.store(lane, place(lane, at), from + at, part)) return false;
    }
    return true;
  }
  std::byte* pointer(unsigned lane, Wide address, unsigned bytes) const {
    return global_.pointer(lane, address, bytes);
  }
  const std::byte* linear_read(Wide address, unsigned bytes) const { return global_.linear_read(address, bytes); }
  std::byte* linear_write(Wide address, unsigned bytes) const { return global_.linear_write(address, bytes); }
  void wrote(Wide address, unsigned bytes) const { global_.wrote(address, bytes); }

  // Whether `bytes` bytes, `at` bytes into a lane's element, belong to the buffer.
  bool inside(unsigned lane, unsigned at, unsigned bytes) const {
    const Wide end = offset_[lane] + at + bytes;
    const bool structured = descriptor_.element_bytes != 0 && descriptor_.stride != 0;
    switch (descriptor_.range_check) {
      case RangeCheck::index_and_offset:
        return index_[lane] < descriptor_.records && (descriptor_.stride == 0 || end <= descriptor_.stride);
      case RangeCheck::index:
        return index_[lane] < descriptor_.records;
      case RangeCheck::none_if_records:
        return descriptor_.records != 0;
      case RangeCheck::raw:
        break;
    }
    if (structured) return index_[lane] < descriptor_.records && end <= descriptor_.stride;
    if (descriptor_.element_bytes != 0) return end <= descriptor_.records;
    return scalar_offset_ + static_cast<Wide>(index_[lane]) * descriptor_.stride + end <= descriptor_.records;
  }

 private:
  Wide place(unsigned lane, unsigned at) const {
    const Wide offset = offset_[lane] + at;
    const Wide base = descriptor_.base + scalar_offset_;
    if (descriptor_.element_bytes == 0) return base + static_cast<Wide>(index_[lane]) * descriptor_.stride + offset;
    const Wide element = descriptor_.element_bytes, indices = descriptor_.index_stride;
    const Wide row = index_[lane] / indices * descriptor_.stride + offset / element * element;
    return base + row * indices + index_[lane] % indices * element + offset % element;
  }

  Wave& wave_;
  const Op& op_;
  Global global_;
  BufferDescriptor descriptor_;
  Word scalar_offset_;
  Word index_[2 * group];
  Wide offset_[2 * group];
};

}  // namespace kiln::simulator::memory_unit
