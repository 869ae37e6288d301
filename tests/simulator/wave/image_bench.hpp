// Image resources and image instructions for a Bench: descriptors and words from their fields.
//
// Thread-safety: none. Ownership: values.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "simulator/isa/memory_formats.hpp"
#include "simulator/memory/image_layout.hpp"
#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {

using U = std::uint32_t;
using W = std::uint64_t;

struct Resource {  // of level 0, without blocks
  Generation generation = Generation::gfx11;
  W base = 0;
  unsigned format = 0;
  ImageType type = ImageType::two;
  unsigned width = 1, height = 1, last = 0, first = 0;
  unsigned mode = 0;
  unsigned base_level = 0, last_level = 0, levels = 1;
  unsigned select = 4U | 5U << 3U | 6U << 6U | 7U << 9U;
  bool compressed = false;
  W keys = 0;
};

inline void set_resource(Bench& bench, unsigned at, const Resource& r) {
  const bool gfx11 = r.generation == Generation::gfx11;
  const U w = r.width - 1;
  bench.sgpr(at) = static_cast<U>(r.base >> 8U);
  bench.sgpr(at + 1) = static_cast<U>(r.base >> 40U) | r.format << 20U | (w & 3U) << 30U;
  bench.sgpr(at + 2) = w >> 2U | (r.height - 1) << 14U | (gfx11 ? 0 : 1U << 31U);
  bench.sgpr(at + 3) =
      r.select | r.base_level << 12U | r.last_level << 16U | r.mode << 20U | static_cast<U>(r.type) << 28U;
  bench.sgpr(at + 4) = r.last | r.first << 16U;
  bench.sgpr(at + 5) = 0;
  bench.sgpr(at + (gfx11 ? 1 : 5)) |= (r.levels - 1) << (gfx11 ? 16U : 4U);
  bench.sgpr(at + 6) = (r.compressed ? 1U << 21U : 0) | static_cast<U>(r.keys >> 8U) << 24U;
  bench.sgpr(at + 7) = static_cast<U>(r.keys >> 16U);
}

struct Fields {
  Generation generation = Generation::gfx11;
  ImageDim dim = ImageDim::two;
  unsigned data = 10, address = 1, resource = 8, sampler = 0, mask = 15;
  bool glc = false, a16 = false, d16 = false, unnormalised = false, tfe = false;
  std::vector<unsigned> list = {};  // of the address, behind the first
};

inline std::vector<U> mimg(const char* name, const Fields& f) {
  const U number = encode::number(name, f.generation);
  const U dim = static_cast<U>(f.dim);
  U head = 0xF0000000U | f.mask << 8U, tail = f.resource / 4 << 16U | f.data << 8U | f.address;
  const U lists = static_cast<U>(f.list.size() + 3) / 4;
  if (f.generation == Generation::gfx11) {
    head |= number << 18U | (f.d16 ? 1U << 17U : 0) | (f.a16 ? 1U << 16U : 0) | (f.glc ? 1U << 14U : 0) | dim << 2U;
    head |= (f.unnormalised ? 1U << 7U : 0) | (lists != 0 ? 1U : 0U);
    tail |= f.sampler / 4 << 26U | (f.tfe ? 1U << 21U : 0);
  } else {
    head |= (number & 127U) << 18U | number >> 7U | (f.glc ? 1U << 13U : 0) | dim << 3U | lists << 1U;
    head |= (f.unnormalised ? 1U << 12U : 0) | (f.tfe ? 1U << 16U : 0);
    tail |= f.sampler / 4 << 21U | (f.a16 ? 1U << 30U : 0) | (f.d16 ? 1U << 31U : 0);
  }
  std::vector<U> words{head, tail};
  for (U i = 0; i < lists * 4; ++i) {
    if (i % 4 == 0) words.push_back(0);
    words.back() |= (i < f.list.size() ? f.list[i] : 0) << 8 * (i % 4);
  }
  return words;
}

inline U bits_of_float(float value) {
  U bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline constexpr Generation both[] = {Generation::gfx11, Generation::gfx10_3};

}  // namespace kiln::simulator::test
