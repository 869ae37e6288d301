#define KILN_VECTOR_BUILD formats  // the numbers of vector instructions, in a copy of this file's own
#include "simulator/wave/memory/texel.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "simulator/wave/vector/number_formats.hpp"

namespace kiln::simulator::memory_unit {
namespace {

using formats::as_bits;
using formats::as_float;
using formats::double_to_half_slow;
using formats::half_to_float;
using Word = std::uint32_t;
using Wide = std::uint64_t;

// Floats of 10 and 11 bits have no sign, five bits of exponent and what is left as fraction: an f16 cut short.
unsigned cut_from_half(unsigned bits) { return 15 - bits; }

Word channel_of(const Element& element, unsigned first, unsigned bits) {
  Wide word = 0;
  std::memcpy(&word, element.data() + first / 32 * 4, first / 32 * 4 + 8 <= element.size() ? 8 : 4);
  return static_cast<Word>(word >> first % 32 & ((Wide{1} << bits) - 1));
}
void set_channel(Element& element, unsigned first, unsigned bits, Word value) {
  for (unsigned i = 0; i < bits; ++i) {
    const unsigned at = first + i;
    const std::byte mask = std::byte{1} << at % 8;
    element[at / 8] = (value >> i & 1U) != 0 ? element[at / 8] | mask : element[at / 8] & ~mask;
  }
}

std::int32_t sign_extended(Word value, unsigned bits) {
  return static_cast<std::int32_t>(value << (32 - bits)) >> (32 - bits);
}

float most_of(unsigned bits) { return static_cast<float>((Wide{1} << bits) - 1); }

// The transfer function of sRGB and its inverse.
double linear_of(double stored) { return stored <= 0.04045 ? stored / 12.92 : std::pow((stored + 0.055) / 1.055, 2.4); }
double stored_of(double linear) {
  return linear <= 0.0031308 ? linear * 12.92 : 1.055 * std::pow(linear, 1 / 2.4) - 0.055;
}

// One channel as the shader sees it: a float's bits, or an integer.
Word decoded(Word raw, unsigned bits, NumberType type) {
  const float most_signed = most_of(bits - 1);
  switch (type) {
    case NumberType::unorm:
      return as_bits(static_cast<float>(raw) / most_of(bits));
    case NumberType::snorm:
      return as_bits(std::fmax(-1.0F, static_cast<float>(sign_extended(raw, bits)) / most_signed));
    case NumberType::uscaled:
      return as_bits(static_cast<float>(raw));
    case NumberType::sscaled:
      return as_bits(static_cast<float>(sign_extended(raw, bits)));
    case NumberType::sint:
      return static_cast<Word>(sign_extended(raw, bits));
    case NumberType::srgb:
      return as_bits(static_cast<float>(linear_of(static_cast<double>(raw) / 255)));
    case NumberType::floating:
      if (bits == 16) return as_bits(half_to_float(raw));
      if (bits < 16) return as_bits(half_to_float(raw << cut_from_half(bits)));
      return raw;
    default:
      return raw;
  }
}

Word rounded(float value, float low, float high) {
  const float inside = value != value ? 0.0F : std::fmin(std::fmax(value, low), high);
  return static_cast<Word>(static_cast<std::int64_t>(std::nearbyint(inside)));
}

Word encoded(Word value, unsigned bits, NumberType type) {
  const float most = most_of(bits), most_signed = most_of(bits - 1);
  const float number = as_float(value);
  switch (type) {
    case NumberType::unorm:
      return rounded(number * most, 0.0F, most);
    case NumberType::snorm:
      return rounded(number * most_signed, -most_signed, most_signed);
    case NumberType::uscaled:
      return rounded(number, 0.0F, most);
    case NumberType::sscaled:
      return rounded(number, -most_signed - 1.0F, most_signed);
    case NumberType::srgb: {
      const float inside = number > 0 ? std::fmin(number, 1.0F) : 0.0F;
      return rounded(static_cast<float>(stored_of(static_cast<double>(inside)) * 255), 0.0F, most);
    }
    case NumberType::floating: {
      if (bits == 32) return value;
      if (bits == 16) return double_to_half_slow(static_cast<double>(number), 0, false);
      const float inside = number < 0 ? 0.0F : number;  // a NaN stays one
      const Word half = double_to_half_slow(static_cast<double>(inside), 3, false) & 0x7FFFU;
      return half >> cut_from_half(bits);
    }
    case NumberType::uint:
      return bits == 32 ? value : std::min(value, (1U << bits) - 1);
    case NumberType::sint: {
      const std::int64_t least = -(std::int64_t{1} << (bits - 1));
      return static_cast<Word>(std::clamp<std::int64_t>(static_cast<std::int32_t>(value), least, -least - 1));
    }
    default:
      return value;
  }
}

constexpr unsigned shared_fraction = 9, shared_bias = 15, shared_exponents = 31;

Color shared_color(const Element& element) {
  const int exponent = static_cast<int>(channel_of(element, 27, 5)) - static_cast<int>(shared_bias + shared_fraction);
  Color color{0, 0, 0, as_bits(1.0F)};
  for (unsigned c = 0; c < 3; ++c) {
    color[c] = as_bits(std::ldexp(static_cast<float>(channel_of(element, 9 * c, 9)), exponent));
  }
  return color;
}

Element shared_element(const Color& color) {
  constexpr float most = 65408.0F;  // 511/512 * 2^16
  float inside[3], largest = 0;
  for (unsigned c = 0; c < 3; ++c) {
    const float value = as_float(color[c]);
    inside[c] = value > 0 ? std::fmin(value, most) : 0.0F;
    largest = std::fmax(largest, inside[c]);
  }
  int exponent = largest > 0 ? std::ilogb(largest) + 1 : -static_cast<int>(shared_bias);
  exponent = exponent < -static_cast<int>(shared_bias) ? -static_cast<int>(shared_bias) : exponent;
  const auto scaled = [&](float value) {
    return std::floor(std::ldexp(value, static_cast<int>(shared_fraction) - exponent) + 0.5F);
  };
  if (scaled(largest) > most_of(shared_fraction)) ++exponent;
  const auto stored = static_cast<Word>(exponent + static_cast<int>(shared_bias));
  Element element{};
  for (unsigned c = 0; c < 3; ++c) set_channel(element, 9 * c, 9, static_cast<Word>(scaled(inside[c])));
  set_channel(element, 27, 5, stored > shared_exponents ? shared_exponents : stored);
  return element;
}

using Four = std::array<float, 4>;

// Two colours of 5, 6 and 5 bits, and two bits for each texel that choose one of these or a mean. `three`: where the
// first number is not the larger one there is one mean, and transparent black.
Four ramp_color(const std::byte* bytes, unsigned texel, bool three) {
  std::uint16_t ends[2];
  Word choices = 0;
  std::memcpy(ends, bytes, sizeof(ends));
  std::memcpy(&choices, bytes + sizeof(ends), sizeof(choices));
  const auto channel = [&](unsigned end, unsigned c) {
    constexpr unsigned first[] = {11, 5, 0}, most[] = {31, 63, 31};
    return static_cast<float>(ends[end] >> first[c] & most[c]) / static_cast<float>(most[c]);
  };
  const unsigned choice = choices >> 2 * texel & 3U;
  const bool means = !three || ends[0] > ends[1];
  Four color{0, 0, 0, 1};
  if (choice == 3 && !means) return {0, 0, 0, 0};
  for (unsigned c = 0; c < 3; ++c) {
    const float a = channel(0, c), b = channel(1, c);
    color[c] = choice == 0   ? a
               : choice == 1 ? b
               : !means      ? (a + b) / 2
               : choice == 2 ? (2 * a + b) / 3
                             : (a + 2 * b) / 3;
  }
  return color;
}

// Two numbers of eight bits, and three bits for each texel: one of these, a mean, or the least and the most.
float ramp_value(const std::byte* bytes, unsigned texel, bool is_signed) {
  Wide word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  const auto end = [&](unsigned at) {
    const Word raw = static_cast<Word>(word >> 8 * at & 0xFFU);
    return is_signed ? std::fmax(-1.0F, static_cast<float>(sign_extended(raw, 8)) / 127)
                     : static_cast<float>(raw) / 255;
  };
  const auto raw_end = [&](unsigned at) {
    const Word raw = static_cast<Word>(word >> 8 * at & 0xFFU);
    return is_signed ? sign_extended(raw, 8) : static_cast<std::int32_t>(raw);
  };
  const unsigned choice = static_cast<unsigned>(word >> (16 + 3 * texel) & 7U);
  const float a = end(0), b = end(1);
  if (choice < 2) return choice == 0 ? a : b;
  const auto part = static_cast<float>(choice - 1);
  if (raw_end(0) > raw_end(1)) return ((7 - part) * a + part * b) / 7;
  if (choice < 6) return ((5 - part) * a + part * b) / 5;
  return choice == 7 ? 1.0F : is_signed ? -1.0F : 0.0F;
}

// Of one channel: alpha is no sRGB.
NumberType type_of(const BufferFormat& format, unsigned channel) {
  return format.type == NumberType::srgb && channel == 3 ? NumberType::unorm : format.type;
}

Word one_of(NumberType type) { return is_integer(type) ? 1U : as_bits(1.0F); }

}  // namespace

unsigned bytes_of(const BufferFormat& format) noexcept {
  unsigned bits = 0;
  for (const std::uint8_t part : format.bits) bits += part;
  return bits / 8;
}

bool is_integer(NumberType type) noexcept { return type == NumberType::uint || type == NumberType::sint; }

Color color_of(const Element& element, const BufferFormat& format) noexcept {
  if (format.type == NumberType::exponent) return shared_color(element);
  Color color{0, 0, 0, one_of(format.type)};
  for (unsigned c = 0, first = 0; c < format.channels; first += format.bits[c], ++c) {
    color[c] = decoded(channel_of(element, first, format.bits[c]), format.bits[c], type_of(format, c));
  }
  return color;
}

Color block_color(const Element& block, const BufferFormat& format, unsigned x, unsigned y) noexcept {
  constexpr unsigned bc1 = 1, bc2 = 2, bc3 = 3, bc5 = 5, bc6 = 6;
  const unsigned texel = 4 * y + x, half = 8;
  const bool is_signed = format.type == NumberType::snorm;
  Four color{0, 0, 0, 1};
  if (format.block <= bc3) {
    color = ramp_color(block.data() + (format.block == bc1 ? 0 : half), texel, format.block == bc1);
    if (format.block == bc2) color[3] = static_cast<float>(channel_of(block, 4 * texel, 4)) / 15;
    if (format.block == bc3) color[3] = ramp_value(block.data(), texel, false);
  } else if (format.block >= bc6) {
    color = bptc_color(block, format, texel);
  } else {
    color[0] = ramp_value(block.data(), texel, is_signed);
    if (format.block == bc5) color[1] = ramp_value(block.data() + half, texel, is_signed);
  }
  Color result{};
  for (unsigned c = 0; c < 4; ++c) {
    const bool srgb = format.type == NumberType::srgb && c < 3;
    result[c] = as_bits(srgb ? static_cast<float>(linear_of(static_cast<double>(color[c]))) : color[c]);
  }
  return result;
}

Element element_of(const Color& color, const BufferFormat& format) noexcept {
  if (format.type == NumberType::exponent) return shared_element(color);
  Element element{};
  for (unsigned c = 0, first = 0; c < format.channels; first += format.bits[c], ++c) {
    set_channel(element, first, format.bits[c], encoded(color[c], format.bits[c], type_of(format, c)));
  }
  return element;
}

Word chosen(const Color& color, unsigned select, NumberType type) noexcept {
  constexpr unsigned select_one = 1, first_channel = 4;
  return select >= first_channel ? color[select - first_channel] : select == select_one ? one_of(type) : 0;
}

Word narrowed(Word component, NumberType type) noexcept {
  if (is_integer(type)) return component & 0xFFFFU;
  return double_to_half_slow(static_cast<double>(as_float(component)), 0, false);
}

Word widened(Word half, NumberType type) noexcept {
  half &= 0xFFFFU;
  if (type == NumberType::sint) return static_cast<Word>(sign_extended(half, 16));
  return type == NumberType::uint ? half : as_bits(half_to_float(half));
}

}  // namespace kiln::simulator::memory_unit
