// Draws that expand a compressed image, and all others.
#include <catch2/catch.hpp>

#include "bench.hpp"

namespace kiln::simulator {
namespace {

constexpr std::uint32_t draw_opcode = 0x2D, mode_eliminate = 2, mode_expand = 6;
constexpr std::size_t keys_at = 0x2000;

Dwords context_registers(std::uint32_t offset, const Dwords& values) {
  return packet(0x69, Dwords{(offset - 0x28000) / 4} + values);
}

Dwords draw_all() { return packet(0x2F, {1}) + packet(draw_opcode, {3, 2}); }
// Everything that was written reaches memory.
Dwords flush() { return packet(0x58, {0, ~0U, 0x00FF'FFFF, 0, 0, 0xA, 1U << 15}); }

// 32 by 32 texels of four bytes in one block of 4 KiB (swizzle mode 22), of which a key covers 8 by 8.
Dwords expansion(std::uint32_t mode, std::uint32_t info = 4U << 2 | 1U << 28, std::uint32_t swizzle_mode = 22) {
  const std::uint64_t base = Bench::data >> 8, keys = (Bench::data + keys_at) >> 8;
  return context_registers(0x28808, {mode << 4}) + context_registers(0x28C60, {Bench::low(base)}) +
         context_registers(0x28E40, {Bench::high(base)}) + context_registers(0x28C94, {Bench::low(keys)}) +
         context_registers(0x28EA0, {Bench::high(keys)}) + context_registers(0x28C6C, {0, info}) +
         context_registers(0x28C8C, {0xC1EA4000, 0}) + context_registers(0x28EC0, {31U << 14 | 31U}) +
         context_registers(0x28EE0, {swizzle_mode << 14 | 1U << 24}) + draw_all();
}

constexpr std::uint32_t info_32 = 4U << 2 | 1U << 28;  // texels of 32 bits, with DCC

// The state of an image of one texel, which lies in one tile.
Dwords one_tile(std::uint32_t info) {
  const std::uint64_t base = Bench::data >> 8, keys = (Bench::data + keys_at) >> 8;
  return context_registers(0x28808, {mode_expand << 4}) + context_registers(0x28C60, {Bench::low(base)}) +
         context_registers(0x28E40, {Bench::high(base)}) + context_registers(0x28C94, {Bench::low(keys)}) +
         context_registers(0x28EA0, {Bench::high(keys)}) + context_registers(0x28C6C, {0, info}) +
         context_registers(0x28EC0, {0}) + context_registers(0x28EE0, {22U << 14 | 1U << 24});
}

void put_image_and_keys(Bench& bench) {
  for (std::size_t at = 0; at < 4096; at += 4) bench.set(at, 0x55550000 | static_cast<std::uint32_t>(at));
  // Plain, zero, as the first texel, by register.
  for (std::size_t at = 0; at < 16; at += 4) bench.set(keys_at + at, 0x2010'00FF);
}

}  // namespace

TEST_CASE("simulator command processor: a draw expands what DCC keys describe") {
  for (const std::uint32_t mode : {mode_expand, mode_eliminate}) {
    Bench bench(Generation::gfx10_3, Ring::graphics);
    put_image_and_keys(bench);
    const auto fault = bench.run(expansion(mode) + flush());
    INFO((fault ? describe(*fault) : std::string()));
    REQUIRE_FALSE(fault);
    unsigned expanded = 0;
    for (std::size_t tile = 0; tile < 16; ++tile) {
      const std::uint32_t key = bench.get(keys_at + tile / 4 * 4) >> 8 * (tile % 4) & 0xFF;
      const std::uint32_t before = 0x2010'00FFU >> 8 * (tile % 4) & 0xFF;
      expanded += key != before ? 1 : 0;
      for (std::size_t texel = 0; texel < 64; ++texel) {
        const std::size_t at = tile * 256 + texel * 4;
        const std::uint32_t old = 0x55550000 | static_cast<std::uint32_t>(at);
        const std::uint32_t first = 0x55550000 | static_cast<std::uint32_t>(tile * 256);
        const bool touched = key != before;
        const std::uint32_t filled = before == 0 ? 0 : before == 0x10 ? first : before == 0x20 ? 0xC1EA4000 : old;
        if (bench.get(at) != (touched ? filled : old)) CHECK(bench.get(at) == (touched ? filled : old));
      }
      CHECK((key == before || key == 0xFF));
      if (mode == mode_eliminate && before != 0x20) CHECK(key == before);
    }
    CHECK(expanded == (mode == mode_expand ? 12 : 4));
  }
}

TEST_CASE("simulator command processor: other draws, and targets that are none, are refused by name") {
  const auto reason = [](const Dwords& stream, Generation generation = Generation::gfx10_3) {
    Bench bench(generation, Ring::graphics);
    bench.set(keys_at, 0x33);
    const auto fault = bench.run(stream);
    return fault ? fault->reason : std::string("none");
  };
  CHECK(reason(draw_all()).find("(CB_COLOR_CONTROL.MODE 2 or 6, not 0)") != std::string::npos);
  CHECK(reason(context_registers(0x28808, {mode_expand << 4}) + draw_all(), Generation::gfx11)
            .find("draws are not modelled") != std::string::npos);
  CHECK(reason(expansion(1)).find("draws are not modelled") != std::string::npos);
  CHECK(reason(expansion(mode_expand, 4U << 2)).find("has no DCC") != std::string::npos);
  CHECK(reason(expansion(mode_expand, 13U << 2 | 1U << 28)).find("colour format 13") != std::string::npos);
  CHECK(reason(expansion(mode_expand, 4U << 2 | 1U << 28, 3)).find("swizzle mode 3 of the colour target") !=
        std::string::npos);
  CHECK(reason(expansion(mode_expand, 4U << 2 | 1U << 28, 0)).find("DCC) with swizzle mode 0") != std::string::npos);
  CHECK(reason(expansion(mode_expand)).find("DCC key 0x33") != std::string::npos);
  CHECK(reason(packet(draw_opcode, {3, 4})) != "none");
  // A volume lies in thick blocks, whose keys are not known.
  CHECK(reason(one_tile(info_32) + context_registers(0x28EE0, {21U << 14 | 2U << 24}) + draw_all())
            .find("DCC) with swizzle mode 21") != std::string::npos);
}

TEST_CASE("simulator command processor: a draw expands the layers and the level of its view, and nothing beside them") {
  struct Case {
    std::uint32_t view, extent;
    std::size_t data, bytes;  // that are filled
  };
  constexpr std::size_t keys = 0x8000;
  constexpr std::uint32_t small = 31U << 14 | 31U, two_levels = 1U << 28 | 63U << 14 | 63U;
  for (const Case& each : {Case{0, small, 0, 0x1000},
                           {1U << 13 | 1, small, 0x1000, 0x1000},
                           {1U << 13, small, 0, 0x2000},
                           {2U << 13 | 1, small, 0x1000, 0x2000},
                           {1U << 26, two_levels, 0, 0x1000},  // the smaller one comes first
                           {0, two_levels, 0x1000, 0x4000}}) {
    CAPTURE(each.view, each.extent);
    Bench bench(Generation::gfx10_3, Ring::graphics);
    for (std::size_t at = 0; at < 0x6000; at += 4) bench.set(at, 0x77);
    const std::uint64_t base = Bench::data >> 8, first_key = (Bench::data + keys) >> 8;
    const Dwords state =
        context_registers(0x28808, {mode_expand << 4}) + context_registers(0x28C60, {Bench::low(base)}) +
        context_registers(0x28E40, {Bench::high(base)}) + context_registers(0x28C94, {Bench::low(first_key)}) +
        context_registers(0x28EA0, {Bench::high(first_key)}) + context_registers(0x28C6C, {each.view, info_32}) +
        context_registers(0x28EC0, {each.extent}) + context_registers(0x28EE0, {22U << 14 | 1U << 24});
    const auto fault = bench.run(state + draw_all() + flush());  // keys of 0: all bits are
    INFO((fault ? describe(*fault) : std::string()));
    REQUIRE_FALSE(fault);
    std::size_t wrong = 0;
    for (std::size_t at = 0; at < 0x6000; at += 4) {
      const bool inside = at >= each.data && at < each.data + each.bytes;
      wrong += bench.get(at) != (inside ? 0 : 0x77);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("simulator command processor: the colour formats have these bytes, and a clear colour fills them") {
  constexpr unsigned bytes_of[32] = {0, 1, 2, 2, 4, 4, 4, 4, 4, 4, 4, 8, 8, 0, 16, 0,
                                     2, 2, 2, 2, 4, 4, 8, 0, 4, 0, 0, 0, 0, 0, 0,  0};
  for (std::uint32_t format = 0; format < 32; ++format) {
    CAPTURE(format);
    Bench bench(Generation::gfx10_3, Ring::graphics);
    bench.set(keys_at, 0x20);
    bench.set(0x100, 9);
    const auto fault = bench.run(context_registers(0x28C8C, {0x4433'2211, 0x8877'6655}) +
                                 one_tile(format << 2 | 1U << 28) + draw_all() + flush());
    const unsigned bytes = bytes_of[format];
    if (bytes == 0 || bytes == 16) {
      REQUIRE(fault);
      CHECK(fault->kind == FaultKind::bad_state);
      CHECK_THAT(fault->reason, Catch::Contains(bytes == 0 ? "colour format " + std::to_string(format)
                                                           : "a clear colour of two words"));
      continue;
    }
    REQUIRE_FALSE(fault);
    const std::uint32_t first = bytes == 1 ? 0x1111'1111 : bytes == 2 ? 0x2211'2211 : 0x4433'2211;
    for (std::size_t at = 0; at < 256; at += 4) {
      const std::uint32_t word = bytes == 8 && at % 8 == 4 ? 0x8877'6655 : first;
      if (bench.get(at) != word) CHECK(bench.get(at) == word);
    }
    CHECK(bench.get(0x100) == 9);
    CHECK(bench.get(keys_at) == 0xFF);
  }
  Bench bench(Generation::gfx10_3, Ring::graphics);  // 16 bytes, all as the first texel
  bench.set(keys_at, 0x10);
  for (std::size_t at = 0; at < 16; at += 4) bench.set(at, 100 + static_cast<std::uint32_t>(at));
  REQUIRE_FALSE(bench.run(one_tile(14U << 2 | 1U << 28) + draw_all() + flush()));
  for (std::size_t at = 0; at < 256; at += 4) CHECK(bench.get(at) == 100 + at % 16);
}

}  // namespace kiln::simulator
