// Texels: one element of a formatted buffer or image, between its bytes and what a shader sees: four words, each a
// float's bits or an integer.
//
// Thread-safety: pure functions.
#pragma once

#include <xmmintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "simulator/isa/memory_formats.hpp"
#include "simulator/wave/wave.hpp"

namespace kiln::simulator::memory_unit {

using Element = std::array<std::byte, 16>;
using Color = std::array<std::uint32_t, 4>;

// The texture unit does not see MODE: it rounds to nearest even and keeps denormals.
class TexelScope {
 public:
  explicit TexelScope(const Wave& wave) : wave_(wave) { _mm_setcsr(0x1F80U); }  // all exceptions masked
  ~TexelScope() { _mm_setcsr(wave_.csr32); }
  TexelScope(const TexelScope&) = delete;
  TexelScope& operator=(const TexelScope&) = delete;

 private:
  const Wave& wave_;
};

unsigned bytes_of(const BufferFormat& format) noexcept;
bool is_integer(NumberType type) noexcept;

Color color_of(const Element& element, const BufferFormat& format) noexcept;  // what is absent: 0, 0, 1
// Of one texel of a compressed block.
Color block_color(const Element& block, const BufferFormat& format, unsigned x, unsigned y) noexcept;
// Of BC6 and BC7: four floats; sRGB as stored.
std::array<float, 4> bptc_color(const Element& block, const BufferFormat& format, unsigned texel) noexcept;
Element element_of(const Color& color, const BufferFormat& format) noexcept;  // floats rounded to nearest even
// A descriptor's choice for one component: 0, 1, or a channel.
std::uint32_t chosen(const Color& color, unsigned select, NumberType type) noexcept;

// A component in half a register, as D16 instructions have it.
std::uint32_t narrowed(std::uint32_t component, NumberType type) noexcept;
std::uint32_t widened(std::uint32_t half, NumberType type) noexcept;

}  // namespace kiln::simulator::memory_unit
