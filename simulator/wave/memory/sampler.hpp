// Sampler: the four words of a sampler resource, and the texel coordinates that its wrap modes and cube faces give.
//
// Thread-safety and ownership: values and pure functions.
#pragma once

#include <cstdint>

#include "simulator/isa/decoder.hpp"
#include "simulator/wave/memory/access.hpp"

namespace kiln::simulator::memory_unit {

enum class Wrap : std::uint8_t {  // as encoded
  repeat = 0,
  mirror,
  edge,
  mirror_edge,
  half_border,
  mirror_half_border,
  border,
  mirror_border
};

struct Sampler {
  Sampler(const Word* words, Generation generation) {
    const auto bits = [words](unsigned word, unsigned high, unsigned low) {
      return words[word] >> low & ((2U << (high - low)) - 1);
    };
    for (unsigned axis = 0; axis < 3; ++axis) wrap[axis] = static_cast<Wrap>(bits(0, 3 * axis + 2, 3 * axis));
    anisotropy = bits(0, 11, 9);
    compare = bits(0, 14, 12);
    unnormalised = bits(0, 15, 15) != 0;
    seamless = bits(0, 28, 28) == 0;
    mode = bits(0, 30, 29);
    plain_srgb = bits(0, 31, 31) != 0;
    min_lod = static_cast<float>(bits(1, 11, 0)) / 256;
    max_lod = static_cast<float>(bits(1, 23, 12)) / 256;
    bias = static_cast<float>(static_cast<std::int32_t>(words[2] << 18U) >> 18U) / 256;
    enlarge_linear = bits(2, 20, 20) != 0;
    shrink_linear = bits(2, 22, 22) != 0;
    anisotropic = bits(2, 21, 20) > 1 || bits(2, 23, 22) > 1;
    mip = bits(2, 27, 26);
    border = bits(3, 31, 30);
    border_index = generation == Generation::gfx11 ? bits(3, 29, 18) : bits(3, 11, 0);
  }

  Wrap wrap[3];
  unsigned anisotropy, compare, mode, mip, border, border_index;
  bool unnormalised, seamless, plain_srgb, enlarge_linear, shrink_linear, anisotropic;
  float min_lod, max_lod, bias;
};

inline constexpr unsigned mip_none = 0, mip_linear = 2;

inline bool passes(unsigned function, float reference, float texel) {
  const bool less = reference<texel, equal = reference == texel, greater = reference> texel;
  return ((function & 1U) != 0 && less) || ((function & 2U) != 0 && equal) || ((function & 4U) != 0 && greater);
}

inline unsigned axes_of(ImageDim dim) {
  constexpr std::uint8_t axes[] = {1, 2, 3, 2, 1, 2, 2, 2};
  return axes[static_cast<unsigned>(dim)];
}

// The faces of a cube: +x -x +y -y +z -z. `s` and `t` in texels from the face's corner.
struct FacePlace {
  int face, s, t;
};
// The texel beside an edge, one step outside of its face.
inline FacePlace over_edge(FacePlace at, int size) {
  const double s = 2 * (at.s + 0.5) / size - 1, t = 2 * (at.t + 0.5) / size - 1;
  const double faces[6][3] = {{1, -t, -s}, {-1, -t, s}, {s, 1, t}, {s, -1, -t}, {s, -t, 1}, {-s, -t, -1}};
  const double* way = faces[at.face];
  unsigned axis = 0;
  for (unsigned i = 1; i < 3; ++i) axis = std::fabs(way[i]) > std::fabs(way[axis]) ? i : axis;
  const bool negative = way[axis] < 0;
  const double major = std::fabs(way[axis]);
  double sc = 0, tc = 0;
  if (axis == 0) {
    sc = negative ? way[2] : -way[2];
    tc = -way[1];
  } else if (axis == 1) {
    sc = way[0];
    tc = negative ? -way[2] : way[2];
  } else {
    sc = negative ? -way[0] : way[0];
    tc = -way[1];
  }
  const auto texel = [&](double value) {
    return std::min(size - 1, std::max(0, static_cast<int>(std::floor((value / major + 1) / 2 * size))));
  };
  return {static_cast<int>(2 * axis + (negative ? 1 : 0)), texel(sc), texel(tc)};
}

inline constexpr int beyond = -1;  // of wrapped(): the border

// A texel's number along an axis of `size` texels.
inline int wrapped(Wrap wrap, std::int64_t index, int size) {
  const std::int64_t count = size;
  if (wrap == Wrap::repeat) return static_cast<int>((index % count + count) % count);
  if (wrap == Wrap::mirror) {
    const std::int64_t within = (index % (2 * count) + 2 * count) % (2 * count);
    return static_cast<int>(within < count ? within : 2 * count - 1 - within);
  }
  const bool mirrors = wrap == Wrap::mirror_edge || wrap == Wrap::mirror_half_border || wrap == Wrap::mirror_border;
  if (mirrors && index < 0) index = -1 - index;
  if (wrap == Wrap::edge || wrap == Wrap::mirror_edge) {
    return static_cast<int>(index < 0 ? 0 : index >= count ? count - 1 : index);
  }
  return index < 0 || index >= count ? beyond : static_cast<int>(index);
}

}  // namespace kiln::simulator::memory_unit
