#include <catch2/catch.hpp>

#include "bench.hpp"
#include "simulator/command_processor/machine.hpp"

namespace kiln::simulator {
namespace {

Dwords set_uconfig(std::uint32_t offset, const Dwords& values) {
  return packet(0x79, Dwords{(offset - 0x30000) / 4} + values);
}
Dwords set_context(std::uint32_t offset, const Dwords& values) {
  return packet(0x69, Dwords{(offset - 0x28000) / 4} + values);
}
Dwords set_masks(std::uint32_t offset, const Dwords& values, std::uint32_t index = 3) {
  return packet(0x9B, Dwords{index << 28 | (offset - 0xB000) / 4} + values);
}

FaultKind on(Generation generation, Ring ring, const Dwords& stream) {
  Bench bench(generation, ring);
  const auto fault = bench.run(stream);
  if (fault) INFO(describe(*fault));
  return kind(fault);
}

constexpr auto fine = FaultKind::invalid;
constexpr auto unknown = FaultKind::unknown_register;

}  // namespace

TEST_CASE("simulator command processor: compute registers are those of the generation") {
  const auto compute = [](Generation generation, std::uint32_t offset, std::uint32_t value) {
    return on(generation, Ring::compute, set_sh(offset, {value}));
  };
  for (const std::uint32_t offset :
       {0xB810, 0xB81C, 0xB830, 0xB848, 0xB854, 0xB858, 0xB860, 0xB868, 0xB8A0, 0xB900, 0xB93C}) {
    CHECK(compute(Generation::gfx10_3, offset, 1) == fine);
    CHECK(compute(Generation::gfx11, offset, 1) == fine);
  }
  for (const std::uint32_t offset : {0xB8AC, 0xB8B8, 0xB8BC, 0xB840}) {
    CHECK(compute(Generation::gfx10_3, offset, 1) == unknown);
    CHECK(compute(Generation::gfx11, offset, 1) == fine);
  }
  for (const std::uint32_t offset : {0xB800, 0xB804, 0xB850, 0xB88C, 0xB8C0, 0xB940, 0xB7FC, 0xB9F8})
    CHECK(compute(Generation::gfx11, offset, 0) == unknown);
  for (const std::uint32_t offset : {0xB838, 0xB86C, 0xB878, 0xB890, 0xB9F4}) {
    CHECK(compute(Generation::gfx11, offset, 0) == fine);
    CHECK(compute(Generation::gfx11, offset, 1) == unknown);
  }
}

TEST_CASE("simulator command processor: a run of registers is checked register by register") {
  Bench bench;
  const auto fault = bench.run(set_sh(0xB938, {1, 2, 3}));
  REQUIRE(kind(fault) == unknown);
  CHECK(fault->dword == 3);
  CHECK(fault->reason == "SET_SH_REG, dword 4: register 0xb940 is not known on gfx11");
  CHECK(kind(bench.run(packet(0x76, {0xFFFF, 1}))) == unknown);
  CHECK(kind(bench.run(packet(0x76, {(0x28000 - 0xB000) / 4, 1}))) == unknown);  // another space, past the end of this
  CHECK(kind(bench.run(packet(0x76, {1U << 28 | 0x204, 1}))) == FaultKind::unknown_packet);
}

TEST_CASE("simulator command processor: CU masks are set through SET_SH_REG_INDEX 3, and nothing else is") {
  CHECK(on(Generation::gfx11, Ring::compute, set_masks(0xB858, {~0U, ~0U})) == fine);
  CHECK(on(Generation::gfx11, Ring::compute, set_masks(0xB8AC, {~0U, ~0U, ~0U, ~0U})) == fine);
  CHECK(on(Generation::gfx11, Ring::compute, set_masks(0xB858, {~0U, ~0U, ~0U})) == unknown);  // runs into TMPRING_SIZE
  CHECK(on(Generation::gfx11, Ring::compute, set_masks(0xB848, {1})) == unknown);
  CHECK(on(Generation::gfx11, Ring::compute, set_masks(0xB858, {1}, 1)) == FaultKind::unknown_packet);
  CHECK(on(Generation::gfx11, Ring::graphics, set_masks(0xB01C, {1})) == fine);
  CHECK(on(Generation::gfx11, Ring::compute, set_masks(0xB01C, {1})) == unknown);
  CHECK(on(Generation::gfx10_3, Ring::graphics, set_masks(0xB118, {1})) == fine);
  CHECK(on(Generation::gfx11, Ring::graphics, set_masks(0xB118, {1})) == unknown);
}

TEST_CASE("simulator command processor: state of the graphics stages is for the graphics ring") {
  CHECK(on(Generation::gfx11, Ring::graphics, set_context(0x28000, {1, 2, 3})) == fine);
  CHECK(on(Generation::gfx11, Ring::compute, set_context(0x28000, {1})) == FaultKind::unknown_packet);
  CHECK(on(Generation::gfx11, Ring::graphics, set_context(0x28018, {1})) == unknown);
  CHECK(on(Generation::gfx10_3, Ring::graphics, set_context(0x28A40, {1})) == fine);  // VGT_GS_MODE
  CHECK(on(Generation::gfx11, Ring::graphics, set_context(0x28A40, {1})) == unknown);
  CHECK(on(Generation::gfx11, Ring::graphics, set_sh(0xB020, {1, 2})) == fine);
  CHECK(on(Generation::gfx11, Ring::compute, set_sh(0xB020, {1, 2})) == unknown);
  CHECK(on(Generation::gfx11, Ring::graphics, set_sh(0xB120, {1})) == unknown);  // gfx11 has no vertex stage of its own
  CHECK(on(Generation::gfx10_3, Ring::graphics, set_sh(0xB120, {1})) == fine);
}

TEST_CASE("simulator command processor: user configuration registers by ring and generation") {
  CHECK(on(Generation::gfx10_3, Ring::compute, set_uconfig(0x301EC, {0x20})) == fine);
  CHECK(on(Generation::gfx11, Ring::compute, set_uconfig(0x301EC, {0x20})) == unknown);
  CHECK(on(Generation::gfx11, Ring::compute, set_uconfig(0x30E00, {1, 2})) == fine);
  CHECK(on(Generation::gfx11, Ring::graphics, set_uconfig(0x31118, {1, 2})) == fine);
  CHECK(on(Generation::gfx11, Ring::compute, set_uconfig(0x31118, {1, 2})) == unknown);
  CHECK(on(Generation::gfx11, Ring::graphics, set_uconfig(0x30800, {0xE0000000})) == unknown);  // GRBM_GFX_INDEX
  CHECK(on(Generation::gfx11, Ring::graphics, set_uconfig(0x34000, {1})) == unknown);           // counters
}

TEST_CASE("simulator command processor: every range of graphics state can be set") {
  for (const Generation generation : {Generation::gfx10_3, Generation::gfx11}) {
    for (const RegisterRange& range : context_ranges(generation)) {
      CHECK(on(generation, Ring::graphics, set_context(range.first, {1})) == fine);
      CHECK(on(generation, Ring::graphics, set_context(range.last, {1})) == fine);
    }
    for (const RegisterRange& range : graphics_shader_ranges(generation))
      CHECK(on(generation, Ring::graphics, set_sh(range.first, {1})) == fine);
  }
}

TEST_CASE("simulator command processor: registers are loaded from memory") {
  Bench bench;
  bench.set(64, 11);
  bench.set(68, 12);
  const auto load = [](std::uint32_t low_bits, std::uint32_t first, std::uint32_t count) {
    return packet(0x63,
                  {Bench::low(Bench::data + 64) | low_bits, Bench::high(Bench::data), (first - 0xB000) / 4, count});
  };
  CHECK_FALSE(bench.run(Bench::sound_state() + load(0, 0xB908, 2) + packet(0x15, {1, 1, 1, 5})));
  REQUIRE(engine_record().dispatches.size() == 1);
  CHECK(engine_record().dispatches[0].user_data[2] == 11);
  CHECK(engine_record().dispatches[0].user_data[3] == 12);
  CHECK(kind(bench.run(load(1, 0xB908, 1))) == FaultKind::unknown_packet);
  CHECK(kind(bench.run(load(0, 0xB938, 3))) == unknown);
  CHECK(kind(bench.run(packet(0x63, {0, 0, 0x3FFF, 1}))) == unknown);
}

// What a GL driver begins its streams with on gfx11, in kind: the values are invented.
TEST_CASE("simulator command processor: the preamble of a graphics context is taken") {
  const Dwords preamble = packet(0x28, {0x8000'0000, 0x8000'0000}) + packet(0x12, {0}) +
                          set_context(0x28A18, {0x42800000, 0}) + set_sh(0xB0C8, {0, 0, 0, 0}) +
                          set_masks(0xB004, {0xFFFF}) + packet(0x46, {0x38 | 1U << 8, 0xFFFF, 0xFF}) +
                          packet(0x49, {0x28 | 5U << 8 | 1U << 31, 0, 0, 0, 0, 0, 0}) +
                          packet(0x58, {5U << 11 | 1U << 17, ~0U, 0x01FF'FFFF, 0, 0, 1U << 31, 0}) +
                          set_uconfig(0x31118, {0x100, 0x7}) + packet(0x42, {0}) + packet(0x46, {0x1A}) +
                          packet(0x46, {0x10 | 4U << 8}) + packet(0x50, {1U << 31, 0, 0, 0, 0, 0});
  CHECK(on(Generation::gfx11, Ring::graphics, preamble) == fine);
  CHECK(on(Generation::gfx11, Ring::graphics, packet(0x28, {0x8000'0001, 0x8000'0000})) == FaultKind::unknown_packet);
}

}  // namespace kiln::simulator
