// Formatted buffer loads and stores: MUBUF's by the descriptor's format and selection, MTBUF's by the instruction's format.
#define KILN_VECTOR_BUILD formats  // the numbers of vector instructions, in a copy of this file's own
#include "simulator/wave/vector/half_numbers.hpp"

#include <array>
#include <cmath>
#include <iterator>

#include "simulator/isa/buffer_format.hpp"
#include "simulator/wave/memory/buffer_space.hpp"
#include "simulator/wave/memory/lists.hpp"

namespace kiln::simulator::memory_unit {
namespace {

using formats::as_bits;
using formats::as_float;
using formats::double_to_half_slow;
using formats::half_to_float;

constexpr unsigned channels = 4;
using Element = std::array<std::byte, 16>;
using Color = std::array<Word, channels>;

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

// One channel as the shader sees it: a float's bits, or an integer.
Word decoded(Word raw, unsigned bits, NumberType type) {
  const float most = static_cast<float>((Wide{1} << bits) - 1), most_signed = static_cast<float>((Wide{1} << (bits - 1)) - 1);
  switch (type) {
    case NumberType::unorm: return as_bits(static_cast<float>(raw) / most);
    case NumberType::snorm: return as_bits(std::fmax(-1.0F, static_cast<float>(sign_extended(raw, bits)) / most_signed));
    case NumberType::uscaled: return as_bits(static_cast<float>(raw));
    case NumberType::sscaled: return as_bits(static_cast<float>(sign_extended(raw, bits)));
    case NumberType::sint: return static_cast<Word>(sign_extended(raw, bits));
    case NumberType::floating:
      if (bits == 16) return as_bits(half_to_float(raw));
      if (bits < 16) return as_bits(half_to_float(raw << cut_from_half(bits)));
      return raw;
    default: return raw;
  }
}

Word rounded(float value, float low, float high) {
  const float inside = value != value ? 0.0F : std::fmin(std::fmax(value, low), high);
  return static_cast<Word>(static_cast<std::int64_t>(std::nearbyint(inside)));
}

Word encoded(Word value, unsigned bits, NumberType type) {
  const float most = static_cast<float>((Wide{1} << bits) - 1), most_signed = static_cast<float>((Wide{1} << (bits - 1)) - 1);
  const float number = as_float(value);
  switch (type) {
    case NumberType::unorm: return rounded(number * most, 0.0F, most);
    case NumberType::snorm: return rounded(number * most_signed, -most_signed, most_signed);
    case NumberType::uscaled: return rounded(number, 0.0F, most);
    case NumberType::sscaled: return rounded(number, -most_signed - 1.0F, most_signed);
    case NumberType::floating: {
      if (bits == 32) return value;
      if (bits == 16) return double_to_half_slow(static_cast<double>(number), 0, false);
      const Word half = double_to_half_slow(static_cast<double>(std::fmax(number, 0.0F)), 3, false);
      return half >> cut_from_half(bits);
    }
    default: return value;
  }
}

bool is_integer(NumberType type) { return type == NumberType::uint || type == NumberType::sint; }
Word one_of(NumberType type) { return is_integer(type) ? 1U : as_bits(1.0F); }

// A descriptor's choice for one component: 0, 1, or a channel.
Word chosen(const Color& color, unsigned select, NumberType type) {
  constexpr unsigned select_one = 1, first_channel = 4;
  return select >= first_channel ? color[select - first_channel] : select == select_one ? one_of(type) : 0;
}

enum : std::uint8_t { x = 1, xy = 2, xyz = 3, xyzw = 4, count_mask = 7, narrow = 8, high = 16 };

struct Format {
  BufferFormat layout;
  unsigned bytes = 0;
  unsigned select = 0;
};

constexpr unsigned identity = 4U | 5U << 3U | 6U << 6U | 7U << 9U;

template <bool Typed>
bool find_format(Wave& wave, const Op& op, const Buffer& buffer, Format& out) {
  const unsigned number = Typed ? op.extra : buffer.descriptor().format;
  const std::optional<BufferFormat> found = find_buffer_format(wave.generation, number);
  if (!found) {
    refuse(wave, op, FaultKind::bad_state, "buffer format " + std::to_string(number) + " does not exist");
    return false;
  }
  out.layout = *found;
  unsigned bits = 0;
  for (const std::uint8_t part : found->bits) bits += part;
  out.bytes = bits / 8;
  out.select = Typed ? identity : buffer.descriptor().select;
  return true;
}

Color color_of(const Element& element, const BufferFormat& layout) {
  Color color{0, 0, 0, one_of(layout.type)};
  for (unsigned c = 0, first = 0; c < layout.channels; first += layout.bits[c], ++c) {
    color[c] = decoded(channel_of(element, first, layout.bits[c]), layout.bits[c], layout.type);
  }
  return color;
}

template <bool Typed>
Next load_format(Wave& wave, const Op& op) {
  const unsigned count = op.detail & count_mask;
  Buffer buffer(wave, op);
  Format format;
  if (!find_format<Typed>(wave, op, buffer, format)) return Next::fault;
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    Addresses at;
    if (!buffer.addresses(half, format.bytes, at)) return Next::fault;
    for (Word left = at.active; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      const bool outside = (at.outside >> i & 1U) != 0;
      Element element{};
      if (!outside && !buffer.load(half * group + i, at.lane[i], element.data(), format.bytes)) return Next::fault;
      const Color color = color_of(element, format.layout);
      for (unsigned c = 0; c < count; ++c) {
        Word value = outside ? 0 : chosen(color, format.select >> 3 * c & 7U, format.layout.type);
        if ((op.detail & narrow) == 0) {
          wave.row(op.vdst + c, half)[i] = value;
          continue;
        }
        if (!is_integer(format.layout.type)) value = double_to_half_slow(static_cast<double>(as_float(value)), 0, false);
        Word& word = wave.row(op.vdst + c / 2, half)[i];
        const bool upper = c % 2 != 0 || (op.detail & high) != 0;
        word = upper ? (word & 0xFFFFU) | value << 16U : (word & 0xFFFF0000U) | (value & 0xFFFFU);
      }
    }
  }
  return Next::go;
}

template <bool Typed>
Next store_format(Wave& wave, const Op& op) {
  const unsigned count = op.detail & count_mask;
  Buffer buffer(wave, op);
  Format format;
  if (!find_format<Typed>(wave, op, buffer, format)) return Next::fault;
  for (unsigned half = 0; half < wave.halves; ++half) {
    if (wave.exec(half) == 0) continue;
    Addresses at;
    if (!buffer.addresses(half, format.bytes, at)) return Next::fault;
    for (Word left = at.active & ~at.outside; left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      Element element{};
      for (unsigned c = 0, first = 0; c < format.layout.channels; first += format.layout.bits[c], ++c) {
        Word value = 0;
        if (c < count && (op.detail & narrow) == 0) {
          value = wave.row(op.reg[1] + c, half)[i];
        } else if (c < count) {
          const bool upper = c % 2 != 0 || (op.detail & high) != 0;
          value = wave.row(op.reg[1] + c / 2, half)[i] >> (upper ? 16U : 0U) & 0xFFFFU;
          if (format.layout.type == NumberType::sint) {
            value = static_cast<Word>(sign_extended(value, 16));
          } else if (format.layout.type != NumberType::uint) {
            value = as_bits(half_to_float(value));
          }
        }
        set_channel(element, first, format.layout.bits[c],
                    encoded(value, format.layout.bits[c], format.layout.type));
      }
      if (!buffer.store(half * group + i, at.lane[i], element.data(), format.bytes)) return Next::fault;
    }
  }
  return Next::go;
}

template <bool Typed>
struct Formats {
  static constexpr Semantics entries[] = {
      {"load_format_x", &load_format<Typed>, takes::nothing, x},
      {"load_format_xy", &load_format<Typed>, takes::nothing, xy},
      {"load_format_xyz", &load_format<Typed>, takes::nothing, xyz},
      {"load_format_xyzw", &load_format<Typed>, takes::nothing, xyzw},
      {"store_format_x", &store_format<Typed>, takes::nothing, x},
      {"store_format_xy", &store_format<Typed>, takes::nothing, xy},
      {"store_format_xyz", &store_format<Typed>, takes::nothing, xyz},
      {"store_format_xyzw", &store_format<Typed>, takes::nothing, xyzw},
      {"load_d16_format_x", &load_format<Typed>, takes::nothing, x | narrow},
      {"load_d16_format_xy", &load_format<Typed>, takes::nothing, xy | narrow},
      {"load_d16_format_xyz", &load_format<Typed>, takes::nothing, xyz | narrow},
      {"load_d16_format_xyzw", &load_format<Typed>, takes::nothing, xyzw | narrow},
      {"store_d16_format_x", &store_format<Typed>, takes::nothing, x | narrow},
      {"store_d16_format_xy", &store_format<Typed>, takes::nothing, xy | narrow},
      {"store_d16_format_xyz", &store_format<Typed>, takes::nothing, xyz | narrow},
      {"store_d16_format_xyzw", &store_format<Typed>, takes::nothing, xyzw | narrow},
      {"load_d16_hi_format_x", &load_format<Typed>, takes::nothing, x | narrow | high},
      {"store_d16_hi_format_x", &store_format<Typed>, takes::nothing, x | narrow | high},
  };
};

}  // namespace

SemanticsList formatted_buffer() noexcept { return {Formats<false>::entries, std::size(Formats<false>::entries)}; }
SemanticsList typed_buffer() noexcept { return {Formats<true>::entries, std::size(Formats<true>::entries)}; }

}  // namespace kiln::simulator::memory_unit
