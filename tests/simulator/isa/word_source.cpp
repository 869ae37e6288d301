#include "simulator/isa/word_source.hpp"

#include "simulator/isa/memory_formats.hpp"

namespace kiln::test {

using simulator::Encoding;
using simulator::Opcode;

unsigned WordSource::numbers(Encoding encoding) const {
  switch (encoding) {
    case Encoding::sop2:
      return 96;
    case Encoding::sopk:
      return 29;
    case Encoding::sop1:
      return 256;
    case Encoding::sopc:
    case Encoding::sopp:
      return 128;
    case Encoding::smem:
      return 256;
    case Encoding::vop2:
      return 62;
    case Encoding::vop1:
    case Encoding::vopc:
      return 256;
    case Encoding::vop3:
      return 1024;
    case Encoding::vop3p:
      return 128;
    case Encoding::dual:
      return gfx11() ? 512 : 0;
    case Encoding::ds:
      return 256;
    case Encoding::flat:
    case Encoding::global:
    case Encoding::scratch:
      return 128;
    case Encoding::mubuf:
      return 256;
    case Encoding::mtbuf:
      return 16;
    case Encoding::mimg:
      return 256;
    default:
      return 0;
  }
}

std::uint32_t WordSource::scalar_register() {
  switch (below(10)) {
    case 0:
      return 106;
    case 1:
      return 126;
    case 2:
      return 124;
    case 3:
      return 125;
    case 4:
      return below(128);
    default:
      return 4 * below(24);
  }
}

std::uint32_t WordSource::scalar_source() {
  switch (below(8)) {
    case 0:
      return 128 + below(81);
    case 1:
      return 240 + below(9);
    case 2:
      return 255;
    case 3:
      return rarely() ? below(256) : 251 + below(3);
    case 4:
      return rarely() ? below(256) : 235 + below(4);
    default:
      return scalar_register();
  }
}

std::uint32_t WordSource::source() { return below(2) == 0 ? 256 + vgpr() : scalar_source(); }

std::uint32_t WordSource::dpp16() {
  constexpr std::uint32_t controls[] = {0x1B, 0xE4, 0x101, 0x112, 0x12F, 0x140, 0x141, 0x150, 0x16F};
  const std::uint32_t control = rarely() ? below(512) : controls[below(9)];
  return below(16) << 28 | below(16) << 24 | sometimes(4) << 20 | below(2) << 19 | below(2) << 18 | control << 8 |
         vgpr();
}

WordSource::Words WordSource::scalar(Encoding encoding, unsigned number) {
  const std::uint32_t literal = below(2) == 0 ? below(100) : static_cast<std::uint32_t>(random_());
  const std::uint32_t dst = rarely() ? 0 : scalar_register() << 16;
  const std::uint32_t constant = below(3) == 0 ? 0 : below(0x10000);
  switch (encoding) {
    case Encoding::sop2:
      return {0b10u << 30 | number << 23 | dst | scalar_source() << 8 | scalar_source(), literal};
    case Encoding::sop1: {
      const std::uint32_t sources = rarely() ? 0 : scalar_source();
      return {0b101111101u << 23 | (rarely() ? 0 : dst) | number << 8 | sources, literal};
    }
    case Encoding::sopc:
      return {0b101111110u << 23 | number << 16 | scalar_source() << 8 | scalar_source(), literal};
    case Encoding::sopk:
      return {0b1011u << 28 | number << 23 | dst | constant, literal};
    default:
      return {0b101111111u << 23 | number << 16 | constant};
  }
}

WordSource::Words WordSource::vector(Encoding encoding, unsigned number) {
  std::uint32_t head = 0;
  switch (encoding) {
    case Encoding::vop2:
      head = number << 25 | vgpr() << 17 | vgpr() << 9;
      break;
    case Encoding::vop1:
      head = 0b0111111u << 25 | vgpr() << 17 | number << 9;
      break;
    default:
      head = 0b0111110u << 25 | number << 17 | vgpr() << 9;
      break;
  }
  if (rarely()) return {head & ~0x1FE0000u, 0};  // no operands
  switch (below(5)) {
    case 0:
      return {head | 250, dpp16()};
    case 1:
      return {head | (233 + below(2)), below(1u << 24) << 8 | vgpr()};
    case 2: {
      // dst_unused 3 is left out: LLVM's disassembler does not survive it.
      const std::uint32_t first = below(7) << 8 | below(3) << 11 | sometimes(3) << 13;
      const std::uint32_t sources = below(7) << 16 | below(7) << 24 | sometimes(5) << 19 | sometimes(5) << 27;
      const bool one = encoding == Encoding::vop1 && !rarely();
      const std::uint32_t result = encoding == Encoding::vopc ? (below(2) << 15 | scalar_register() << 8) : first;
      return {head | 249, (one ? sources & 0xFFFFFFu : sources) | result | vgpr()};
    }
    default:
      return {head | source(), static_cast<std::uint32_t>(random_())};
  }
}

WordSource::Words WordSource::vop3(Encoding encoding, unsigned number) {
  const bool packed = encoding == Encoding::vop3p;
  if (packed && number >= 64 && below(2) == 0) {  // sums of matrices: few random fields make one
    return {0xCCu << 24 | number << 16 | sometimes(1) << 15 | 1u << 14 | below(2) << 13 | sometimes(3) << 8 | vgpr(),
            sometimes(3) << 29 | 3u << 27 | source() << 18 | (256 + vgpr()) << 9 | (256 + vgpr())};
  }
  const std::uint32_t op_sel = sometimes(4) << 11;
  std::uint32_t head = (packed ? 0xCCu << 24 : 0b110101u << 26) | number << 16;
  head |= rarely() ? 0x8000u : 0;
  head |= op_sel | sometimes(3) << 8;
  head |= below(3) == 0 ? scalar_register() : vgpr();
  if (packed && !rarely()) head |= 1u << 14;
  std::uint32_t tail = sometimes(3) << 29 | (packed && !rarely() ? 3u : sometimes(2)) << 27;
  const std::uint32_t third = below(4) == 0 ? 0 : below(3) == 0 ? scalar_register() : source();
  const std::uint32_t second = below(8) == 0 ? 0 : source();
  tail |= third << 18 | second << 9;
  switch (below(8)) {
    case 0:
      return {head, tail | 250, dpp16() & (rarely() ? ~0u : ~0xF00000u)};
    case 1:
      return {head, tail | (233 + below(2)), below(1u << 24) << 8 | vgpr()};
    case 2:
      return {head, tail, static_cast<std::uint32_t>(random_())};
    default:
      return {head, tail | source(), static_cast<std::uint32_t>(random_())};
  }
}

WordSource::Words WordSource::dual(unsigned number) {
  const std::uint32_t dst = below(256);
  const std::uint32_t low0 = below(4);
  const std::uint32_t low1 = below(4);
  const auto other = [this](std::uint32_t low) { return 4 * below(60) + (low + 1 + below(3)) % 4; };
  const auto first_source = [this](std::uint32_t code) { return below(3) == 0 ? scalar_source() : 256 + code; };
  const auto second_source = [](unsigned opcode, std::uint32_t code) { return opcode == 8 ? 0 : code; };
  const unsigned x = number >> 5;
  const unsigned y = number & 31u;
  return {0b110010u << 26 | x << 22 | y << 17 | second_source(x, 4 * below(60) + low1) << 9 |
              first_source(4 * below(60) + low0),
          dst << 24 | below(128) << 17 | second_source(y, other(low1)) << 9 | first_source(other(low0)),
          static_cast<std::uint32_t>(random_())};
}

WordSource::Words WordSource::smem(unsigned number) {
  const std::uint32_t offset = below(2) == 0 ? below(1u << 12) : below(1u << 21);
  const std::uint32_t soffset = below(2) == 0 ? null_code() : scalar_register();
  std::uint32_t head = 0b111101u << 26 | number << 18 | sometimes(5) << 13;
  if (!rarely()) head |= scalar_register() << 6 | 2 * below(24);
  return {head, soffset << 25 | sometimes(4) << 21 | offset};
}

WordSource::Words WordSource::ds(unsigned number) {
  const auto maybe = [this]() { return below(2) == 0 ? 0 : vgpr(); };
  if (rarely()) return {0b110110u << 26 | number << 18, 0};
  return {0b110110u << 26 | number << 18 | sometimes(1) << 17 | sometimes(1) << 16 | below(0x10000),
          maybe() << 24 | maybe() << 16 | maybe() << 8 | maybe()};
}

WordSource::Words WordSource::flat(unsigned segment, unsigned number) {
  const std::uint32_t saddr = below(2) == 0 ? null_code() : rarely() ? 127 : scalar_register();
  const std::uint32_t cache = sometimes(3);
  std::uint32_t head = 0b110111u << 26 | sometimes(1) << 25 | number << 18;
  if (gfx11()) {
    head |= segment << 16 | cache << 13 | below(2) << 14 | below(1u << 13);
  } else {
    head |=
        (cache & 3u) << 16 | below(2) << 16 | segment << 14 | sometimes(1) << 13 | (cache >> 2) << 12 | below(1u << 12);
  }
  const auto maybe = [this]() { return below(3) == 0 ? 0 : vgpr(); };
  return {head, maybe() << 24 | (segment == 1 ? below(2) : sometimes(1)) << 23 | saddr << 16 | maybe() << 8 | maybe()};
}

WordSource::Words WordSource::buffer(Encoding encoding, unsigned number) {
  const bool typed = encoding == Encoding::mtbuf;
  std::uint32_t head = (typed ? 0b111010u : 0b111000u) << 26 | below(1u << 12);
  std::uint32_t tail = scalar_source() << 24 | below(25) << 16 | vgpr() << 8 | (below(3) == 0 ? 0 : vgpr());
  const std::uint32_t format = below(128);
  if (gfx11()) {
    head |= (typed ? format << 19 | number << 15 : number << 18 | sometimes(3) << 15) | below(8) << 12;
    tail |= below(4) << 22 | sometimes(1) << 21;
  } else {
    head |= typed ? format << 19 | (number & 7u) << 16 : (number & 127u) << 18 | (number >> 7) << 25;
    head |= below(16) << 12 | (typed ? 0 : sometimes(2) << 16);
    tail |= below(2) << 22 | sometimes(1) << 23 | (typed ? (number >> 3) << 21 : sometimes(1) << 21);
  }
  if (!typed && below(4) == 0) return {head & ~0x1FFFFu, 0};
  return {head, tail};
}

WordSource::Words WordSource::image(unsigned number) {
  // Where no list is taken these words are instructions, of which LLVM's disassembler does not survive all with SDWA.
  const auto list = [this] { return static_cast<std::uint32_t>(random_()) & 0x7F7F7F7Fu; };
  constexpr std::uint32_t masks[] = {1, 3, 15};
  std::uint32_t head = 0b111100u << 26 | (below(4) == 0 ? below(16) : masks[below(3)]) << 8 | sometimes(1) << 15;
  std::uint32_t tail = below(25) << 16 | vgpr() << 8 | vgpr();
  const std::uint32_t sampler = below(2) == 0 ? 0 : below(25);
  if (gfx11()) {
    head |= number << 18 | sometimes(2) << 16 | below(8) << 12 | below(2) << 7 | below(8) << 2 | below(2);
    tail |= sampler << 26 | sometimes(2) << 21;
  } else {
    head |= (number & 127u) << 18 | number >> 7 | below(2) << 25 | sometimes(2) << 16 | below(2) << 13;
    head |= below(2) << 12 | below(2) << 7 | below(8) << 3 | (below(2) == 0 ? 0 : below(4)) << 1;
    tail |= sampler << 21 | sometimes(2) << 30;
  }
  const Opcode opcode = find_opcode(generation_, Encoding::mimg, number);
  if (opcode != Opcode::invalid && image_shape(opcode).ray_pointer != 0 && below(4) != 0) {
    // r128, dmask, unrm; no dimension and no bits of caches
    head = gfx11() ? (head & ~0x2FF9CU) | 0x8F80U : (head & ~0x203BFB8U) | 0x9F00U;
    tail &= gfx11() ? ~(31U << 26 | 3U << 21) : ~(31U << 21 | 1U << 31);
  }
  return {head, tail, list(), list(), list()};
}

WordSource::Words WordSource::make(Encoding encoding, unsigned number) {
  switch (encoding) {
    case Encoding::sop2:
    case Encoding::sop1:
    case Encoding::sopc:
    case Encoding::sopk:
    case Encoding::sopp:
      return scalar(encoding, number);
    case Encoding::smem:
      return smem(number);
    case Encoding::vop2:
    case Encoding::vop1:
    case Encoding::vopc:
      return vector(encoding, number);
    case Encoding::vop3:
    case Encoding::vop3p:
      return vop3(encoding, number);
    case Encoding::dual:
      return dual(number);
    case Encoding::ds:
      return ds(number);
    case Encoding::flat:
      return flat(0, number);
    case Encoding::scratch:
      return flat(1, number);
    case Encoding::global:
      return flat(2, number);
    case Encoding::mimg:
      return image(number);
    default:
      return buffer(encoding, number);
  }
}

}  // namespace kiln::test
