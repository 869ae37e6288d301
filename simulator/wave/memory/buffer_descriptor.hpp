// BufferDescriptor: the four words of a buffer resource, taken apart.
//
// Thread-safety and ownership: values.
#pragma once

#include <cstdint>

#include "simulator/fault.hpp"

namespace kiln::simulator {

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
