// Texels of BC6H and BC7 blocks (BPTC): 128 bits, whose first bits name one of 14 or eight layouts. Each texel lies
// between the two endpoints of its subset; the weights and all roundings are those of the formats' specification.
#define KILN_VECTOR_BUILD bptc
#include <array>
#include <cstring>
#include <string_view>

#include "simulator/wave/memory/texel.hpp"
#include "simulator/wave/vector/number_formats.hpp"

namespace kiln::simulator::memory_unit {
namespace {

using bptc::as_bits;
using bptc::half_to_float;
using Word = std::uint32_t;
using Wide = std::uint64_t;

constexpr unsigned texels = 16;

// Of 64 partitions into two subsets: the texels of the second one.
constexpr std::uint16_t two_subsets[64] = {
    0xCCCC, 0x8888, 0xEEEE, 0xECC8, 0xC880, 0xFEEC, 0xFEC8, 0xEC80, 0xC800, 0xFFEC, 0xFE80, 0xE800, 0xFFE8,
    0xFF00, 0xFFF0, 0xF000, 0xF710, 0x008E, 0x7100, 0x08CE, 0x008C, 0x7310, 0x3100, 0x8CCE, 0x088C, 0x3110,
    0x6666, 0x366C, 0x17E8, 0x0FF0, 0x718E, 0x399C, 0xAAAA, 0xF0F0, 0x5A5A, 0x33CC, 0x3C3C, 0x55AA, 0x9696,
    0xA55A, 0x73CE, 0x13C8, 0x324C, 0x3BDC, 0x6996, 0xC33C, 0x9966, 0x0660, 0x0272, 0x04E4, 0x4E40, 0x2720,
    0xC936, 0x936C, 0x39C6, 0x639C, 0x9336, 0x9CC6, 0x817E, 0xE718, 0xCCF0, 0x0FCC, 0x7744, 0xEE22};
// Of three subsets: two bits for each texel.
constexpr Word three_subsets[64] = {
    0xAA685050, 0x6A5A5040, 0x5A5A4200, 0x5450A0A8, 0xA5A50000, 0xA0A05050, 0x5555A0A0, 0x5A5A5050,
    0xAA550000, 0xAA555500, 0xAAAA5500, 0x90909090, 0x94949494, 0xA4A4A4A4, 0xA9A59450, 0x2A0A4250,
    0xA5945040, 0x0A425054, 0xA5A5A500, 0x55A0A0A0, 0xA8A85454, 0x6A6A4040, 0xA4A45000, 0x1A1A0500,
    0x0050A4A4, 0xAAA59090, 0x14696914, 0x69691400, 0xA08585A0, 0xAA821414, 0x50A4A450, 0x6A5A0200,
    0xA9A58000, 0x5090A0A8, 0xA8A09050, 0x24242424, 0x00AA5500, 0x24924924, 0x24499224, 0x50A50A50,
    0x500AA550, 0xAAAA4444, 0x66660000, 0xA5A0A5A0, 0x50A050A0, 0x69286928, 0x44AAAA44, 0x66666600,
    0xAA444444, 0x54A854A8, 0x95809580, 0x96969600, 0xA85454A8, 0x80959580, 0xAA141414, 0x96960000,
    0xAAAA1414, 0xA05050A0, 0xA0A5A5A0, 0x96000000, 0x40804080, 0xA9A8A9A8, 0xAAAAAA44, 0x2A4A5254};
// The texel of the second subset, or of the second and the third, whose index has one bit less: a digit of base 16.
constexpr std::string_view anchor_of_two = "FFFFFFFFFFFFFFFFF282288F28228822FF6828FF28222FF66268FF22FFFFF22F";
constexpr std::string_view anchors_of_three[2] = {"33FF83FF88666533338F336A588685FF8F356A8FF3F5FFFF3F55585A5A8DFC33",
                                                  "F883FF38FFFFFFF8F8F3F8F83F6AFFA8F3FAA89A6F8F3668F3FFFFFFFFFF3FF8"};

constexpr std::uint8_t weights_of_2[] = {0, 21, 43, 64};
constexpr std::uint8_t weights_of_3[] = {0, 9, 18, 27, 37, 46, 55, 64};
constexpr std::uint8_t weights_of_4[] = {0, 4, 9, 13, 17, 21, 26, 30, 34, 38, 43, 47, 51, 55, 60, 64};

int weight_of(unsigned index, unsigned bits) {
  return bits == 2 ? weights_of_2[index] : bits == 3 ? weights_of_3[index] : weights_of_4[index];
}

int between(int first, int last, int weight) { return ((64 - weight) * first + weight * last + 32) >> 6; }

class Bits {  // of a block, the lowest first
 public:
  explicit Bits(const Element& block) { std::memcpy(words_, block.data(), sizeof(words_)); }
  unsigned take(unsigned count) {
    unsigned value = 0;
    for (unsigned i = 0; i < count; ++i, ++at_) {
      value |= static_cast<unsigned>(words_[at_ / 64] >> at_ % 64 & 1U) << i;
    }
    return value;
  }

 private:
  Wide words_[2];
  unsigned at_ = 0;
};

struct Partition {
  unsigned subsets = 1, number = 0;

  unsigned subset(unsigned texel) const {
    return subsets == 1   ? 0
           : subsets == 2 ? two_subsets[number] >> texel & 1U
                          : three_subsets[number] >> 2 * texel & 3U;
  }
  bool is_anchor(unsigned texel) const {
    constexpr std::string_view digits = "0123456789ABCDEF";
    const char digit = digits[texel];
    if (texel == 0 || subsets == 1) return texel == 0;
    if (subsets == 2) return anchor_of_two[number] == digit;
    return anchors_of_three[0][number] == digit || anchors_of_three[1][number] == digit;
  }
};

// Takes the indices of all texels.
unsigned take_index(Bits& bits, const Partition& partition, unsigned texel, unsigned width) {
  unsigned wanted = 0;
  for (unsigned i = 0; i < texels; ++i) {
    const unsigned index = bits.take(width - (partition.is_anchor(i) ? 1 : 0));
    if (i == texel) wanted = index;
  }
  return wanted;
}

// The eight layouts of BC7, in bits.
struct Bc7Mode {
  std::uint8_t subsets, partition, rotation, selection, color, alpha, own_low_bit, shared_low_bit, index, second_index;
};
constexpr Bc7Mode bc7_modes[] = {{3, 4, 0, 0, 4, 0, 1, 0, 3, 0}, {2, 6, 0, 0, 6, 0, 0, 1, 3, 0},
                                 {3, 6, 0, 0, 5, 0, 0, 0, 2, 0}, {2, 6, 0, 0, 7, 0, 1, 0, 2, 0},
                                 {1, 0, 2, 1, 5, 6, 0, 0, 2, 3}, {1, 0, 2, 0, 7, 8, 0, 0, 2, 2},
                                 {1, 0, 0, 0, 7, 7, 1, 0, 4, 0}, {2, 6, 0, 0, 5, 5, 1, 0, 2, 0}};

std::array<float, 4> bc7_color(const Element& block, unsigned texel) {
  Bits bits(block);
  unsigned number = 0;
  while (number < 8 && bits.take(1) == 0) ++number;
  if (number == 8) return {};
  const Bc7Mode& mode = bc7_modes[number];
  const Partition partition{mode.subsets, bits.take(mode.partition)};
  const unsigned rotation = bits.take(mode.rotation);
  const bool colors_second = bits.take(mode.selection) != 0;
  const unsigned ends = 2U * mode.subsets;
  unsigned end[4][6] = {};
  for (unsigned c = 0; c < 4; ++c) {
    for (unsigned e = 0; e < ends; ++e) end[c][e] = bits.take(c < 3 ? mode.color : mode.alpha);
  }
  const bool low_bit = mode.own_low_bit != 0 || mode.shared_low_bit != 0;
  unsigned low[6] = {};
  for (unsigned e = 0; e < ends; ++e) {
    low[e] = mode.own_low_bit != 0 ? bits.take(1) : e % 2 == 0 && low_bit ? bits.take(1) : low[e - e % 2];
  }
  const auto widened = [&](unsigned c, unsigned e) -> int {
    const unsigned stored = c < 3 ? mode.color : mode.alpha;
    if (stored == 0) return 255;
    const unsigned width = stored + (low_bit ? 1 : 0);
    const unsigned value = (low_bit ? end[c][e] << 1U | low[e] : end[c][e]) << (8 - width);
    return static_cast<int>(value | value >> width);
  };
  const unsigned first = take_index(bits, partition, texel, mode.index);
  const unsigned second = mode.second_index != 0 ? take_index(bits, partition, texel, mode.second_index) : 0;
  const int weight = weight_of(first, mode.index);
  const int other = mode.second_index != 0 ? weight_of(second, mode.second_index) : weight;
  const unsigned subset = 2 * partition.subset(texel);
  std::array<float, 4> color{};
  for (unsigned c = 0; c < 4; ++c) {
    const int chosen_weight = (c < 3) != colors_second ? weight : other;
    color[c] = static_cast<float>(between(widened(c, subset), widened(c, subset + 1), chosen_weight)) / 255;
  }
  if (rotation != 0) std::swap(color[3], color[rotation - 1]);
  return color;
}

// The layouts of BC6H. Fields: a channel, an endpoint (w and x of the first subset, y and z of the second), and in base
// 16 the first bit of it and the last one. `delta`: bits of x, y and z, which are differences to w.
struct Bc6Mode {
  std::uint8_t number, subsets, bits;
  bool differences;
  std::uint8_t delta[3];
  std::string_view fields;
};
constexpr Bc6Mode bc6_modes[] = {
    {0x00, 2, 10, true, {5, 5, 5}, "gy44by44bz44rw09gw09bw09rx04gz44gy03gx04bz00gz03bx04bz11by03ry04bz22rz04bz33"},
    {0x01,
     2,
     7,
     true,
     {6, 6, 6},
     "gy55gz44gz55rw06bz00bz11by44gw06by55bz22gy44bw06bz33bz55bz44rx05gy03gx05gz03bx05by03ry05rz05"},
    {0x02, 2, 11, true, {5, 4, 4}, "rw09gw09bw09rx04rwAAgy03gx03gwAAbz00gz03bx03bwAAbz11by03ry04bz22rz04bz33"},
    {0x06, 2, 11, true, {4, 5, 4}, "rw09gw09bw09rx03rwAAgz44gy03gx04gwAAgz03bx03bwAAbz11by03ry03bz00bz22rz03gy44bz33"},
    {0x0A, 2, 11, true, {4, 4, 5}, "rw09gw09bw09rx03rwAAby44gy03gx03gwAAbz00gz03bx04bwAAby03ry03bz11bz22rz03bz44bz33"},
    {0x0E, 2, 9, true, {5, 5, 5}, "rw08by44gw08gy44bw08bz44rx04gz44gy03gx04bz00gz03bx04bz11by03ry04bz22rz04bz33"},
    {0x12, 2, 8, true, {6, 5, 5}, "rw07gz44by44gw07bz22gy44bw07bz33bz44rx05gy03gx04bz00gz03bx04bz11by03ry05rz05"},
    {0x16,
     2,
     8,
     true,
     {5, 6, 5},
     "rw07bz00by44gw07gy55gy44bw07gz55bz44rx04gz44gy03gx05gz03bx04bz11by03ry04bz22rz04bz33"},
    {0x1A,
     2,
     8,
     true,
     {5, 5, 6},
     "rw07bz11by44gw07by55gy44bw07bz55bz44rx04gz44gy03gx04bz00gz03bx05by03ry04bz22rz04bz33"},
    {0x1E,
     2,
     6,
     false,
     {6, 6, 6},
     "rw05gz44bz00bz11by44gw05gy55by55bz22gy44bw05gz55bz33bz55bz44rx05gy03gx05gz03bx05by03ry05rz05"},
    {0x03, 1, 10, false, {10, 10, 10}, "rw09gw09bw09rx09gx09bx09"},
    {0x07, 1, 11, true, {9, 9, 9}, "rw09gw09bw09rx08rwAAgx08gwAAbx08bwAA"},
    {0x0B, 1, 12, true, {8, 8, 8}, "rw09gw09bw09rx07rwBAgx07gwBAbx07bwBA"},
    {0x0F, 1, 16, true, {4, 4, 4}, "rw09gw09bw09rx03rwFAgx03gwFAbx03bwFA"},
};

int sign_extended(int value, unsigned bits) {
  return static_cast<int>(static_cast<Word>(value) << (32 - bits)) >> (32 - bits);
}

// To 16 bits, or to 15 and a sign.
int unquantized(int value, unsigned bits, bool is_signed) {
  if (!is_signed) {
    if (bits >= 15 || value == 0) return value;
    return value == (1 << bits) - 1 ? 0xFFFF : ((value << 16) + 0x8000) >> bits;
  }
  if (bits >= 16 || value == 0) return value;
  const int size = value < 0 ? -value : value;
  const int wide = size >= (1 << (bits - 1)) - 1 ? 0x7FFF : ((size << 15) + 0x4000) >> (bits - 1);
  return value < 0 ? -wide : wide;
}

float finished(int value, bool is_signed) {
  if (!is_signed) return half_to_float(static_cast<Word>(value * 31 >> 6));
  const int size = (value < 0 ? -value : value) * 31 >> 5;
  return half_to_float(static_cast<Word>(size) | (value < 0 ? 0x8000U : 0U));
}

std::array<float, 4> bc6_color(const Element& block, unsigned texel, bool is_signed) {
  constexpr std::string_view digits = "0123456789ABCDEF", channels = "rgb", endpoints = "wxyz";
  Bits bits(block);
  unsigned number = bits.take(2);
  if (number >= 2) number |= bits.take(3) << 2U;
  const Bc6Mode* mode = nullptr;
  for (const Bc6Mode& one : bc6_modes) {
    if (one.number == number) mode = &one;
  }
  if (mode == nullptr) return {0, 0, 0, 1};
  int end[3][4] = {};
  for (std::size_t at = 0; at < mode->fields.size(); at += 4) {
    int& value = end[channels.find(mode->fields[at])][endpoints.find(mode->fields[at + 1])];
    const auto first = static_cast<int>(digits.find(mode->fields[at + 2]));
    const auto last = static_cast<int>(digits.find(mode->fields[at + 3]));
    const int step = last < first ? -1 : 1;
    for (int bit = first; bit != last + step; bit += step) value |= static_cast<int>(bits.take(1)) << bit;
  }
  const Partition partition{mode->subsets, mode->subsets == 2 ? bits.take(5) : 0};
  const unsigned width = mode->subsets == 2 ? 3 : 4;
  const int weight = weight_of(take_index(bits, partition, texel, width), width);
  const unsigned subset = 2 * partition.subset(texel);
  std::array<float, 4> color{0, 0, 0, 1};
  for (unsigned c = 0; c < 3; ++c) {
    for (unsigned e = 0; e < 4; ++e) {
      int& value = end[c][e];
      if (e > 0 && (is_signed || mode->differences)) value = sign_extended(value, mode->delta[c]);
      if (e == 0 && is_signed) value = sign_extended(value, mode->bits);
      if (e > 0 && mode->differences) {
        value = (end[c][0] + value) & ((1 << mode->bits) - 1);
        if (is_signed) value = sign_extended(value, mode->bits);
      }
    }
    const int first = unquantized(end[c][subset], mode->bits, is_signed);
    const int last = unquantized(end[c][subset + 1], mode->bits, is_signed);
    color[c] = finished(between(first, last, weight), is_signed);
  }
  return color;
}

}  // namespace

std::array<float, 4> bptc_color(const Element& block, const BufferFormat& format, unsigned texel) noexcept {
  constexpr unsigned bc7 = 7, bc6_signed = 8;
  return format.block == bc7 ? bc7_color(block, texel) : bc6_color(block, texel, format.block == bc6_signed);
}

}  // namespace kiln::simulator::memory_unit
